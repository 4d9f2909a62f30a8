/** Draws the timeline: a lane for the server, one for each process, and the parcels between them. */
import type { History } from "../view/history.ts"
import { area, bar, hit, mark } from "./lanes.ts"
import { axis, type Layout, layout, ledgerHeight, serverHeight, type View } from "./layout.ts"
import { parcels } from "./parcels.ts"
import { ledger, server } from "./resources.ts"
import type { Shape } from "./shapes.ts"

const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300]

const ticks = ({ height, left, right, x }: Layout, view: View): ReadonlyArray<Shape> => {
  const most = Math.max(2, Math.floor((right - left) / 74))
  const span = (view.to - view.from) / 1000
  const step = steps.find((one) => span / one <= most) ?? 600
  const shapes: Array<Shape> = []
  for (let n = Math.ceil(Math.max(0, view.from) / 1000 / step); n * step * 1000 <= view.to; n++) {
    const at = x(n * step * 1000)
    shapes.push(
      { kind: "line", points: [at, axis - 6, at, height - 6], ink: "faint", width: 1, alpha: 0.7 },
      {
        kind: "text",
        x: at,
        y: axis - 11,
        text: step < 1 ? (n * step).toFixed(1) : `${n * step}`,
        ink: "soft",
        size: 11,
        align: "middle"
      }
    )
  }
  if (left > 60) shapes.push({ kind: "text", x: 8, y: axis - 11, text: "seconds", ink: "soft", size: 11 })
  return shapes
}

/** Returns all shapes that are within the view, and the layout. */
export const timeline = (
  history: History,
  view: View
): { readonly shapes: ReadonlyArray<Shape>; readonly plan: Layout } => {
  const plan = layout(history, view)
  const inView = (from: number, to: number) => to >= view.from && from <= view.to
  const name = (text: string, y: number, isStrong = false): Shape => ({
    kind: "text",
    x: 8,
    y: y + 4,
    text,
    ink: isStrong ? "ink" : "soft",
    size: 12,
    isBold: isStrong
  })
  const shapes: Array<Shape> = [...ticks(plan, view)]
  for (const lane of history.lanes) {
    const y = plan.laneY(lane)
    shapes.push({ kind: "line", points: [plan.left, y, plan.right, y], ink: "faint", width: 1 })
  }
  shapes.push(...parcels(history, view, plan))
  if (view.streams === 0) {
    history.resources.slice(0, 4).forEach((resource, row) => {
      shapes.push(
        name(history.resources.length > 1 ? resource : "Redis", axis + serverHeight / 2 + row * serverHeight, true)
      )
    })
    shapes.push(...server(history, view, plan))
  }
  for (const lane of history.lanes) {
    shapes.push(name(view.labels?.get(lane.name) ?? lane.name, plan.laneY(lane)))
    if (view.streams > 0) shapes.push(...area(lane, history.now, plan, view.streams))
    for (const span of lane.spans) {
      if (!inView(span.from, span.to ?? history.now)) continue
      const ordinal = span.token === undefined ? "" : `#${history.ordinals.get(span.token) ?? ""}`
      shapes.push(...bar(lane, span, history.now, plan, ordinal))
    }
    for (const one of lane.marks) if (inView(one.at, one.at)) shapes.push(...mark(lane, one, plan))
  }
  if (view.hasLedger) shapes.push(name("ledger", plan.height - ledgerHeight / 2 - 6), ...ledger(history, plan))
  for (const { at, checker, message } of history.violations) {
    const x = plan.x(at)
    if (x < plan.left || x > plan.right) continue
    const isLeft = x > plan.right - 200
    shapes.push(
      {
        kind: "line",
        points: [x, axis - 4, x, plan.height - 4],
        ink: "lost",
        width: 2.5,
        hit: hit(x - 4, 0, 8, plan.height, checker, [message])
      },
      {
        kind: "text",
        x: isLeft ? x - 6 : x + 6,
        y: axis + 6,
        text: checker,
        ink: "lost",
        size: 12,
        isBold: true,
        align: isLeft ? "end" : "start"
      }
    )
  }
  const now = plan.x(history.now)
  if (now >= plan.left && now <= plan.right) {
    shapes.push({ kind: "line", points: [now, axis - 4, now, plan.height - 6], ink: "ink", width: 1, alpha: 0.55 })
  }
  return { shapes, plan }
}
