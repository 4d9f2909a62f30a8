/** The random part of a client's epochs. */
import * as Effect from "effect/Effect"
import * as wireId from "../../internal/contenderId.ts"
import type { Epoch } from "../StreamName.ts"

export const make: Effect.Effect<{ readonly session: string; readonly nextEpoch: () => Epoch }> = Effect.map(
  wireId.makeGenerator,
  ({ key }) => {
    let count = 0
    return { session: key, nextEpoch: () => `${key}.${(++count).toString(36)}` as Epoch }
  }
)
