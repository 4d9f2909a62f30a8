/**
 * A scripted lease that records its requests and allows a test to change them, and a handler that records what it
 * processes.
 */
import { StreamMessages } from "@effect-simba/core/streams"
import { StreamLease } from "@effect-simba/core/streams/StreamLease"
import { Cause, Effect, Exit, Layer, Option, Schema } from "effect"
import { message, type ScriptedLease } from "./scriptedLease.ts"

export const Numbered = Schema.Struct({ n: Schema.FiniteFromString })

export const numbered = (n: number, id = `${n}-0`) => message(id, { n: String(n) })

/** A message whose id contains a timestamp from 2026. */
export const timed = (n: number) => numbered(n, `${1_770_000_000_000 + n}-0`)

/** Replaces operations of the lease, and records its requests for messages, extents and counts. */
export const recorded = (
  lease: ScriptedLease,
  override: (inner: StreamLease) => Partial<StreamLease> = () => ({})
) => {
  const requests: Array<string> = []
  const note = (text: string) => Effect.sync(() => requests.push(text))
  const layer = Layer.effect(
    StreamLease,
    Effect.map(StreamLease, (scripted) => {
      const inner = { ...scripted, ...override(scripted) }
      return {
        ...inner,
        messagesAfter: (after, count) =>
          Effect.andThen(note(`read ${after} ${count}`), inner.messagesAfter(after, count)),
        extent: Effect.andThen(note("extent"), inner.extent),
        count: (after, last) => Effect.andThen(note(`count ${after}`), inner.count(after, last))
      }
    })
  ).pipe(Layer.provide(lease.layer))
  return { requests, layer }
}

/** Processes messages in the background, and records processed numbers and gaps. */
export const processing = Effect.fnUntraced(function*(
  layer: Layer.Layer<StreamLease>,
  options: StreamMessages.ProcessOptions<typeof Numbered.Type> = {},
  handler: (n: number) => Effect.Effect<void, unknown> = () => Effect.void
) {
  const observed: Array<number> = []
  const gaps: Array<string> = []
  const onGap = ({ after, missed, reason, until }: StreamMessages.Gap) =>
    Effect.sync(() => gaps.push(`${reason} ${after} ${until} ${Option.getOrElse(missed, () => "?")}`))
  const fiber = yield* StreamMessages.process(
    Numbered,
    ({ value: { n } }) => Effect.andThen(handler(n), Effect.sync(() => observed.push(n))),
    { onGap, ...options }
  ).pipe(Effect.provide(layer), Effect.forkChild({ startImmediately: true }))
  return { fiber, gaps, observed }
})

export const commits = (lease: ScriptedLease) => lease.calls.filter((call) => call.startsWith("commit"))

export const errorOf = (exit: Exit.Exit<unknown, unknown> | undefined): unknown =>
  exit !== undefined && Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
