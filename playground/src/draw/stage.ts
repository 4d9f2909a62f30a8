/** Draws the stage: processes around one Redis, and the parcels in transit between them. */
import type { History } from "../view/history.ts"
import type { Part } from "../world/world.ts"
import type { Hit, Shape } from "./shapes.ts"

export interface StageView {
  readonly width: number
  readonly height: number
  /** The minimum time that a parcel is shown, in virtual milliseconds. */
  readonly linger: number
  /** The full duration of a lease, in milliseconds. */
  readonly lease: number
  readonly streams: number
  readonly selected: string | undefined
}

interface Place {
  readonly x: number
  readonly y: number
}

/** Returns the positions of the processes, clockwise from the top. */
export const placesOf = (count: number, { height, width }: { readonly width: number; readonly height: number }) => {
  const r = radiusOf(count)
  const [rx, ry] = [width / 2 - r - 26, height / 2 - r - 32]
  return Array.from({ length: count }, (_, index): Place => {
    const angle = 2 * Math.PI * index / count - Math.PI / 2
    return { x: width / 2 + rx * Math.cos(angle), y: height / 2 - 6 + ry * Math.sin(angle) }
  })
}

const radiusOf = (count: number) => count <= 5 ? 27 : count <= 8 ? 23 : 19

const between = (from: Place, to: Place, part: number): Place => ({
  x: from.x + (to.x - from.x) * part,
  y: from.y + (to.y - from.y) * part
})

const describe = (part: Part, streams: number): ReadonlyArray<string> => [
  part.state === "dead"
    ? "has crashed"
    : part.state === "paused"
    ? "is paused"
    : streams > 0
    ? `owns ${part.streams} data streams`
    : part.activity,
  ...part.place === undefined ? [] : [`place ${part.place} in the queue`],
  ...part.timeLeft === undefined ? [] : [`${(part.timeLeft / 1000).toFixed(1)} s left by its own clock`],
  ...part.token === undefined ? [] : [`token ${part.token}`],
  ...part.isCut ? ["its link is cut"] : part.delay > 0 ? [`its link takes ${part.delay} ms each way`] : [],
  ...part.clockStep === 0 ? [] : [`its clock was stepped by ${part.clockStep / 1000} s`]
]

const node = (
  part: Part,
  { x, y }: Place,
  r: number,
  view: StageView
): ReadonlyArray<Shape> => {
  const hit: Hit = { x: x - r, y: y - r, w: 2 * r, h: 2 * r, title: part.name, lines: describe(part, view.streams) }
  const isDead = part.state === "dead"
  const leads = part.activity === "leading" || (view.streams > 0 && part.streams > 0)
  const waits = part.activity === "waiting"
  const label = isDead
    ? ""
    : view.streams > 0
    ? String(part.streams)
    : leads
    ? part.ordinal === undefined ? "" : `#${part.ordinal}`
    : waits
    ? part.place === undefined ? "…" : String(part.place)
    : ""
  const name = part.isSimba ? `${part.name} · Simba` : part.name
  return [
    ...part.name === view.selected ? [{ kind: "circle", x, y, r: r + 10, fill: "panel" } as const] : [],
    {
      kind: "circle",
      x,
      y,
      r,
      fill: isDead ? "paper" : leads ? "lead" : waits ? "waitSoft" : "paper",
      stroke: isDead ? "soft" : leads ? "lead" : waits ? "wait" : part.activity === "lost" ? "lost" : "soft",
      width: part.activity === "lost" ? 2.5 : 1.5,
      dash: isDead,
      hit
    },
    ...leads && part.timeLeft !== undefined
      ? [{ kind: "arc", x, y, r: r + 5, turn: Math.min(1, part.timeLeft / view.lease), ink: "lead", width: 3 } as const]
      : [],
    ...label === ""
      ? []
      : [
        {
          kind: "text",
          x,
          y: y + r * 0.24,
          text: label,
          ink: leads ? "onLead" : "wait",
          size: r * 0.68,
          isBold: true,
          align: "middle"
        } as const
      ],
    ...isDead || part.activity === "lost"
      ? [
        { kind: "line", points: [x - r / 3, y - r / 3, x + r / 3, y + r / 3], ink: "lost", width: 2.5 } as const,
        { kind: "line", points: [x - r / 3, y + r / 3, x + r / 3, y - r / 3], ink: "lost", width: 2.5 } as const
      ]
      : [],
    ...part.state === "paused"
      ? [
        { kind: "circle", x: x + r * 0.8, y: y - r * 0.8, r: 10, fill: "paper", stroke: "ink", width: 1.5 } as const,
        { kind: "rect", x: x + r * 0.8 - 4, y: y - r * 0.8 - 4.5, w: 3, h: 9, fill: "ink" } as const,
        { kind: "rect", x: x + r * 0.8 + 1, y: y - r * 0.8 - 4.5, w: 3, h: 9, fill: "ink" } as const
      ]
      : [],
    {
      kind: "text",
      x,
      y: y < view.height / 2 - 20 ? y - r - 11 : y + r + 19,
      text: name,
      ink: "ink",
      size: 12,
      align: "middle"
    },
    ...part.clockStep === 0
      ? []
      : [
        {
          kind: "text",
          x: x + r + 4,
          y: y - r + 4,
          text: `${part.clockStep > 0 ? "+" : "−"}${Math.abs(part.clockStep / 1000)} s`,
          ink: "soft",
          size: 11
        } as const
      ]
  ]
}

