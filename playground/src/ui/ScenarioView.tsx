/** Shows one scenario: its story, the stage, the timeline, its claims, and the controls. */
import { useEffect, useRef } from "preact/hooks"
import type { View } from "../draw/layout.ts"
import { light } from "../draw/shapes.ts"
import { svg } from "../draw/svg.ts"
import { timeline } from "../draw/timeline.ts"
import { type Player, speeds } from "../player.ts"
import type { Scenario } from "../world/scenarios.ts"
import { streamNames } from "../world/streamFleet.ts"
import { Controls, keys } from "./Controls.tsx"
import { Details } from "./Details.tsx"
import { download } from "./download.ts"
import { Fleet } from "./Fleet.tsx"
import { useChanges } from "./hooks.ts"
import { StageCanvas } from "./StageCanvas.tsx"
import { TimelineCanvas } from "./TimelineCanvas.tsx"
import { Wire } from "./Wire.tsx"

export const viewOf = ({ fleet }: Scenario): Pick<View, "labels" | "hasLedger" | "streams"> =>
  fleet._tag === "Streams"
    ? { hasLedger: false, streams: streamNames.length }
    : {
      hasLedger: fleet.habits.writes !== undefined,
      streams: 0,
      labels: new Map((fleet.habits.simba ?? []).map((name) => [name, `${name} Simba`]))
    }

/** Exports the visible timeline as SVG, in light colours for printing. */
export const picture = (player: Player, width = 960): string => {
  const { from, to, world } = player
  if (world === undefined) return ""
  const { plan, shapes } = timeline(world.history, { ...viewOf(world.scenario), from, to, width })
  return svg({ width, height: plan.height, title: world.scenario.story, shapes }, light)
}

const Claims = ({ player, scenario }: { readonly player: Player; readonly scenario: Scenario }) => {
  useChanges(player)
  const { history } = player
  if (scenario.claims.length === 0) return null
  return (
    <ul class="claims">
      {scenario.claims.map(({ holds, text }) => {
        const held = history === undefined ? undefined : holds(history)
        const state = held === undefined ? "open" : held ? "held" : "broken"
        return (
          <li key={text} class={state} data-claim={state}>
            <span aria-hidden="true">{state === "held" ? "✓" : state === "broken" ? "✗" : "·"}</span> {text}
            <span class="hidden">
              {state === "held" ? " (holds)" : state === "broken" ? " (does not hold)" : " (open)"}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

/** Redraws in each frame without rendering a component. */
const useDrawing = (player: Player) => {
  const drawings = useRef<Record<string, () => void>>({})
  useEffect(() => {
    player.onFrame = () => {
      for (const draw of Object.values(drawings.current)) draw()
    }
    return () => {
      player.onFrame = undefined
    }
  }, [player])
  return (name: string) => (draw: () => void) => {
    drawings.current[name] = draw
  }
}

const useKeys = (player: Player) =>
  useEffect(() => {
    const faster = (by: number) => {
      const index = speeds.findIndex((speed) => speed === player.speed)
      player.setSpeed(speeds[Math.min(speeds.length - 1, Math.max(0, (index === -1 ? 3 : index) + by))]!)
    }
    const actions: Readonly<Record<string, () => void>> = {
      " ": () => player.toggle(),
      ".": () => player.step(),
      e: () => player.finish(),
      r: () => player.replay(),
      "[": () => faster(-1),
      "]": () => faster(1),
      "+": () => player.zoom(0.6),
      "=": () => player.zoom(0.6),
      "-": () => player.zoom(1 / 0.6),
      ArrowLeft: () => player.pan(-(player.to - player.from) / 10),
      ArrowRight: () => player.pan((player.to - player.from) / 10),
      f: () => player.catchUp()
    }
    const pressed = (event: KeyboardEvent) => {
      const { ctrlKey, key, metaKey, target } = event
      if (ctrlKey || metaKey || (target as HTMLElement).closest("input, select, textarea, summary") !== null) return
      // On a focused button, the space bar presses the button
      if (key === " " && (target as HTMLElement).closest("button, a") !== null) return
      const action = actions[key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener("keydown", pressed)
    return () => removeEventListener("keydown", pressed)
  }, [player])

export const ScenarioView = ({ player, scenario, seed }: {
  readonly player: Player
  readonly scenario: Scenario
  readonly seed: string
}) => {
  useChanges(player)
  useKeys(player)
  const drawing = useDrawing(player)
  const { history, hover, world } = player
  return (
    <article
      data-state={world?.isOver === true ? "over" : player.isPlaying ? "playing" : "paused"}
      data-scenario={world?.scenario.id}
    >
      <div class="story">
        <h2>{scenario.title}</h2>
        <p>{scenario.story}</p>
      </div>
      <div class="scene">
        <StageCanvas
          player={player}
          label={`The processes around one Redis: ${scenario.story}`}
          onReady={drawing("stage")}
        />
        <TimelineCanvas
          label={`Timeline: ${scenario.story}`}
          history={() => player.history}
          window={() => player}
          view={() => player.world === undefined ? { hasLedger: false, streams: 0 } : viewOf(player.world.scenario)}
          onReady={drawing("timeline")}
          onZoom={(factor, around) => player.zoom(factor, around)}
          onPan={(millis) => player.pan(millis)}
          onPoint={(hit) => {
            player.hover = hit
            player.changed()
          }}
        />
      </div>
      <Controls player={player} onExport={() => download(`${scenario.id}-${seed}.svg`, picture(player))} />
      <div class="below">
        <Claims player={player} scenario={scenario} />
        <Details hit={hover} />
      </div>
      <Fleet player={player} />
      {history !== undefined && <Wire history={history} />}
      <dl class="keys" aria-label="Keys">
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </article>
  )
}
