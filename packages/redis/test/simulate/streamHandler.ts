/**
 * The data-stream handler in simulations. It fails according to the settings, notes its actions for the checkers, and
 * writes to external systems.
 */
import { type StreamLease, StreamMessages } from "@effect-simba/core/streams"
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Simulation } from "@effect-simba/testkit"
import { Cause, Duration, Effect, Exit, Option, Schedule } from "effect"
import { decodeOrder, isDraft, keyOf, Order, type Settings, tools, usesOf } from "./streamSettings.ts"

/** An external system that stores each data stream's last processed message and checks tokens. */
export const offsets = (client: Simulation.Client) => {
  const delay = () => tools(client).between(0.1, 10)
  const tokenOf = (state: Map<string, unknown>, stream: string) => Number(state.get(`${stream} token`) ?? 0)
  const read = (stream: string) =>
    Effect.suspend(() => client.outside(delay(), ({ state }) => String(state.get(`${stream} offset`) ?? "0-0")))
  return {
    read,
    /** Records the token, so that later writes with smaller tokens are refused. Returns the stored message id. */
    claim: (stream: string, token: number) =>
      Effect.suspend(() =>
        client.outside(delay(), ({ state }) => {
          if (token >= tokenOf(state, stream)) state.set(`${stream} token`, token)
          return String(state.get(`${stream} offset`) ?? "0-0") as EntryId
        })
      ),
    /** Returns whether it accepted the write. */
    write: (stream: string, token: number, message: string) =>
      Effect.suspend(() =>
        client.outside(delay(), ({ note, state }) => {
          if (token < tokenOf(state, stream)) return false
          state.set(`${stream} offset`, message)
          note("kept", { resource: stream, message })
          return true
        })
      )
  }
}

/** From now on, `curable` handlers succeed. */
export const cure = (client: Simulation.Client) => client.outside(0.1, ({ state }) => void state.set("cured", true))

