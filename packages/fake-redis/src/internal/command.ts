/** The definition of a command. `commandTable.ts` collects all definitions. */
import type { CommandSpec } from "./commandSpec.ts"
import { specOf } from "./commandSpec.ts"
import type { Context } from "./context.ts"
import type { Value } from "./reply.ts"
import { Fail, Status } from "./reply.ts"

/** Returned instead of a reply by a command that has blocked. */
export const BLOCKED: unique symbol = Symbol("blocked")

export type Handler = (context: Context, args: ReadonlyArray<string>) => Value | typeof BLOCKED

export interface Command {
  readonly name: string
  readonly spec: CommandSpec
  readonly write: boolean
  readonly run: Handler
}

export const define = (name: string, run: Handler): Command => {
  const spec = specOf(name)!
  const isHelp = (args: ReadonlyArray<string>) => args[1]?.toLowerCase() === "help" && spec.subcommands.has("help")
  const withHelp: Handler = (context, args) => isHelp(args) ? help(spec) : run(context, args)
  return { name, spec, write: spec.flags.has("write"), run: spec.subcommands.size > 0 ? withHelp : run }
}

/** Runs a command. Any error that it throws becomes the reply. */
export const runCommand = (command: Command, context: Context, args: ReadonlyArray<string>): Value | typeof BLOCKED => {
  try {
    return command.run(context, args)
  } catch (error) {
    if (error instanceof Fail) return error
    throw error
  }
}

/** The reply to HELP: the subcommands, without Redis's help texts. */
const help = ({ name, subcommands }: CommandSpec): Value => [
  new Status(`${name.toUpperCase()} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`),
  ...Array.from(subcommands.keys(), (subcommand) => new Status(subcommand.toUpperCase()))
]

const arityOk = (arity: number, count: number): boolean => arity >= 0 ? count === arity : count >= -arity

/** Returns the spec for the command or its subcommand, or an error text if there is no such subcommand. */
export const describedBy = ({ name, spec }: Command, args: ReadonlyArray<string>): CommandSpec | string => {
  if (spec.subcommands.size === 0 || args.length < 2) return spec
  const subcommand = args[1]!
  return spec.subcommands.get(subcommand.toLowerCase()) ??
    `ERR unknown subcommand '${subcommand.slice(0, 128)}'. Try ${name.toUpperCase()} HELP.`
}

/** Returns the error text if the number of arguments is wrong. */
export const arityProblem = ({ arity, name }: CommandSpec, args: ReadonlyArray<string>): string | undefined =>
  arityOk(arity, args.length) ? undefined : `ERR wrong number of arguments for '${name}' command`
