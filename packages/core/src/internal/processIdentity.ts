/**
 * Names this process without importing a runtime's modules, and generates random keys for ids. Used by `MutexConfig`,
 * `service` and the stream client.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

interface ProcessLike {
  readonly pid?: number
  readonly env?: Record<string, string | undefined>
  readonly getBuiltinModule?: (id: string) => { readonly hostname?: () => string } | undefined
}

/** The global `process`, which Node, Bun and Deno define. */
const processLike = (): ProcessLike => (globalThis as { readonly process?: ProcessLike }).process ?? {}

/** Returns `<pid>@<host>`, by which an operator can find the process. */
export const processName = (): string => {
  const self = processLike()
  const host = self.getBuiltinModule?.("node:os")?.hostname?.() ?? self.env?.["HOSTNAME"] ?? ""
  // "@@" separates fields on the wire, and a trailing "@" would be ambiguous there
  return `${self.pid ?? 0}@${host.replaceAll("@", "-").trim() || "localhost"}`
}

/**
 * Adds the current fraction of a millisecond: layers built with the same `Random` seed would otherwise generate the
 * same ids, and each would mistake the other's lease for its own. Virtual clocks have no such fraction, so simulations
 * can be repeated.
 */
const sixChars: Effect.Effect<string> = Effect.map(
  Effect.all([Random.nextIntBetween(0, 36 ** 6 - 1), Clock.monotonicTimeNanos]),
  ([n, nanos]) => ((n + Number(nanos % 1_000_000n)) % 36 ** 6).toString(36).padStart(6, "0")
)

/** Generates twelve random characters. Each layer generates one key, and a counter distinguishes the layer's ids. */
export const randomKey: Effect.Effect<string> = Effect.map(Effect.all([sixChars, sixChars]), ([a, b]) => a + b)
