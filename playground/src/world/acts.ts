/** The actions with which the reader or a scenario's script controls the fleet, and their short form in the URL. */

export const verbs = [
  "acquire",
  "contend",
  "release",
  "crash",
  "start",
  "pause",
  "resume",
  "cut",
  "heal",
  "slow",
  "skew",
  "add",
  "restart",
  "failover",
  "drop-subscribers"
] as const

export type Verb = typeof verbs[number]

export interface Act {
  /** The virtual time of the action, in whole milliseconds. */
  readonly at: number
  readonly verb: Verb
  /** The name of a process. Undefined if the action affects the server or adds a process. */
  readonly target?: string | undefined
  /**
   * In milliseconds: for `slow`, the delay in each direction; for `skew`, the clock step; for `acquire` and `contend`,
   * how long the process holds the mutex.
   */
  readonly value?: number | undefined
}

/** Formats actions for the URL: `12500.pause.c1~20000.slow.c2.200`. */
export const format = (acts: ReadonlyArray<Act>): string =>
  acts.map(({ at, target, value, verb }) =>
    [at, verb, target ?? (value === undefined ? undefined : ""), value].filter((part) => part !== undefined).join(".")
  ).join("~")

const parseOne = (text: string): Act | undefined => {
  const [at, verb, target, value] = text.split(".")
  const known = verbs.find((one) => one === verb)
  if (known === undefined || !/^\d+$/.test(at ?? "")) return undefined
  return {
    at: Number(at),
    verb: known,
    target: target === "" ? undefined : target,
    value: value === undefined || !Number.isFinite(Number(value)) ? undefined : Number(value)
  }
}

/** Parses actions. Skips malformed ones, because readers also edit URLs by hand. */
export const parse = (text: string): ReadonlyArray<Act> =>
  text.split("~").flatMap((one) => parseOne(one) ?? []).sort((a, b) => a.at - b.at)
