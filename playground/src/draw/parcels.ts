/** Draws requests, replies and messages as lines between a process's lane and the server's lane. */
import type { History } from "../view/history.ts"
import * as words from "../view/text.ts"
import type { Layout, View } from "./layout.ts"
import type { Shape } from "./shapes.ts"

/**
 * Returns the index of the first parcel that was sent at `from` or later. Parcels are sorted by the time at which they
 * were sent.
 */
const firstAfter = (parcels: History["parcels"], from: number): number => {
  let low = 0
  let high = parcels.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (parcels[middle]!.sentAt < from) low = middle + 1
    else high = middle
  }
  return low
}

/** Parcels that were sent longer than this before the start of the view are not drawn. */
const longest = 2000

/** If there are more parcels per pixel of width than this, only messages are drawn. */
const crowd = 0.45

export const parcels = (history: History, view: View, plan: Layout): ReadonlyArray<Shape> => {
  const all = history.parcels
  const begin = firstAfter(all, view.from - longest)
  const end = firstAfter(all, view.to)
  const isCrowd = (end - begin) / (plan.right - plan.left) > crowd
  const lanes = new Map(history.lanes.map((lane) => [lane.name, lane]))
  const serverY = view.streams > 0 ? 24 : plan.serverY + 13
  const shapes: Array<Shape> = []
  for (let i = begin; i < end; i++) {
    const one = all[i]!
    const isMessage = one.kind === "message"
    if (isCrowd && !isMessage) continue
    const lane = lanes.get(one.client)
    if (lane === undefined) continue
    const arrived = one.arrivedAt ?? (one.sentAt + Math.min(history.now - one.sentAt, 60))
    if (arrived < view.from) continue
    const a = plan.x(one.sentAt)
    const b = plan.x(arrived)
    if (a < plan.left || b > plan.right) continue
    const laneY = plan.laneY(lane) - (isMessage ? 4 : 0)
    const isUp = one.kind === "request"
    const [y1, y2] = isUp ? [laneY, serverY] : [serverY, laneY]
    // A parcel that has not arrived is drawn as a shortened line
    const reach = one.arrivedAt === undefined ? y1 + (y2 - y1) * 0.35 : y2
    const x = Math.min(a, b)
    shapes.push({
      kind: "line",
      points: [a, y1, b, reach],
      ink: one.arrivedAt === undefined ? "lost" : isMessage ? "message" : "soft",
      width: isMessage ? 1.4 : 0.8,
      alpha: isMessage ? isCrowd ? 0.35 : 0.9 : Math.abs(b - a) < 2 ? 0.2 : 0.45,
      hit: {
        x: x - 3,
        y: Math.min(y1, reach),
        w: Math.abs(b - a) + 6,
        h: Math.abs(reach - y1),
        title: isMessage
          ? `A message to ${one.client}`
          : isUp
          ? `A request from ${one.client}`
          : `A reply to ${one.client}`,
        lines: [
          `${words.seconds(one.sentAt, 3)}, ${
            one.arrivedAt === undefined ? "has not arrived" : `${(one.arrivedAt - one.sentAt).toFixed(1)} ms in transit`
          }`,
          ...one.kind === "reply" ? [words.command(one.args)] : [],
          words.parcel(one)
        ]
      }
    })
    if (isMessage && one.arrivedAt !== undefined) {
      shapes.push({ kind: "circle", x: b, y: reach, r: isCrowd ? 2 : 2.6, fill: "message" })
    }
  }
  return shapes
}
