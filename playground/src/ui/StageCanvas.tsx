/** Shows the stage on a canvas: processes around one Redis. A click selects a process. */
import { useEffect, useRef } from "preact/hooks"
import * as canvas from "../draw/canvas.ts"
import type { Shape } from "../draw/shapes.ts"
import { stage } from "../draw/stage.ts"
import type { Player } from "../player.ts"
import { lease } from "../world/mutexFleet.ts"
import type { World } from "../world/world.ts"
import { palette } from "./hooks.ts"

/** The minimum time that a parcel is visible, in real milliseconds, at speeds of up to 10. */
const visible = 420

export const StageCanvas = ({ label, onReady, player }: {
  readonly player: Player
  readonly label: string
  readonly onReady: (draw: () => void) => void
}) => {
  const ref = useRef<HTMLCanvasElement>(null)
  const shapes = useRef<ReadonlyArray<Shape>>([])
  const drawn = useRef<{ readonly world: World | undefined; readonly key: string }>({ world: undefined, key: "" })
  useEffect(() => {
    const element = ref.current!
    const draw = () => {
      const { selected, speed, world } = player
      if (world === undefined || element.clientWidth === 0) return
      const { clientHeight, clientWidth } = element
      const colours = palette()
      const size = [clientWidth, clientHeight, speed, colours.paper]
      const key = [world.seed, world.now, world.live.events.length, selected, ...size].join()
      if (drawn.current.world === world && drawn.current.key === key) return
      drawn.current = { world, key }
      shapes.current = stage(world.history, world.parts(), {
        width: clientWidth,
        height: clientHeight,
        linger: visible * Math.min(speed, 10),
        lease: lease.ttl + lease.transition,
        streams: world.scenario.fleet._tag === "Streams" ? 30 : 0,
        selected
      })
      canvas.draw(element, colours, shapes.current)
    }
    onReady(draw)
    const hitAt = (event: MouseEvent) => {
      const box = element.getBoundingClientRect()
      return canvas.at(shapes.current, event.clientX - box.left, event.clientY - box.top)
    }
    const click = (event: MouseEvent) => {
      const hit = hitAt(event)
      player.selected = hit?.title === player.selected ? undefined : hit?.title
      player.changed()
    }
    const move = (event: MouseEvent) => {
      const hit = hitAt(event)
      element.style.cursor = hit === undefined ? "default" : "pointer"
      if (hit !== undefined) {
        player.hover = hit
        player.changed()
      }
    }
    element.addEventListener("click", click)
    element.addEventListener("mousemove", move)
    return () => {
      element.removeEventListener("click", click)
      element.removeEventListener("mousemove", move)
    }
  }, [])
  return <canvas ref={ref} class="stage" role="img" aria-label={label} />
}
