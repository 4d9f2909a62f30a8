/** The server's error states, and the commands that it rejects in each state. */
import type { CommandSpec } from "./commandSpec.ts"
import type { Config } from "./config.ts"

export type ErrorState = "LOADING" | "BUSY" | "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN"

const ERROR_STATES: Readonly<Record<ErrorState, string>> = {
  LOADING: "LOADING Redis is loading the dataset in memory",
  BUSY: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
  READONLY: "READONLY You can't write against a read only replica.",
  MASTERDOWN: "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  CLUSTERDOWN: "CLUSTERDOWN The cluster is down",
  TRYAGAIN: "TRYAGAIN Multiple keys request during rehashing of slot"
}

/** The flag on commands that are served in each state. */
const serves: Readonly<Record<Exclude<ErrorState, "READONLY">, string>> = {
  LOADING: "loading",
  BUSY: "allow_busy",
  MASTERDOWN: "stale",
  CLUSTERDOWN: "loading",
  TRYAGAIN: "loading"
}

/** The fake never has replicas. */
const NO_REPLICAS = "NOREPLICAS Not enough good replicas to write."

/**
 * Returns the error for a rejected command, or `undefined` if the command may run. READONLY and NOREPLICAS reject only
 * writes.
 */
export const refusalIn = (
  state: ErrorState | undefined,
  config: Config,
  { flags }: CommandSpec
): string | undefined => {
  const isWrite = flags.has("write")
  if (state === undefined) {
    const needsReplicas = isWrite && config.number("min-replicas-to-write") > 0 &&
      config.number("min-replicas-max-lag") > 0
    return needsReplicas ? NO_REPLICAS : undefined
  }
  if (state === "READONLY") return isWrite ? ERROR_STATES[state] : undefined
  return flags.has(serves[state]) ? undefined : ERROR_STATES[state]
}
