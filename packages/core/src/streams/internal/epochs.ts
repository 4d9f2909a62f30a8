/** The random part of a client's epochs. */
import * as Effect from "effect/Effect"
import { randomKey } from "../../internal/processIdentity.ts"
import type { Epoch } from "../StreamName.ts"

export const make: Effect.Effect<{ readonly session: string; readonly nextEpoch: () => Epoch }> = Effect.map(
  randomKey,
  (session) => {
    let count = 0
    return { session, nextEpoch: () => `${session}.${(++count).toString(36)}` as Epoch }
  }
)
