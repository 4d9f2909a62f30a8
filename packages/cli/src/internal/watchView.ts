/** Renders the `watch` screen as text from the poll results. */
import type { MutexState } from "@effect-simba/core/MutexState"
import { ownerOf, timeLeftOf } from "./mutexCommands.ts"
import { field, formatDuration, type Paint, plural, printable, type Style } from "./output.ts"

export interface Poll {
  readonly name: string
  readonly state: MutexState
}

/** The history of one mutex. Each poll adds a letter for the owner at that time. */
interface Track {
  readonly letters: Map<string, string>
  marks: string
  state: MutexState
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
const colours: ReadonlyArray<Style> = ["green", "cyan", "yellow", "magenta", "blue", "red"]
const free = "\u00B7"
/** How many polls to keep: more than the widest terminal has columns. */
const longest = 500

const letterOf = (track: Track, state: MutexState): string => {
  if (state.ownership._tag === "Free") return free
  const { owner } = state.ownership
  const letter = track.letters.get(owner) ?? alphabet[track.letters.size % alphabet.length]!
  track.letters.set(owner, letter)
  return letter
}

/** Paints each run of identical letters in its owner's colour. */
const timeline = (marks: string, width: number, paint: Paint): string =>
  marks.slice(-width).replace(
    /(.)\1*/g,
    (run) => run[0] === free ? paint("dim", run) : paint(colours[alphabet.indexOf(run[0]!) % colours.length]!, run)
  )

const cut = (text: string, width: number): string =>
  text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0))}\u2026`

export class WatchView {
  private readonly tracks = new Map<string, Track>()
  private readonly events: Array<string> = []

  note(event: string): void {
    this.events.push(event)
    if (this.events.length > longest) this.events.shift()
  }

  poll(polls: ReadonlyArray<Poll>): void {
    const polled = new Set(polls.map(({ name }) => name))
    for (const name of this.tracks.keys()) if (!polled.has(name)) this.tracks.delete(name)
    for (const { name, state } of polls) {
      const track = this.tracks.get(name) ?? { letters: new Map(), marks: "", state }
      this.tracks.set(name, track)
      track.state = state
      track.marks = (track.marks + letterOf(track, state)).slice(-longest)
    }
  }

  /** The screen for one mutex, with its queue and its events. */
  one(name: string, size: { readonly columns: number; readonly rows: number }, paint: Paint): ReadonlyArray<string> {
    const track = this.tracks.get(name)
    if (track === undefined) return []
    const { state } = track
    const owner = state.ownership._tag === "Free" ? "nobody" : `${letterOf(track, state)}  ${ownerOf(state)}`
    const room = Math.max(Math.floor((size.rows - 9) / 2), 1)
    return [
      field("mutex", cut(name, size.columns - 11), paint),
      field("owner", cut(owner, size.columns - 11), paint),
      field("time left", timeLeftOf(state), paint),
      field("token", String(state.token ?? "-"), paint),
      timeline(track.marks, size.columns, paint),
      paint("dim", `queue: ${state.waiting}`),
      ...state.waiters.slice(0, room).map(({ id, waited }, at) =>
        cut(`${String(at + 1).padStart(3)}. ${formatDuration(waited).padStart(7)}  ${printable(id)}`, size.columns)
      ),
      paint("dim", "events"),
      ...this.events.slice(-room).map((event) => cut(event, size.columns))
    ]
  }

  /** The screen for all mutexes, one line each. */
  all(total: number, size: { readonly columns: number; readonly rows: number }, paint: Paint): ReadonlyArray<string> {
    const shown = [...this.tracks].slice(0, Math.max(size.rows - 3, 1))
    const width = (pick: (name: string, track: Track) => string, most: number) =>
      Math.min(Math.max(5, ...shown.map(([name, track]) => printable(pick(name, track)).length)), most)
    const nameWidth = width((name) => name, 24)
    const ownerWidth = width((_, { state }) => ownerOf(state), 32)
    const rest = Math.max(size.columns - nameWidth - ownerWidth - 20, 5)
    const line = (name: string, owner: string, left: string, waiting: string) =>
      `${cut(name, nameWidth).padEnd(nameWidth)} ${cut(owner, ownerWidth).padEnd(ownerWidth)} ${left.padStart(7)} ${
        waiting.padStart(7)
      }  `
    return [
      paint("dim", `${line("NAME", "OWNER", "LEFT", "WAITING")}OWNERS OVER TIME`),
      ...shown.map(([name, { marks, state }]) =>
        line(printable(name), printable(ownerOf(state)), timeLeftOf(state), String(state.waiting)) +
        timeline(marks, rest, paint)
      ),
      paint("dim", `${shown.length} of ${plural(total, "mutex", "mutexes")}`)
    ]
  }
}
