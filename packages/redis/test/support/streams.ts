/** Producers for the tests of stream ownership. */
import { EntryId, type StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import { Effect, Fiber, Option, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"

/** The last committed message. */
export const committed = (service: Service, stream: StreamName) =>
  Effect.map(service.checkpoint(stream), Option.map(({ id }) => id))

/** Adds a message to a data stream. */
export const append = (stream: StreamName, fields: RawMessage["fields"]) =>
  Effect.flatMap(
    Redis,
    (redis) => Effect.map(redis.send<string>("XADD", stream, "*", ...fields.flat()), (id) => EntryId.make(id))
  )

/** Removes the messages of a data stream before this one. */
export const trim = (stream: StreamName, before: EntryId) =>
  Effect.flatMap(Redis, (redis) => redis.send("XTRIM", stream, "MINID", before))

/** Numbers messages from 1, and adds each to every data stream, until it is stopped. One that failed is sent again. */
export const produce = <E>(
  send: (...command: readonly [string, ...ReadonlyArray<string>]) => Effect.Effect<unknown, E>,
  streams: ReadonlyArray<StreamName>
) =>
  Effect.gen(function*() {
    let sent = 0
    let isStopped = false
    const producing = yield* Effect.forkChild(Effect.gen(function*() {
      while (!isStopped) {
        sent++
        for (const stream of streams) {
          yield* Effect.retry(send("XADD", stream, "*", "n", String(sent)), Schedule.spaced("50 millis"))
        }
        yield* Effect.sleep("10 millis")
      }
    }))
    return {
      sent: () => sent,
      /** Awaits the last reply: the message of an interrupted command would arrive after the last one is read. */
      stop: Effect.suspend(() => {
        isStopped = true
        return Fiber.join(producing)
      })
    }
  })
