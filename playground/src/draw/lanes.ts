/** Draws a process's lane: when it waited, led, and was paused or down, and its events. */
import type { Lane, Mark, Span } from "../view/lane.ts"
import * as words from "../view/text.ts"
import type { Layout } from "./layout.ts"
import type { Hit, Shape } from "./shapes.ts"

export const hit = (x: number, y: number, w: number, h: number, title: string, lines: ReadonlyArray<string>): Hit => ({
  x: x - 3,
  y,
  w: Math.max(6, w + 6),
  h,
  title,
  lines
})

export const period = (from: number, to: number | undefined) =>
  to === undefined ? `since ${words.seconds(from, 3)}` : `${words.seconds(from, 3)} to ${words.seconds(to, 3)}`

export const bar = (lane: Lane, span: Span, now: number, plan: Layout, ordinal: string): ReadonlyArray<Shape> => {
  const y = plan.laneY(lane) + Math.min(span.row, 2) * plan.laneH
  const x = Math.max(plan.left, plan.x(span.from))
  const end = Math.min(plan.right, plan.x(span.to ?? now))
  const w = end - x
  if (w < 0) return []
  const size = Math.min(22, plan.laneH * 0.5)
  const lines = [
    period(span.from, span.to),
    ...span.token === undefined ? [] : [`token ${span.token}`],
    ...span.id === "" || span.kind === "waiting" ? [] : [`id ${span.id}`],
    ...span.end === undefined ? [] : [words.lossText[span.end] ?? span.end]
  ]
  const at = (title: string, h = size) => hit(x, y - h / 2, w, h, `${lane.name} ${title}`, lines)
  switch (span.kind) {
    case "waiting":
      return [{
        kind: "rect",
        x,
        y: y - size * 0.22,
        w,
        h: size * 0.44,
        fill: "waitSoft",
        stroke: "wait",
        width: 1,
        radius: 3,
        hit: at("waits")
      }]
    case "leading": {
      const bad = span.end === "lost" || span.end === "killed"
      return [
        { kind: "rect", x, y: y - size / 2, w: Math.max(2, w), h: size, fill: "lead", radius: 3, hit: at("leads") },
        ...w > 8 + 8 * ordinal.length && ordinal !== ""
          ? [{ kind: "text", x: x + 6, y: y + 4, text: ordinal, ink: "onLead", size: 12, isBold: true } as const]
          : [],
        ...bad ? cross(end, y, size * 0.36) : []
      ]
    }
    case "paused":
      return [
        {
          kind: "rect",
          x,
          y: y - plan.laneH / 2 + 4,
          w,
          h: plan.laneH - 8,
          fill: "panel",
          alpha: 0.55
        },
        {
          kind: "rect",
          x,
          y: y - plan.laneH / 2 + 4,
          w,
          h: plan.laneH - 8,
          hatch: "soft",
          alpha: 0.8,
          hit: at("is paused", plan.laneH - 8)
        },
        { kind: "rect", x: x + 3, y: y - 6, w: 3.5, h: 12, fill: "ink" },
        { kind: "rect", x: x + 9, y: y - 6, w: 3.5, h: 12, fill: "ink" }
      ]
    case "down":
      return [{
        kind: "line",
        points: [x, y, end, y],
        ink: "soft",
        dash: true,
        width: 1.5,
        hit: at("is down")
      }]
    case "cut":
    case "slow": {
      const top = y - plan.laneH / 2 + 5
      const isCut = span.kind === "cut"
      return [
        {
          kind: "line",
          points: [x, top, end, top],
          ink: isCut ? "lost" : "message",
          dash: true,
          width: 2,
          hit: hit(x, top - 4, w, 8, `${lane.name}: its link is ${isCut ? "cut" : "slow"}`, lines.slice(0, 1))
        },
        ...w > 90
          ? [
            { kind: "rect", x: x + 12, y: top - 6, w: isCut ? 45 : 51, h: 12, fill: "paper" } as const,
            {
              kind: "text",
              x: x + 15,
              y: top + 3.5,
              text: isCut ? "link cut" : "slow link",
              ink: isCut ? "lost" : "message",
              size: 10.5
            } as const
          ]
          : []
      ]
    }
  }
}

export const cross = (x: number, y: number, r: number, ink: "lost" | "ink" = "lost"): ReadonlyArray<Shape> => [
  { kind: "line", points: [x - r, y - r, x + r, y + r], ink, width: 2.5 },
  { kind: "line", points: [x - r, y + r, x + r, y - r], ink, width: 2.5 }
]

export const mark = (lane: Lane, one: Mark, plan: Layout): ReadonlyArray<Shape> => {
  const x = plan.x(one.at)
  const y = plan.laneY(lane)
  const size = Math.min(22, plan.laneH * 0.5)
  const box = hit(x - 3, y - plan.laneH / 2, 6, plan.laneH, `${lane.name} ${one.text}`, [words.seconds(one.at, 3)])
  switch (one.kind) {
    case "renewal":
      return [{
        kind: "line",
        points: [x - 4, y + size / 2 + 7, x, y + size / 2 + 1, x + 4, y + size / 2 + 7],
        ink: "lead",
        isArea: true,
        hit: box
      }]
    case "confirmed":
      return [{ kind: "circle", x, y: y + size / 2 + 5, r: 2, fill: "lead", hit: box }]
    case "crash":
      return [...cross(x, y, size * 0.42).slice(0, 1), { ...cross(x, y, size * 0.42)[1]!, hit: box }]
    case "start":
      return [{ kind: "circle", x, y, r: 5, fill: "paper", stroke: "good", width: 2, hit: box }]
    case "skew":
    case "failed":
    case "fault":
      return [{
        kind: "line",
        points: [x, y - size / 2 - 6, x, y + size / 2 + 2],
        ink: one.kind === "failed" ? "lost" : "soft",
        width: 1.5,
        dash: true,
        hit: box
      }]
    default:
      return []
  }
}

/** Draws the number of data streams that a process owned, as a stepped area. */
export const area = (lane: Lane, now: number, plan: Layout, streams: number): ReadonlyArray<Shape> => {
  const bottom = plan.laneY(lane) + plan.laneH / 2 - 6
  const scale = (plan.laneH - 14) / (streams / 2)
  const y = (count: number) => bottom - Math.min(count, streams / 2) * scale
  const top: Array<number> = []
  let last = 0
  for (const { at, count } of lane.counts) {
    const x = Math.min(plan.right, Math.max(plan.left, plan.x(at)))
    top.push(x, y(last), x, y(count))
    last = count
  }
  const end = Math.min(plan.right, plan.x(now))
  if (top.length === 0) return []
  top.push(end, y(last))
  const box = hit(
    plan.left,
    plan.laneY(lane) - plan.laneH / 2,
    end - plan.left,
    plan.laneH,
    `${lane.name} owns ${last}`,
    [
      ...lane.streams
    ].slice(0, 15)
  )
  return [
    { kind: "line", points: [top[0]!, bottom, ...top, end, bottom], ink: "leadSoft", isArea: true, hit: box },
    { kind: "line", points: top, ink: "lead", width: 2 },
    {
      kind: "text",
      x: end < plan.right - 22 ? end + 6 : end - 4,
      y: end < plan.right - 22 ? y(last) + 4 : y(last) - 5,
      text: `${last}`,
      ink: "lead",
      size: 13,
      isBold: true,
      align: end < plan.right - 22 ? "start" : "end"
    }
  ]
}
