/**
 * Operator commands for data streams: pause, resume, trim, seek, and read the lag. They need no lease. `client` exposes
 * them.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as names from "../../internal/nameRules.ts"
import { notNegative } from "../../internal/optionChecks.ts"
import { InvalidConfig } from "../../SimbaError.ts"
import type { StreamClient } from "../StreamClient.ts"
import { AlreadyOwned } from "../StreamError.ts"
import type { StreamName } from "../StreamName.ts"
import type { Service } from "../StreamStore.ts"
import { problemOf, resolve } from "./startPosition.ts"

const streamName = names.checked<StreamName>("stream", names.streamProblem)

const setPaused = (store: Service, name: string | undefined, isPaused: boolean) =>
  name === undefined
    ? store.setPaused(undefined, isPaused)
    : Effect.flatMap(streamName(name), (stream) => store.setPaused(stream, isPaused))

export const make = (store: Service): Pick<StreamClient["Service"], "lag" | "pause" | "resume" | "seek" | "trim"> => ({
  pause: (name) => setPaused(store, name, true),
  resume: (name) => setPaused(store, name, false),
  lag: (name) => Effect.flatMap(streamName(name), store.lag),
  trim: Effect.fnUntraced(function*(name, { keep = Duration.zero } = {}) {
    return yield* store.trim(yield* streamName(name), yield* notNegative("keep", keep))
  }),
  seek: Effect.fnUntraced(function*(name, to, { force = false } = {}) {
    const stream = yield* streamName(name)
    const problem = problemOf(to)
    if (problem !== undefined) return yield* new InvalidConfig({ option: "seek", problem })
    const checkpoint = resolve(to, yield* store.extent(stream))
    const result = yield* store.seek(stream, checkpoint, { force })
    if (result !== "Moved") return yield* new AlreadyOwned({ stream })
    return checkpoint.id
  })
})
