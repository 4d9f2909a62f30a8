/** Helpers for writing, trimming and reading data streams in tests. */
import { EntryId, type StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import { Effect, Fiber, Option, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"

/** Returns the id of the last committed message. */
export const committed = (service: Service, stream: StreamName) =>
  Effect.map(service.checkpoint(stream), Option.map(({ id }) => id))

/** Adds a message to a data stream and returns the message's id. */
export const append = (stream: StreamName, fields: RawMessage["fields"]) =>
  Effect.flatMap(
    Redis,
    (redis) => Effect.map(redis.send<string>("XADD", stream, "*", ...fields.flat()), (id) => EntryId.make(id))
  )

/** Deletes a data stream's messages before this id. */
export const trim = (stream: StreamName, before: EntryId) =>
  Effect.flatMap(Redis, (redis) => redis.send("XTRIM", stream, "MINID", before))

/** Adds messages, numbered from 1, to every data stream until stopped. Retries failed commands. */
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
      /**
       * Stops only after the last reply, because an interrupted command could add a message after the test has read to
       * the end.
       */
      stop: Effect.suspend(() => {
        isStopped = true
        return Fiber.join(producing)
      })
    }
  })
