/** Draws the lanes of the server and of the resource that checks tokens. */
import type { History } from "../view/history.ts"
import * as words from "../view/text.ts"
import { cross, hit, period } from "./lanes.ts"
import { axis, type Layout, ledgerHeight, serverHeight, type View } from "./layout.ts"
import type { Shape } from "./shapes.ts"

export const server = (history: History, view: View, plan: Layout): ReadonlyArray<Shape> => {
  const shapes: Array<Shape> = []
  const rows = history.resources.slice(0, 4)
  const top = axis + serverHeight / 2
  for (const tenure of history.tenures) {
    const row = rows.indexOf(tenure.resource)
    if (row === -1 || tenure.from > view.to || (tenure.to ?? history.now) < view.from) continue
    const y = top + row * serverHeight
    const x = Math.max(plan.left, plan.x(tenure.from))
    const end = Math.min(plan.right, plan.x(tenure.to ?? history.now))
    const box = hit(x, y - 13, end - x, 26, `On the server: ${tenure.client ?? tenure.id} owns ${tenure.resource}`, [
      period(tenure.from, tenure.to),
      `id ${tenure.id}`,
      ...tenure.token === undefined ? [] : [`token ${tenure.token}`],
      ...tenure.end === undefined ? [] : [tenure.end]
    ])
    shapes.push({
      kind: "rect",
      x,
      y: y - 12,
      w: Math.max(1.5, end - x - 1),
      h: 24,
      fill: "leadSoft",
      radius: 3,
      hit: box
    })
    // The work has ended, but the mutex is not free until the lease expires
    const work = history.workUnder(tenure.id)
    const over = work?.to === undefined || work.end === "released" ? undefined : plan.x(work.to)
    if (over !== undefined && end - over > 2) {
      shapes.push({
        kind: "rect",
        x: Math.max(over, plan.left),
        y: y - 12,
        w: end - Math.max(over, plan.left) - 1,
        h: 24,
        hatch: "soft",
        radius: 3
      })
    }
    const name = tenure.client ?? ""
    if (end - x > 12 + 8 * name.length) {
      shapes.push({ kind: "text", x: x + 6, y: y + 4, text: name, ink: "ink", size: 12, isBold: true })
    }
  }
  let labelled = -Infinity
  for (const { at, text } of history.server) {
    if (at < view.from || at > view.to) continue
    const x = plan.x(at)
    shapes.push(
      {
        kind: "line",
        points: [x, axis, x, axis + serverHeight - 4],
        ink: "lost",
        width: 2,
        hit: hit(x - 3, axis, 6, serverHeight, text, [words.seconds(at, 3)])
      },
      ...x < labelled ? [] : [{ kind: "text", x: x + 4, y: axis + 8, text, ink: "lost", size: 10 } as const]
    )
    if (x >= labelled) labelled = x + 8 + 5.6 * text.length
  }
  return shapes
}

export const ledger = (history: History, plan: Layout): ReadonlyArray<Shape> => {
  const y = plan.height - ledgerHeight / 2 - 6
  const shapes: Array<Shape> = [{ kind: "line", points: [plan.left, y, plan.right, y], ink: "faint", width: 1 }]
  const refused: Array<Shape> = []
  for (const lane of history.lanes) {
    for (const { at, kind, text } of lane.marks) {
      if (kind !== "wrote" && kind !== "refused") continue
      const x = plan.x(at)
      if (x < plan.left || x > plan.right) continue
      const box = hit(x - 4, y - 12, 8, 24, `${lane.name} ${text}`, [words.seconds(at, 3)])
      if (kind === "wrote") {
        shapes.push(
          { kind: "line", points: [x, plan.laneY(lane), x, y - 6], ink: "good", width: 1, alpha: 0.45 },
          { kind: "circle", x, y, r: 4, fill: "good", hit: box }
        )
      } else {
        refused.push(
          { kind: "line", points: [x, plan.laneY(lane), x, y - 9], ink: "lost", width: 1.5 },
          { kind: "rect", x: x + 6, y: y - 10, w: 62, h: 20, fill: "paper" },
          { kind: "circle", x, y, r: 9, fill: "paper", stroke: "lost", width: 2, hit: box },
          ...cross(x, y, 4),
          { kind: "text", x: x + 14, y: y + 4, text: "refused", ink: "lost", size: 12, isBold: true }
        )
      }
    }
  }
  shapes.push(...refused)
  return shapes
}
