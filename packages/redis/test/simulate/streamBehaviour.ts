/**
 * A process's program in a data-stream simulation. A client is either a Go consumer or an effect-simba producer,
 * consumer and operator.
 */
import type { SimbaError } from "@effect-simba/core"
import { StreamClient } from "@effect-simba/core/streams"
import type { StreamStore } from "@effect-simba/core/streams/StreamStore"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type { Simulation } from "@effect-simba/testkit"
import * as GoConsumer from "@effect-simba/testkit/streams/GoConsumer"
import { Effect } from "effect"
import { Redis } from "effect/persistence/Redis"
import { handler } from "./streamHandler.ts"
import { operate } from "./streamOperator.ts"
import { produce } from "./streamProducer.ts"
import { optionsOf, retry, service, type Settings, tools } from "./streamSettings.ts"

const sessionLength = (client: Simulation.Client, settings: Settings) =>
  Effect.suspend(() => client.phase() === "safety" ? tools(client).pause(500, settings.stays) : Effect.never)

export const consume = (client: Simulation.Client, settings: Settings) => {
  const { note } = client
  const { pause } = tools(client)
  let sessions = 0
  return Effect.andThen(
    pause(0, settings.late),
    Effect.forever(Effect.suspend(() => {
      const options = optionsOf(client, settings, ++sessions)
      const leave = Effect.andThen(sessionLength(client, settings), Effect.sync(() => note("left")))
      const session = Effect.suspend(() => {
        note("joined", { consumer: `simba-consumer-${options.processName}`, capacity: options.capacity })
        const handled = StreamClient.run(handler(client, settings), { retry, onError: () => Effect.void })
        return Effect.andThen(client.ready, Effect.raceFirst(handled, leave))
      })
      return Effect.andThen(Effect.provide(session, StreamClient.layer(options)), pause(0, 2000))
    }))
  )
}

const go = (client: Simulation.Client, settings: Settings) => {
  const { chance, pause } = tools(client)
  let sessions = 0
  const session = Effect.suspend(() =>
    Effect.scoped(Effect.gen(function*() {
      const redis = yield* Redis
      // A group created by the Go consumer would miss earlier announcements
      yield* Effect.ignore(redis.send("XGROUP", "CREATE", `${service}-input`, `${service}-group`, "0", "MKSTREAM"))
      const id = `stock-${client.name}.${client.generation}.${++sessions}`
      const { unrenewed } = settings
      const consumer = yield* GoConsumer.join({
        service,
        id,
        unrenewed,
        work: () => pause(100, settings.goWork)
      })
      yield* sessionLength(client, settings)
      if (chance(0.4)) yield* consumer.done
    }))
  )
  return Effect.forever(Effect.andThen(Effect.ignore(session), pause(200, 2000)))
}

/** Runs all activities of a process. */
export const busy = (
  client: Simulation.Client,
  settings: Settings
): Effect.Effect<void, SimbaError.InvalidConfig | SimbaError.StoreError, Redis | StreamStore | Subscriber> =>
  client.index < settings.go
    ? go(client, settings)
    : Effect.all([produce(client, settings), consume(client, settings), operate(client, settings)], {
      concurrency: "unbounded",
      discard: true
    })
