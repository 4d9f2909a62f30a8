/** Shows the timeline on a canvas. Readers drag it, zoom it, and point at its shapes. */
import { useEffect, useRef } from "preact/hooks"
import * as canvas from "../draw/canvas.ts"
import { gutter, type View } from "../draw/layout.ts"
import type { Hit, Shape } from "../draw/shapes.ts"
import { timeline } from "../draw/timeline.ts"
import type { History } from "../view/history.ts"
import { palette } from "./hooks.ts"

export interface Window {
  readonly from: number
  readonly to: number
}

interface Props {
  readonly history: () => History | undefined
  readonly window: () => Window
  readonly view: () => Pick<View, "labels" | "hasLedger" | "streams">
  readonly label: string
  /** Receives the drawing function, which the caller runs in each frame. */
  readonly onReady: (draw: () => void) => void
  readonly onZoom: (factor: number, around: number) => void
  readonly onPan: (millis: number) => void
  readonly onPoint: (hit: Hit | undefined) => void
}

interface Drawn {
  readonly shapes: ReadonlyArray<Shape>
  readonly key: string
  readonly of: { readonly history: History | undefined; readonly now: number; readonly events: number }
}

export const TimelineCanvas = ({ history, label, onPan, onPoint, onReady, onZoom, view, window: shown }: Props) => {
  const ref = useRef<HTMLCanvasElement>(null)
  const state = useRef<Drawn>({ shapes: [], key: "", of: { history: undefined, now: -1, events: 0 } })

  useEffect(() => {
    const element = ref.current!
    const draw = () => {
      const current = history()
      const width = element.clientWidth
      if (current === undefined || width === 0) return
      const { from, to } = shown()
      const colours = palette()
      // A change of less than half a pixel is not visible
      const tick = Math.floor(current.now / ((to - from) / (2 * width)))
      const key = [from, to, width, tick, current.violations.length, colours.paper].join()
      const { key: drawn, of } = state.current
      const isUnchanged = of.now !== current.now || of.events === current.events.length
      if (key === drawn && of.history === current && isUnchanged) return
      const { plan, shapes } = timeline(current, { ...view(), from, to, width })
      const height = `${Math.ceil(plan.height)}px`
      if (element.style.height !== height) element.style.height = height
      state.current = { shapes, key, of: { history: current, now: current.now, events: current.events.length } }
      canvas.draw(element, colours, shapes)
    }
    onReady(draw)
    const timeAt = (x: number) => {
      const { from, to } = shown()
      const left = gutter(element.clientWidth)
      return from + (to - from) * (x - left) / (element.clientWidth - 10 - left)
    }
    const perPixel = () => {
      const { from, to } = shown()
      return (to - from) / (element.clientWidth - 10 - gutter(element.clientWidth))
    }
    const pointers = new Map<number, { x: number; y: number }>()
    let moved = 0
    const place = (event: PointerEvent | WheelEvent) => {
      const box = element.getBoundingClientRect()
      return { x: event.clientX - box.left, y: event.clientY - box.top }
    }
    const down = (event: PointerEvent) => {
      element.setPointerCapture(event.pointerId)
      pointers.set(event.pointerId, place(event))
      moved = 0
    }
    const spread = () => {
      const [a, b] = [...pointers.values()]
      return a === undefined || b === undefined ? undefined : Math.abs(a.x - b.x)
    }
    const move = (event: PointerEvent) => {
      const at = place(event)
      const before = pointers.get(event.pointerId)
      if (before === undefined) return onPoint(canvas.at(state.current.shapes, at.x, at.y))
      const wide = spread()
      pointers.set(event.pointerId, at)
      moved += Math.abs(at.x - before.x)
      if (wide !== undefined) {
        const now = Math.max(8, spread()!)
        return onZoom(Math.max(8, wide) / now, timeAt(at.x))
      }
      if (moved > 4) onPan((before.x - at.x) * perPixel())
    }
    const up = (event: PointerEvent) => {
      const at = place(event)
      pointers.delete(event.pointerId)
      if (moved <= 4) onPoint(canvas.at(state.current.shapes, at.x, at.y))
    }
    const wheel = (event: WheelEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) {
        event.preventDefault()
        return onZoom(Math.exp(event.deltaY / 300), timeAt(place(event).x))
      }
      if (Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return
      event.preventDefault()
      onPan(event.deltaX * perPixel())
    }
    element.addEventListener("pointerdown", down)
    element.addEventListener("pointermove", move)
    element.addEventListener("pointerup", up)
    element.addEventListener("pointercancel", up)
    element.addEventListener("wheel", wheel, { passive: false })
    const observer = new ResizeObserver(draw)
    observer.observe(element)
    draw()
    return () => {
      observer.disconnect()
      for (
        const [name, listener] of [["pointerdown", down], ["pointermove", move], ["pointerup", up], [
          "pointercancel",
          up
        ]] as const
      ) {
        element.removeEventListener(name, listener)
      }
      element.removeEventListener("wheel", wheel)
    }
  }, [])

  return <canvas ref={ref} class="timeline" role="img" aria-label={label} />
}