export const handler = (client: Simulation.Client, settings: Settings) => {
  const { note } = client
  const { between, chance, pause } = tools(client)
  let writes = 0

  const write = (stream: string, id: string, token: number) =>
    Effect.suspend(() => {
      const fields = { resource: stream, id, write: `${client.name}.${client.generation}.${++writes}` }
      note("writing", fields)
      return client.outside(between(0.1, 10), ({ note, state }) => {
        const accepted = token >= (state.get(stream) as number ?? 0)
        if (accepted) state.set(stream, token)
        note("written", { ...fields, token, accepted: accepted ? 1 : 0 })
      })
    })

  /** Like `StreamMessages.process`, but stores the offset in an external system instead of committing. */
  const processByOwnOffset = <E, R>(
    lease: StreamLease.StreamLease,
    handle: (message: { readonly id: EntryId; readonly value: typeof Order.Type }) => Effect.Effect<void, E, R>
  ) =>
    Effect.gen(function*() {
      const { claim, write } = offsets(client)
      const { stream, token } = lease
      let after = yield* claim(stream, token)
      while (after !== `${settings.rounds * settings.messages}-0`) {
        const found = yield* Effect.retry(lease.messagesAfter(after, 7), {
          while: (error) => error._tag !== "LeaseLost",
          schedule: Schedule.spaced("300 millis")
        })
        for (const { fields, id } of found) {
          if (yield* lease.isRevoked) return yield* lease.yield
          const value = Option.getOrUndefined(decodeOrder(Object.fromEntries(fields)))
          if (value !== undefined) yield* handle({ id, value })
          else note("processed", { resource: stream, id: `${stream}#${token}`, message: id })
          // After data loss, the server may have issued a smaller token. Yield, so that the next owner gets a larger
          // token.
          if (!(yield* write(stream, token, id))) return yield* lease.yield
          yield* lease.progress
          after = id
        }
      }
    })

  return (lease: StreamLease.StreamLease) => {
    const { entry, stream, token } = lease
    const ailment = settings.streams.get(stream) ?? "none"
    const id = `${stream}#${token}`
    const fields = { resource: stream, id, entry }
    const uses = usesOf(settings)

    // Note how much time was left before the call, because `ensure` may take time
    const ensured = Effect.gen(function*() {
      const left = yield* lease.timeLeft
      yield* lease.ensure
      note("ensured", { resource: stream, id, left: Duration.toMillis(left) })
    })
    type Handled = { readonly id: EntryId; readonly value: typeof Order.Type }
    const failed = <E>(messageId: EntryId, error: E) =>
      Effect.suspend(() => {
        note("tried", { resource: stream, id, message: messageId })
        return Effect.fail(error)
      })
    const processed = ({ id: messageId }: Handled) =>
      isDraft(messageId) ? undefined : note("processed", {
        resource: stream,
        id,
        message: messageId,
        ...(uses.handling === "several" ? { key: keyOf(messageId) } : {})
      })
    const work = ({ id: messageId, value }: Handled) =>
      Effect.gen(function*() {
        note("step", fields)
        yield* pause(1, settings.work)
        yield* client.compute([0, settings.computes])
        if (chance(0.3)) yield* ensured
        if (ailment === "slow") yield* Effect.andThen(lease.progress, pause(200, 1500))
        if (settings.fenced && chance(0.3)) yield* write(stream, id, token)
        if (ailment === "fails" && chance(0.1)) return yield* failed(messageId, "the work failed" as const)
        if (ailment === "curable" && value.n === 2) {
          const isCured = yield* client.outside(0.1, ({ state }) => state.has("cured"))
          if (!isCured) return yield* failed(messageId, "not cured yet" as const)
        }
        if (ailment === "poison" && value.n === 2) return yield* failed(messageId, "poison" as const)
        if (ailment === "hangs" && client.phase() === "safety" && chance(0.1)) return yield* Effect.never
        note("step", fields)
      })
    const message = (handled: Handled) => Effect.andThen(work(handled), Effect.sync(() => processed(handled)))

    const options = {
      until: ({ value }: { readonly value: typeof Order.Type }) => value.end === "true",
      batch: 7,
      attempts: uses.attempts,
      backoff: Schedule.spaced("200 millis"),
      onGap: ({ after, missed, reason, until }: StreamMessages.Gap) =>
        Effect.sync(() =>
          note("gap", { resource: stream, id, after, until, reason, missed: Option.getOrElse(missed, () => -1) })
        )
    }
    const { commitEvery } = settings
    const withOptions = () =>
      uses.handling === "one"
        ? StreamMessages.process(Order, message, { ...options, commitEvery })
        : uses.handling === "several"
        ? StreamMessages.process(Order, message, {
          ...options,
          commitEvery,
          concurrency: 3,
          key: ({ id }) => keyOf(id)
        })
        : StreamMessages.processBatches(
          Order,
          (batch) =>
            Effect.andThen(
              Effect.forEach(batch, work, { discard: true }),
              Effect.sync(() => batch.forEach(processed))
            ),
          { ...options, ...(chance(0.5) ? { batchWithin: "300 millis" } : {}) }
        )

    /** Processes messages with the `after` option, storing the offset as part of the work on each message. */
    const afterOwnOffset = Effect.gen(function*() {
      const own = offsets(client)
      const after = yield* own.claim(stream, token)
      yield* StreamMessages.process(
        Order,
        (handled) => Effect.andThen(message(handled), own.write(stream, token, handled.id)),
        { ...options, commitEvery, after: after === "0-0" ? Option.none() : Option.some(after) }
      )
    })

    const run = settings.ownOffsets
      ? processByOwnOffset(lease, message)
      : uses.after
      ? afterOwnOffset
      : withOptions()
    const reported = Effect.onExit(run, (exit) =>
      Effect.sync(() => {
        if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return
        const handedBack = exit.cause.reasons.some((reason) =>
          Cause.isFailReason(reason) && typeof reason.error === "object" && reason.error._tag === "StreamYielded"
        )
        if (!handedBack) note("failed", { resource: stream, entry })
      }))
    // The bracket guarantees that a handler notes its start and its end even if it is interrupted
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        note("granted", { resource: stream, id, token })
        note("begin", uses.handling === "several" ? { ...fields, several: 1 } : fields)
        note("step", fields)
      }),
      () => reported,
      () => {
        note("stopped", fields)
        // Finalizers are part of the work
        return Effect.andThen(
          chance(0.2) ? Effect.sleep("5 millis") : Effect.void,
          Effect.sync(() => note("end", fields))
        )
      }
    )
  }
}