const link = (part: Part, place: Place, centre: Place, r: number): ReadonlyArray<Shape> => {
  const length = Math.hypot(place.x - centre.x, place.y - centre.y)
  const from = between(place, centre, (r + 3) / length)
  const to = between(centre, place, 44 / length)
  if (part.state === "dead") return []
  if (!part.isCut) {
    return [{
      kind: "line",
      points: [from.x, from.y, to.x, to.y],
      ink: part.delay > 0 ? "message" : "faint",
      width: 1.5,
      dash: part.delay > 0
    }]
  }
  const [a, b, middle] = [between(from, to, 0.4), between(from, to, 0.6), between(from, to, 0.5)]
  return [
    { kind: "line", points: [from.x, from.y, a.x, a.y], ink: "lost", width: 1.5 },
    { kind: "line", points: [b.x, b.y, to.x, to.y], ink: "lost", width: 1.5 },
    { kind: "line", points: [middle.x - 5, middle.y - 5, middle.x + 5, middle.y + 5], ink: "lost", width: 2 },
    { kind: "line", points: [middle.x - 5, middle.y + 5, middle.x + 5, middle.y - 5], ink: "lost", width: 2 }
  ]
}

/** Draws parcels that were sent recently, as dots in transit. */
const passing = (
  history: History,
  view: StageView,
  places: ReadonlyMap<string, Place>,
  centre: Place
): ReadonlyArray<Shape> => {
  const shapes: Array<Shape> = []
  const { now, parcels } = history
  for (let i = parcels.length - 1; i >= 0 && shapes.length < 150; i--) {
    const one = parcels[i]!
    if (one.sentAt < now - 2000 - view.linger) break
    const place = places.get(one.client)
    if (place === undefined) continue
    const lasts = Math.max(view.linger, one.arrivedAt === undefined ? 0 : one.arrivedAt - one.sentAt)
    const part = (now - one.sentAt) / lasts
    if (part > 1 && (one.arrivedAt !== undefined || now - one.sentAt > 900)) continue
    const [from, to] = one.kind === "request" ? [place, centre] : [centre, place]
    const at = between(from, to, one.arrivedAt === undefined ? Math.min(part, 0.45) : part)
    const isMessage = one.kind === "message"
    shapes.push({
      kind: "circle",
      x: at.x,
      y: at.y,
      r: isMessage ? 5 : 3,
      fill: isMessage ? "message" : "soft",
      alpha: isMessage ? 1 : 0.75
    })
  }
  return shapes
}

export const stage = (history: History, parts: ReadonlyArray<Part>, view: StageView): ReadonlyArray<Shape> => {
  const r = radiusOf(parts.length)
  const places = placesOf(parts.length, view)
  const centre = { x: view.width / 2, y: view.height / 2 - 6 }
  const byName = new Map(parts.map((part, index) => [part.name, places[index]!]))
  const owner = history.resources[0] === undefined ? undefined : history.owner(history.resources[0])
  return [
    ...parts.flatMap((part, index) => link(part, places[index]!, centre, r)),
    ...passing(history, view, byName, centre),
    {
      kind: "rect",
      x: centre.x - 40,
      y: centre.y - 26,
      w: 80,
      h: 52,
      radius: 10,
      fill: "panel",
      stroke: "ink",
      width: 1.5
    },
    {
      kind: "text",
      x: centre.x,
      y: centre.y + (view.streams > 0 ? 5 : -4),
      text: "Redis",
      ink: "ink",
      size: 14,
      isBold: true,
      align: "middle"
    },
    ...view.streams > 0
      ? []
      : [
        {
          kind: "text",
          x: centre.x,
          y: centre.y + 15,
          text: owner === undefined ? "free" : owner.client ?? "",
          ink: owner === undefined ? "soft" : "lead",
          size: 12,
          isBold: owner !== undefined,
          align: "middle"
        } as const
      ],
    ...parts.flatMap((part, index) => node(part, places[index]!, r, view))
  ]
}
