/** Runs scripts and functions, and the commands that they call. */
import { denialInScript } from "../aclLog.ts"
import { arityProblem, BLOCKED, describedBy } from "../command.ts"
import { Context } from "../context.ts"
import { refusalIn } from "../errorStates.ts"
import type { ScriptHost } from "../lua/script.ts"
import { Paused } from "../lua/script.ts"
import type { Value } from "../reply.ts"
import { Fail } from "../reply.ts"
import { shape } from "../shapes.ts"

const UNKNOWN = new Fail("ERR Unknown Redis command called from script")
const ARITY = new Fail("ERR Wrong number of args calling Redis command from script")
const FORBIDDEN = new Fail("ERR This Redis command is not allowed from script")
const READ_ONLY = new Fail("ERR Write commands are not allowed from read-only scripts.")

/** Commands that are replicated even though they do not write any keys. */
const replicated = new Set(["publish", "spublish", "pfcount"])

interface Called {
  readonly kind: "script" | "function"
  /** The name of the script or function as it appears in error messages. */
  readonly name: string
  readonly args: ReadonlyArray<string>
  readonly readOnly: boolean
  readonly run: (host: ScriptHost) => Value | Paused
}

/** Runs a script or a function. If it runs for too long, it pauses, and the server is busy until it ends. */
export const runScript = (context: Context, { args, kind, name, readOnly, run }: Called): Value | typeof BLOCKED => {
  const { client, server } = context
  const { db } = client
  let hasWritten = false
  // SELECT inside a script must not change the client's database
  const end = () => {
    client.db = db
  }
  const reply = server.blockedReply
  const value = run(scriptHost(context, readOnly, () => hasWritten = true))
  if (!(value instanceof Paused)) {
    end()
    return value
  }
  const startedAt = server.options.stopwatch?.() ?? 0
  server.busy = { kind, name, args, client, startedAt, hasWritten: () => hasWritten, reply, end, script: value }
  return BLOCKED
}

/**
 * Returns a predicate that becomes true once the script has run for too long and must pause. Scripts in transactions
 * never pause.
 */
const overtime = ({ atomic, server }: Context): (() => boolean) | undefined => {
  const { stopwatch } = server.options
  const threshold = server.config.number("busy-reply-threshold")
  if (stopwatch === undefined || threshold <= 0 || atomic) return undefined
  const startedAt = stopwatch()
  return () => stopwatch() - startedAt >= threshold
}

const scriptHost = (context: Context, readOnly: boolean, onWrite: () => void): ScriptHost => ({
  call: caller(context, readOnly, onWrite),
  mustPause: overtime(context),
  random: context.server.options.random,
  mayRun: (args) => {
    const command = context.server.commands.get(args[0]!.toLowerCase())
    const spec = command === undefined ? undefined : describedBy(command, args)
    return spec === undefined || typeof spec === "string"
      ? undefined
      : context.client.user?.denies(spec, args) === undefined
  }
})

const caller = (context: Context, readOnly: boolean, onWrite: () => void) => {
  const { server } = context
  let inner = new Context(server, context.client, true, true)
  return (args: ReadonlyArray<string>, protocol: 2 | 3): Value => {
    const command = server.commands.get(args[0]!.toLowerCase())
    if (command === undefined) return UNKNOWN
    const spec = describedBy(command, args)
    if (typeof spec === "string") return UNKNOWN
    if (arityProblem(spec, args) !== undefined) return ARITY
    if (spec.flags.has("noscript")) return FORBIDDEN
    const denial = context.client.user?.denies(spec, args)
    if (denial !== undefined) {
      server.aclLog.add(server, context.client, denial, "lua")
      return new Fail(denialInScript(denial))
    }
    if (readOnly && (spec.flags.has("write") || replicated.has(spec.name))) return READ_ONLY
    const refusal = refusalIn(server.errorState, server.config, spec)
    if (refusal !== undefined) return new Fail(refusal)
    if (spec.flags.has("write")) onWrite()
    const value = server.call(inner, command, spec, args)
    if (context.client.db !== inner.db.index) inner = new Context(server, context.client, true, true)
    const reply = value === BLOCKED ? null : value
    return protocol === 3 ? shape(3, args, reply) : reply
  }
}
