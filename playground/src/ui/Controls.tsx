/** A scenario's controls: play, step, speed, zoom, export, and the seed. */
import { useState } from "preact/hooks"
import * as address from "../address.ts"
import { type Player, speeds } from "../player.ts"
import { useChanges } from "./hooks.ts"

export const keys: ReadonlyArray<readonly [key: string, meaning: string]> = [
  ["space", "play or pause"],
  [".", "step by 50 ms"],
  ["e", "jump to the end"],
  ["r", "restart"],
  ["[ ]", "slower, faster"],
  ["+ −", "zoom"],
  ["← →", "move"],
  ["f", "follow the present"]
]

export const Controls = ({ onExport, player }: { readonly player: Player; readonly onExport: () => void }) => {
  useChanges(player)
  const [copied, setCopied] = useState(false)
  const { world } = player
  const index = Math.max(0, speeds.findLastIndex((speed) => speed <= player.speed))
  const at = world?.now ?? 0
  const copy = () => {
    void navigator.clipboard?.writeText(location.href).then(() => {
      setCopied(true)
      setTimeout(() => setCopied(false), 1500)
    })
  }
  return (
    <div class="controls" role="group" aria-label="Clock">
      <button type="button" class="play" onClick={() => player.toggle()}>
        {world?.isOver === true ? "↺ Again" : player.isPlaying ? "❚❚ Pause" : "▶ Play"}
      </button>
      <button type="button" aria-label="Step by 50 milliseconds" onClick={() => player.step()}>▸❘ Step</button>
      <label class="speed">
        Speed
        <input
          type="range"
          min={0}
          max={speeds.length - 1}
          value={index}
          aria-valuetext={`${player.speed} times real time`}
          onInput={(event) => player.setSpeed(speeds[Number(event.currentTarget.value)]!)}
        />
        <output>{player.speed}×</output>
      </label>
      <output class="clock" aria-label="Virtual time">
        {(at / 1000).toFixed(2)} s{player.isPlaying && player.isLate ? " (this machine cannot keep up)" : ""}
      </output>
      <span class="gap" />
      <button type="button" aria-label="Zoom in" onClick={() => player.zoom(0.6)}>+</button>
      <button type="button" aria-label="Zoom out" onClick={() => player.zoom(1 / 0.6)}>−</button>
      <button type="button" onClick={() => player.catchUp()}>Follow</button>
      <button type="button" onClick={onExport}>SVG</button>
      <form
        class="seed"
        onSubmit={(event) => {
          event.preventDefault()
          const seed = new FormData(event.currentTarget).get("seed")
          if (world !== undefined) {
            location.hash = address.ofScenario(world.scenario.id, String(seed), [], world.clients)
          }
        }}
      >
        <label>
          Seed <input name="seed" key={world?.seed} defaultValue={world?.seed ?? "1"} size={5} autocomplete="off" />
        </label>
      </form>
      <button type="button" onClick={copy}>{copied ? "Copied" : "Copy link"}</button>
    </div>
  )
}
