/** The whole run as an SVG, with one row per worker, like the timeline in the terminal. */
import type { Event } from "./events.ts"
import { type Span, spansOf, startOf, type State } from "./history.ts"
import * as plan from "./plan.ts"
import { crashOf } from "./report.ts"

const width = 960
const left = 70
const right = 80
const top = 40
const rowHeight = 30
const barHeight = 18

const colours = { leads: "#2f9e44", waits: "#ced4da", lease: "#ffa8a8", text: "#868e96", mark: "#e03131" }

const labels: Partial<Record<State, string>> = { crashed: "killed", finished: "finished", interrupted: "interrupted" }

const bar = (x: number, y: number, length: number, height: number, colour: string, title: string) =>
  `<rect x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${Math.max(1, length).toFixed(1)}" height="${height}" ` +
  `rx="2" fill="${colour}"><title>${title}</title></rect>`

const label = (x: number, y: number, text: string, more = "") =>
  `<text x="${x.toFixed(1)}" y="${y}"${more}>${text}</text>`

export const picture = (history: ReadonlyArray<Event>): string => {
  const start = startOf(history)
  const length = Math.max(...history.map((event) => event.at)) - start
  const x = (at: number) => left + ((at - start) / length) * (width - left - right)
  const height = top + plan.workers.length * rowHeight + 34
  const crash = crashOf(history)
  const rowOf = (worker: string, row: number) => {
    const y = top + row * rowHeight
    const draw = ({ from, state, to = from, token }: Span) => {
      if (state === "leading") {
        return [bar(x(from), y, x(to) - x(from), barHeight, colours.leads, `${worker} leads with token ${token}`)]
      }
      if (state === "waiting") return [bar(x(from), y + 7, x(to) - x(from), 4, colours.waits, `${worker} waits`)]
      const end = labels[state]
      return end === undefined
        ? []
        : [label(x(from) + 6, y + 13, end, state === "finished" ? "" : ` fill="${colours.mark}"`)]
    }
    const lease = crash?.worker === worker && crash.leaseEnds !== undefined
      ? [
        bar(x(crash.at), y, x(crash.leaseEnds) - x(crash.at), barHeight, colours.lease, "the lease that it left behind")
      ]
      : []
    return [label(8, y + 13, worker), ...lease, ...spansOf(history, worker).flatMap(draw)]
  }
  const seconds = Array.from({ length: Math.floor(length / 2000) + 1 }, (_, index) => index * 2)
  const legendAt = height - 12
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" ` +
    `fill="${colours.text}" role="img" aria-label="Five workers take turns leading; one is killed and replaced">`,
    ...seconds.flatMap((second) => {
      const at = x(start + second * 1000)
      return [
        `<line x1="${at.toFixed(1)}" x2="${at.toFixed(1)}" y1="22" y2="${
          height - 34
        }" stroke="#dee2e6" stroke-width="1"/>`,
        label(at, 16, `${second} s`, ` text-anchor="middle"`)
      ]
    }),
    ...plan.workers.flatMap(rowOf),
    bar(left, legendAt - 10, 18, 12, colours.leads, "leads"),
    label(left + 24, legendAt, "leads, with a larger fencing token each time"),
    bar(left + 300, legendAt - 6, 18, 4, colours.waits, "waits"),
    label(left + 324, legendAt, "waits in line"),
    bar(left + 430, legendAt - 10, 18, 12, colours.lease, "lease"),
    label(left + 454, legendAt, "the lease that a killed worker left behind"),
    "</svg>",
    ""
  ].join("\n")
}
