/** Checks how failures are counted, which announcements are dead-lettered, and that dead consumers are removed. */
import { all } from "../../../internal/simulation/ownershipTracker.ts"
import type { Checker } from "../../../internal/simulation/setup.ts"
import {
  checker,
  checkpointOf,
  compareIds,
  fallen,
  field,
  named,
  type StreamModel,
  streamsOf,
  touches
} from "./model.ts"

export const deadLettersAreEarned = (model: StreamModel, maxFailures: number): Checker =>
  checker("dead letters are justified", (view) => {
    /** The number of handler failures by entry. */
    const failed = new Map<string, number>()
    /** By data stream, the number of leases that expired instead of being ended by their owner. */
    const ended = new Map<string, number>()
    const streams = new Map<string, string | undefined>()
    const changes = view.follow(model.input)
    const letters = view.follow(model.deadLetters)
    let before: ReturnType<typeof known> | undefined
    const more = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1)
    const earned = (entry: string) => (failed.get(entry) ?? 0) + (ended.get(streams.get(entry) ?? "") ?? 0)
    /** Returns the failure counts of the entries named in a command. The command cannot change any others. */
    const known = (args: ReadonlyArray<string>) => {
      for (const [entry, fields] of changes().added) streams.set(entry, model.announcement(fields))
      const counts = new Map<string, string>()
      for (const arg of args) {
        const text = streams.has(arg) ? view.field(model.failures, arg) : undefined
        if (text !== undefined) counts.set(arg, text)
      }
      return { counts, letters: letters().added }
    }
    const checkCounts = (counts: ReadonlyMap<string, string>) => {
      if (view.lossAt() >= 0) return
      for (const [entry, text] of counts) {
        const [count] = text.split("|")
        if (entry.includes(":") || Number(count) <= earned(entry)) continue
        view.violated(
          `${entry} (${streams.get(entry)}) has a failure count of ${count}, but only ${earned(entry)} happened`
        )
      }
    }
    view.every(1000, () => checkCounts(view.hash(model.failures)))
    const check = ({ counts, letters }: ReturnType<typeof known>) => {
      checkCounts(counts)
      if (view.lossAt() >= 0) return
      for (const [, fields] of letters) {
        const entry = model.deadId(fields) ?? ""
        if (model.announcement(fields) === undefined || earned(entry) >= maxFailures) continue
        view.violated(
          `${entry} (${streams.get(entry)}) is a dead letter after only ${earned(entry)} of ${maxFailures} failures`
        )
      }
    }
    const committed = streamsOf(model, model.checkpoint)
    const checkpoints = new Map<string, string | undefined>()
    /** Checks that a commit resets the failure count. Ignores seeks that move the checkpoint back. */
    const judgeCommit = (stream: string, args: ReadonlyArray<string>) => {
      const id = checkpointOf(view, model, stream)
      if (id === undefined) return
      const isForward = compareIds(id, checkpoints.get(stream) ?? "0-0") > 0
      checkpoints.set(stream, id)
      if (!isForward || view.lossAt() >= 0) return
      for (const entry of args) {
        const text = streams.get(entry) === stream ? view.field(model.failures, entry) : undefined
        if (text === undefined) continue
        view.violated(`${entry} (${stream}) has a failure count of ${text.split("|")[0]} after a commit of ${id}`)
      }
    }
    return {
      onEvent: (event) => {
        if (event._tag === "Command") { for (const stream of committed(event)) judgeCommit(stream, event.command.args) }
        if (event._tag === "Owner" && event.from !== undefined) {
          const { command, from, resource } = event
          const released = command === undefined ? [] : all(view.lock.released?.(command.args, command.reply))
          if (!released.some(({ id }) => id === from)) more(ended, resource)
        }
        const note = named(event, "failed")
        if (note !== undefined && "entry" in note.fields) more(failed, field(note.fields, "entry"))
        // When a script takes an expired lease, it counts the failure before the expired event arrives
        if (event._tag === "Owner") return
        if (before !== undefined) check(before)
        before = event._tag === "Command" && touches(event, model.input) ? known(event.command.args) : undefined
      }
    }
  })

export const consumersAreReaped = (model: StreamModel, bound: number): Checker =>
  checker("consumers are reaped", (view) => {
    const present = new Map<string, string>()
    /**
     * Consumers whose name is not used by any process: since when, and when they were last used or had a pending entry.
     * A Go consumer is not known to be a process, but its commands show that it is not silent.
     */
    const absent = new Map<string, { readonly since: number; idleSince: number }>()
    let over = Infinity
    const check = () => {
      const group = view.stream(model.input)?.group(model.group)
      const names = (group?.consumers ?? []).filter((name) => !model.isMark(name))
      const alive = new Set(present.values())
      for (const name of [...absent.keys()]) if (alive.has(name) || !names.includes(name)) absent.delete(name)
      for (const name of names) {
        if (alive.has(name)) continue
        const found = absent.get(name) ?? { since: view.now(), idleSince: view.now() }
        absent.set(name, found)
        if (group!.pendingOf(name).length > 0) found.idleSince = view.now()
        // Nothing is overdue before the faults end
        if (view.now() - Math.max(found.idleSince, over) > bound) violated(name)
      }
    }
    const violated = (name: string) => view.violated(`${name} is still a consumer, although no process uses this name`)
    view.every(1000, check)
    return {
      onEvent: (event) => {
        if (event._tag === "Phase" && event.phase === "liveness") over = event.at
        if (event._tag === "Command") {
          for (const [name, found] of absent) if (event.command.args.includes(name)) found.idleSince = event.at
        }
        const gone = fallen(event)
        if (gone !== undefined) present.delete(gone)
        const note = named(event, "joined", "left")
        if (note?.kind === "joined") present.set(note.client, field(note.fields, "consumer"))
        else if (note !== undefined) present.delete(note.client)
      },
      isConverged: () => {
        check()
        return absent.size === 0
      },
      onConverged: () => {
        check()
        for (const [name, { since }] of absent) if (view.now() - since > bound) violated(name)
      }
    }
  })
