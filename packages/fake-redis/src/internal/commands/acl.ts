/** ACL commands: manage users, their passwords and their permissions. */
import { denialText } from "../aclLog.ts"
import type { Command, Handler } from "../command.ts"
import { arityProblem, define, describedBy } from "../command.ts"
import { CATEGORIES } from "../commandSpec.ts"
import type { Context } from "../context.ts"
import { formatDouble, integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Dictionary, Fail, fail, Members, OK, syntaxError } from "../reply.ts"
import { BadRule } from "../selector.ts"
import type { User } from "../users.ts"

const NO_FILE = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the " +
  "ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order " +
  "to store users in the Redis configuration."

const setUser = ({ server }: Context, args: ReadonlyArray<string>): Value => {
  if (/[\s\0]/.test(args[2]!)) return fail("ERR Usernames can't contain spaces or null characters")
  try {
    server.users.set(args[2]!, args.slice(3))
  } catch (error) {
    if (error instanceof BadRule) return fail(`ERR ${error.reason}`)
    throw error
  }
  return OK
}

const deleteUsers = ({ client, server }: Context, names: ReadonlyArray<string>): Value => {
  if (names.includes("default")) return fail("ERR The 'default' user cannot be removed")
  let count = 0
  for (const name of names) {
    const user = server.users.all.get(name)
    if (user === undefined) continue
    server.users.all.delete(name)
    count++
    for (const item of Array.from(server.clients.values())) {
      if (item.user !== user) continue
      if (item === client) server.dropLater(item)
      else server.drop(item)
    }
  }
  return count
}

const getUser = (user: User | undefined): Value => {
  if (user === undefined) return null
  const [root, ...others] = user.selectors
  const rules = (selector: typeof root) => [
    "commands",
    selector!.describedCommands,
    "keys",
    selector!.describedKeys,
    "channels",
    selector!.describedChannels
  ]
  return new Dictionary([
    "flags",
    new Members(user.flags),
    "passwords",
    user.passwords,
    ...rules(root),
    "selectors",
    others.map((selector) => new Dictionary(rules(selector)))
  ])
}

const category = ({ server }: Context, name: string): Value => {
  const word = name.toLowerCase()
  if (!CATEGORIES.includes(word)) return fail(`ERR Unknown category '${name}'`)
  const specs = Array.from(server.commands.values()).flatMap(({ spec }) => [spec, ...spec.subcommands.values()])
  return specs.filter(({ categories }) => categories.includes(`@${word}`)).map(({ name }) => name)
}

const dryRun = ({ server }: Context, args: ReadonlyArray<string>): Value => {
  const user = server.users.all.get(args[2]!)
  if (user === undefined) return fail(`ERR User '${args[2]!}' not found`)
  const call = args.slice(3)
  const command = server.commands.get(call[0]!.toLowerCase())
  const spec = command === undefined ? undefined : describedBy(command, call)
  if (spec === undefined || typeof spec === "string") return fail(`ERR Command '${call[0]!}' not found`)
  const problem = arityProblem(spec, call)
  if (problem !== undefined) return fail(problem)
  const denial = user.denies(spec, call)
  if (denial === undefined) return OK
  return denial.reason === "command"
    ? denialText(denial).replace("NOPERM this", "This")
    : `This user has no permissions to access the '${denial.object}' ${denial.reason}`
}

const log = ({ server }: Context, option: string | undefined): Value => {
  if (option?.toLowerCase() === "reset") {
    server.aclLog.entries = []
    return OK
  }
  const count = option === undefined ? 10 : integer(option)
  return server.aclLog.entries.slice(0, Math.max(0, count)).map((entry) =>
    new Dictionary([
      "count",
      entry.count,
      "reason",
      entry.reason,
      "context",
      entry.context,
      "object",
      entry.object,
      "username",
      entry.username,
      "age-seconds",
      formatDouble((server.now - entry.at) / 1000),
      "client-info",
      entry.client
    ])
  )
}

const password = ({ server }: Context, option: string | undefined): Value => {
  const bits = option === undefined ? 256 : integer(option)
  if (bits < 1 || bits > 4096) {
    return fail(
      "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096"
    )
  }
  let text = ""
  while (text.length < Math.ceil(bits / 4)) text += Math.floor(server.options.random() * 16).toString(16)
  return text
}

const acl: Handler = (context, args) => {
  const { client, server } = context
  if (args.length > 3 && /^(?:cat|genpass|log)$/i.test(args[1]!)) {
    return new Fail(`ERR unknown subcommand or wrong number of arguments for '${args[1]!}'. Try ACL HELP.`)
  }
  switch (args[1]!.toLowerCase()) {
    case "whoami":
      return client.user?.name ?? null
    case "users":
      return Array.from(server.users.all.keys()).sort()
    case "list":
      return Array.from(server.users.all.values()).sort((a, b) => a.name < b.name ? -1 : 1).map((user) =>
        user.describe()
      )
    case "setuser":
      return setUser(context, args)
    case "deluser":
      return deleteUsers(context, args.slice(2))
    case "getuser":
      return getUser(server.users.all.get(args[2]!))
    case "cat":
      return args[2] === undefined ? CATEGORIES : category(context, args[2])
    case "dryrun":
      return dryRun(context, args)
    case "log":
      return log(context, args[2])
    case "genpass":
      return password(context, args[2])
    case "load":
    case "save":
      return fail(NO_FILE)
    default:
      return syntaxError()
  }
}

export const aclCommands: ReadonlyArray<Command> = [define("acl", acl)]
