/** Replaces passwords in the arguments that MONITOR and the slow log show. */
import type { CommandSpec } from "./commandSpec.ts"

const REDACTED = "(redacted)"

const secretFrom = ({ name }: CommandSpec, args: ReadonlyArray<string>): (at: number) => boolean => {
  switch (name) {
    case "auth":
      return (at) => at > 0
    case "hello": {
      const auth = args.findIndex((arg) => arg.toLowerCase() === "auth")
      return (at) => auth > 0 && (at === auth + 1 || at === auth + 2)
    }
    case "acl|setuser":
      return (at) => at > 1
    case "config|set":
      return (at) => at > 2 && args[at - 1]!.toLowerCase() === "requirepass"
    default:
      return () => false
  }
}

export const redacted = (spec: CommandSpec, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  const isSecret = secretFrom(spec, args)
  return args.map((arg, at) => isSecret(at) ? REDACTED : arg)
}
