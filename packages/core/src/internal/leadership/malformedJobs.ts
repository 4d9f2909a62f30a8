/**
 * Logs jobs that do not run because their state in the backend cannot be read. Each is logged once, and again when the
 * reason changes. Used by `jobRunner`.
 */
import * as Effect from "effect/Effect"
import type { JobsRecord } from "../../JobStore.ts"
import * as log from "../log.ts"

/** Create one per leadership: a new leader logs all malformed jobs again. */
export const reporter = (): (malformed: JobsRecord["malformed"]) => Effect.Effect<void> => {
  let reported = new Map<string, string>()
  return (malformed) =>
    Effect.suspend(() => {
      const known = reported
      reported = new Map([...malformed].map(([name, { message }]) => [name, message]))
      return Effect.forEach(
        reported,
        ([name, problem]) =>
          known.get(name) === problem ? Effect.void : log.error(`"${name}" does not run: ${problem}`),
        { discard: true }
      )
    })
}
