/** Computes the positions of a timeline's lanes and of instants. */
import type { History } from "../view/history.ts"
import type { Lane } from "../view/lane.ts"

export interface View {
  /** The visible span, in virtual milliseconds. */
  readonly from: number
  readonly to: number
  readonly width: number
  /** Labels to show instead of the processes' names. */
  readonly labels?: ReadonlyMap<string, string> | undefined
  readonly hasLedger: boolean
  readonly streams: number
}

export interface Layout {
  readonly left: number
  readonly right: number
  readonly x: (at: number) => number
  readonly serverY: number
  readonly laneY: (lane: Lane) => number
  readonly laneH: number
  readonly height: number
}

export const axis = 26
export const serverHeight = 40
export const ledgerHeight = 38

export const gutter = (width: number): number => width < 560 ? 46 : 76

const heightOf = (count: number, streams: number) => streams > 0 ? 54 : count <= 5 ? 50 : count <= 8 ? 40 : 31

export const layout = (history: History, view: View): Layout => {
  const left = gutter(view.width)
  const right = view.width - 10
  const laneH = heightOf(history.lanes.length, view.streams)
  const server = view.streams > 0 ? 0 : serverHeight * Math.max(1, Math.min(history.resources.length, 4))
  const tops = new Map<Lane, number>()
  let y = axis + server
  for (const lane of history.lanes) {
    tops.set(lane, y)
    y += laneH * Math.min(lane.rows, 3)
  }
  const scale = (right - left) / (view.to - view.from)
  return {
    left,
    right,
    laneH,
    x: (at) => left + (at - view.from) * scale,
    serverY: axis + server / 2,
    laneY: (lane) => tops.get(lane)! + laneH / 2,
    height: y + (view.hasLedger ? ledgerHeight : 0) + 8
  }
}
