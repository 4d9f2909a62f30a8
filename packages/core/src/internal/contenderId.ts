import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { ContenderId, ContenderName } from "../MutexName.ts"

const alphabet = 36 ** 6

const sixChars: Effect.Effect<string> = Effect.map(
  Random.nextIntBetween(0, alphabet),
  (n) => n.toString(36).padStart(6, "0")
)

/**
 * Draws the random part once, so that an id costs a counter step. Each generator, hence each layer of each process,
 * has a part of its own.
 */
export const makeGenerator: Effect.Effect<{
  readonly key: string
  readonly next: (contender: ContenderName) => ContenderId
}> = Effect.map(
  Effect.all([sixChars, sixChars]),
  ([a, b]) => {
    const key = a + b
    let counter = 0
    return { key, next: (contender) => `${++counter}-${key}:${contender}` as ContenderId }
  }
)
