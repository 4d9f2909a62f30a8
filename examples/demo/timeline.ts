/** The whole run as text, with one row per worker. */
import type { Event } from "./events.ts"
import { spansOf, startOf, type State } from "./history.ts"
import * as plan from "./plan.ts"
import { crashOf } from "./report.ts"

const columns = 84

const marks: Record<State, string> = {
  starting: " ",
  resting: " ",
  waiting: "·",
  leading: "█",
  finished: "●",
  interrupted: "!",
  crashed: "✗",
  failed: "?"
}

/** If several symbols fall in the same column, the last one in this list wins. */
const priority = [" ", "░", "·", "█", "●", "!", "✗", "?"]

export const legend = "█ leads   · waits   ● has finished   ! interrupted   ✗ killed   ░ the lease it left behind"

export const timeline = (history: ReadonlyArray<Event>): ReadonlyArray<string> => {
  const start = startOf(history)
  const length = Math.max(...history.map((event) => event.at)) - start
  const column = (at: number) => Math.min(columns - 1, Math.floor(((at - start) / length) * columns))
  const row = (worker: string) => {
    const cells = Array.from({ length: columns }, () => " ")
    const draw = (mark: string, from: number, to: number) => {
      for (let i = column(from); i <= column(to); i++) {
        if (priority.indexOf(mark) > priority.indexOf(cells[i]!)) cells[i] = mark
      }
    }
    for (const span of spansOf(history, worker)) draw(marks[span.state], span.from, span.to ?? span.from)
    const crash = crashOf(history)
    if (crash?.worker === worker && crash.leaseEnds !== undefined) draw("░", crash.at, crash.leaseEnds)
    return `  ${worker.padEnd(5)} ${cells.join("")}`.trimEnd()
  }
  const axis = Array.from({ length: columns }, () => " ")
  for (let second = 0; second * 1000 < length; second += 2) {
    const label = `${second} s`
    const at = column(start + second * 1000)
    if (at + label.length <= columns) axis.splice(at, label.length, ...label)
  }
  return [`        ${axis.join("").trimEnd()}`, ...plan.workers.map(row), "", `  ${legend}`]
}
