/** Shows a simulator seed: its history, faults and violations. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { Address } from "../address.ts"
import { light } from "../draw/shapes.ts"
import type { Hit } from "../draw/shapes.ts"
import { svg } from "../draw/svg.ts"
import { timeline } from "../draw/timeline.ts"
import { SeedRun } from "../view/seedRun.ts"
import * as words from "../view/text.ts"
import { Details } from "./Details.tsx"
import { download } from "./download.ts"
import { TimelineCanvas } from "./TimelineCanvas.tsx"
import { Wire } from "./Wire.tsx"

export const SeedView = ({ address }: { readonly address: Address }) => {
  const [run, setRun] = useState<SeedRun>()
  const [problem, setProblem] = useState<string>()
  const [isOver, setOver] = useState(false)
  const [hit, setHit] = useState<Hit>()
  const [, rerender] = useState(0)
  const shown = useRef({ from: 0, to: 10_000 })
  const draw = useRef<() => void>(() => {})

  const show = (from: number, to: number) => {
    shown.current = { from, to }
    draw.current()
  }

  useEffect(() => {
    let isGone = false
    const play = (made: SeedRun, frame = 0) => {
      if (isGone) return
      const isOver = made.advance(30)
      if (isOver) {
        const { now, violations } = made.history
        const at = violations[0]?.at
        show(at === undefined ? 0 : Math.max(0, at - 6000), at === undefined ? now : at + 1000)
        setOver(true)
      } else {
        show(0, Math.max(2000, made.history.now))
        if (frame % 10 === 0) rerender(frame)
        requestAnimationFrame(() => play(made, frame + 1))
      }
    }
    SeedRun.make(address).then((made) => {
      if (isGone) return
      setRun(made)
      requestAnimationFrame(() => play(made))
    }, (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)))
    return () => {
      isGone = true
    }
  }, [])

  const title = `Seed ${address.seed} of the ${address.plan} plan`
  if (problem !== undefined) return <p class="problem" role="alert">{problem}</p>
  if (run === undefined) return <p>Loading the plan…</p>
  const { history, live } = run
  const view = () => ({ hasLedger: history.hasWrites, streams: 0 })
  const { enabled, violations } = live.result()
  const zoom = (factor: number, around = (shown.current.from + shown.current.to) / 2) => {
    const { from, to } = shown.current
    const width = Math.max(20, (to - from) * factor)
    const part = (around - from) / (to - from)
    show(Math.max(0, around - width * part), Math.max(0, around - width * part) + width)
  }
  const pan = (millis: number) => {
    const { from, to } = shown.current
    const by = Math.max(-from, millis)
    show(from + by, to + by)
  }
  const exported = () => {
    const width = 1200
    const { plan, shapes } = timeline(history, { ...view(), ...shown.current, width })
    download(`${run.plan}-${run.seed}.svg`, svg({ width, height: plan.height, title, shapes }, light))
  }
  return (
    <article data-state={isOver ? "over" : "playing"} data-plan={run.plan}>
      <div class="story">
        <h2>{title}</h2>
        <p>
          {live.processes().length} processes, with the faults {enabled.join(", ") || "none"};{" "}
          {isOver ? `${words.seconds(history.now)} of virtual time.` : `${words.seconds(history.now)} and counting …`}
        </p>
      </div>
      {isOver && (violations.length === 0
        ? <p class="verdict held" data-violations={0}>✓ No checker found a violation.</p>
        : (
          <ul class="claims" data-violations={violations.length}>
            {violations.map(({ at, checker, message }, index) => (
              <li key={index} class="broken">
                <button type="button" onClick={() => show(Math.max(0, at - 1500), at + 500)}>
                  <span aria-hidden="true">✗</span> {words.seconds(at, 3)} <b>{checker}</b>: {message}
                </button>
              </li>
            ))}
          </ul>
        ))}
      <TimelineCanvas
        label={`History of seed ${address.seed}`}
        history={() => history}
        window={() => shown.current}
        view={view}
        onReady={(ready) => {
          draw.current = ready
        }}
        onZoom={zoom}
        onPan={pan}
        onPoint={setHit}
      />
      <div class="controls" role="group" aria-label="Picture">
        <button type="button" onClick={() => show(0, history.now)}>Whole history</button>
        <button type="button" aria-label="Zoom in" onClick={() => zoom(0.6)}>+</button>
        <button type="button" aria-label="Zoom out" onClick={() => zoom(1 / 0.6)}>−</button>
        <button type="button" onClick={exported}>SVG</button>
      </div>
      <Details hit={hit} />
      <Wire history={history} />
    </article>
  )
}
