/**
 * A script that has been running for longer than `busy-reply-threshold`. Other clients may kill it. Most of their other
 * commands return an error.
 */
import type { Client } from "./client.ts"
import type { CommandSpec } from "./commandSpec.ts"
import type { Paused } from "./lua/script.ts"
import type { Value } from "./reply.ts"
import { fail, OK } from "./reply.ts"

export interface BusyScript {
  readonly kind: "script" | "function"
  readonly name: string
  readonly args: ReadonlyArray<string>
  readonly client: Client
  readonly startedAt: number
  readonly hasWritten: () => boolean
  readonly reply: (value: Value) => void
  readonly end: () => void
  script: Paused
}

const busyText = (kind: "script" | "function"): string =>
  `BUSY Redis is busy running a script. You can only call ${kind.toUpperCase()} KILL or SHUTDOWN NOSAVE.`

/** Returns the error for a command that is rejected while a script runs, or `undefined` if the command may run. */
export const refusedWhileBusy = (busy: BusyScript | undefined, { flags }: CommandSpec): string | undefined =>
  busy === undefined || flags.has("allow_busy") ? undefined : busyText(busy.kind)

/** Runs SCRIPT KILL or FUNCTION KILL. */
export const killBusy = (busy: BusyScript | undefined, kind: "script" | "function"): Value => {
  if (busy === undefined) return fail("NOTBUSY No scripts in execution right now.")
  if (busy.hasWritten()) {
    return fail(
      "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script " +
        "termination or kill the server in a hard way using the SHUTDOWN NOSAVE command."
    )
  }
  if (busy.kind !== kind) return fail(busyText(busy.kind))
  busy.script.kill()
  return OK
}
