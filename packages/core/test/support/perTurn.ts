/** Counts events in each turn of the event loop. */
import { Effect } from "effect"

/**
 * `note` counts an event. `take` returns the maximum number of events in a turn of the event loop and the total number,
 * both since the last call to `take`.
 */
export const perTurn = Effect.gen(function*() {
  const turns: Array<number> = [0]
  let next = setImmediate(function count() {
    turns.push(0)
    next = setImmediate(count)
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
  return {
    note: () => void turns[turns.length - 1]!++,
    take: () => {
      const taken = turns.splice(0, turns.length, 0)
      return { most: Math.max(...taken), all: taken.reduce((a, b) => a + b, 0) }
    }
  }
})
