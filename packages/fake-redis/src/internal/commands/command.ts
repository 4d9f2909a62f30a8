/** COMMAND: information about the server's commands. */
import type { Command, Handler } from "../command.ts"
import { arityProblem, define, describedBy } from "../command.ts"
import type { CommandSpec, KeySpec } from "../commandSpec.ts"
import { CATEGORIES } from "../commandSpec.ts"
import { globMatch } from "../glob.ts"
import type { KeyUse } from "../keySpecs.ts"
import { keyUses } from "../keySpecs.ts"
import type { Value } from "../reply.ts"
import { Dictionary, fail, Members, Status, syntaxError } from "../reply.ts"
import type { Server } from "../server.ts"

const set = (texts: Iterable<string>): Value => new Members(Array.from(texts, (text) => new Status(text)))

const beginSearch = ({ begin }: KeySpec): Value => {
  switch (begin._tag) {
    case "index":
      return new Dictionary(["type", "index", "spec", new Dictionary(["index", begin.index])])
    case "keyword":
      return new Dictionary([
        "type",
        "keyword",
        "spec",
        new Dictionary(["keyword", begin.keyword.toUpperCase(), "startfrom", begin.from])
      ])
    case "unknown":
      return new Dictionary(["type", "unknown", "spec", new Dictionary([])])
  }
}

const findKeys = ({ find }: KeySpec): Value => {
  switch (find._tag) {
    case "range":
      return new Dictionary([
        "type",
        "range",
        "spec",
        new Dictionary(["lastkey", find.last, "keystep", find.step, "limit", find.limit])
      ])
    case "keynum":
      return new Dictionary([
        "type",
        "keynum",
        "spec",
        new Dictionary(["keynumidx", find.index, "firstkey", find.first, "keystep", find.step])
      ])
    case "unknown":
      return new Dictionary(["type", "unknown", "spec", new Dictionary([])])
  }
}

const keySpec = (spec: KeySpec): Value =>
  new Dictionary(["flags", set(spec.flags), "begin_search", beginSearch(spec), "find_keys", findKeys(spec)])

const describe = (spec: CommandSpec): Value => [
  spec.name,
  spec.arity,
  set(spec.flags),
  ...spec.positions,
  set(spec.categories),
  new Members(Array.from(spec.tips)),
  new Members(spec.keys.map(keySpec)),
  new Members(Array.from(spec.subcommands.values(), describe))
]

/** Finds a command or, for a name such as `client|kill`, a subcommand. */
const find = (server: Server, name: string): CommandSpec | undefined => {
  const [first = "", second] = name.toLowerCase().split("|")
  const spec = server.commands.get(first)?.spec
  return second === undefined ? spec : spec?.subcommands.get(second)
}

const getKeys = (server: Server, args: ReadonlyArray<string>, show: (use: KeyUse) => Value): Value => {
  const command = server.commands.get(args[0]!.toLowerCase())
  const spec = command === undefined ? undefined : describedBy(command, args)
  if (spec === undefined || typeof spec === "string") return fail("ERR Invalid command specified")
  if (spec.keys.length === 0) return fail("ERR The command has no key arguments")
  if (arityProblem(spec, args) !== undefined) return fail("ERR Invalid number of arguments specified for command")
  const uses = keyUses(spec, args) ?? []
  if (uses.length === 0 && !spec.flags.has("no_mandatory_keys")) {
    return fail("ERR Invalid arguments specified for command")
  }
  return uses.map(show)
}

const names = (server: Server): ReadonlyArray<CommandSpec> =>
  Array.from(server.commands.values()).flatMap(({ spec }) => [spec, ...spec.subcommands.values()])

const list = (server: Server, args: ReadonlyArray<string>): Value => {
  if (args.length === 2) return Array.from(server.commands.keys())
  if (args.length !== 5 || args[2]!.toLowerCase() !== "filterby") return syntaxError()
  const value = args[4]!
  switch (args[3]!.toLowerCase()) {
    case "module":
      return []
    case "aclcat":
      return CATEGORIES.includes(value.toLowerCase())
        ? names(server).filter(({ categories }) => categories.includes(`@${value.toLowerCase()}`)).map(({ name }) =>
          name
        )
        : []
    case "pattern":
      return names(server).map(({ name }) => name).filter((name) => globMatch(value.toLowerCase(), name))
    default:
      return syntaxError()
  }
}

const command: Handler = ({ server }, args) => {
  const all = () => Array.from(server.commands.values(), ({ spec }) => spec)
  switch (args[1]?.toLowerCase()) {
    case "count":
      return server.commands.size
    // Redis's summaries are left out
    case "docs":
      return new Dictionary(
        (args.length === 2 ? all() : args.slice(2).flatMap((name) => find(server, name) ?? []))
          .flatMap(({ group, name, since }) => [name, new Dictionary(["since", since, "group", group])])
      )
    case "list":
      return list(server, args)
    case "getkeys":
      return getKeys(server, args.slice(2), ({ key }) => key)
    case "getkeysandflags":
      return getKeys(server, args.slice(2), ({ flags, key }) => [key, set(flags)])
    case "info":
      if (args.length === 2) return all().map(describe)
      return args.slice(2).map((name) => {
        const spec = find(server, name)
        return spec === undefined ? null : describe(spec)
      })
    default:
      return all().map(describe)
  }
}

export const commandCommands: ReadonlyArray<Command> = [define("command", command)]
