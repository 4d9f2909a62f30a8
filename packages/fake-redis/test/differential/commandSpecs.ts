/**
 * Writes a redis-server's command specs to `src/internal/commandSpecs.generated.ts`:
 *
 *     node packages/fake-redis/test/differential/commandSpecs.ts
 */
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { startServer } from "./realServer.ts"
import type { Connection, Result } from "./resp.ts"
import { open } from "./resp.ts"

type List = ReadonlyArray<Result>

const fieldsOf = (list: Result): Record<string, Result> =>
  Object.fromEntries(
    Array.from({ length: (list as List).length / 2 }, (_, at) => [(list as List)[2 * at], (list as List)[2 * at + 1]])
  )

const place = (search: Result, letters: Readonly<Record<string, string>>): string => {
  const { spec, type } = fieldsOf(search)
  if (type === "unknown") return "?"
  return letters[String(type)]! + Object.values(fieldsOf(spec!)).join(",")
}

/** Formats a key spec as `RO,access:i1:r0,1,0`: flags, where the keys begin, and how to find them from there. */
const keySpec = (spec: Result): string => {
  const fields = fieldsOf(spec)
  const begin = place(fields["begin_search"]!, { index: "i", keyword: "k" })
  const find = place(fields["find_keys"]!, { range: "r", keynum: "n" })
  return `${(fields["flags"] as List).join(",")}:${begin}:${find}`
}

/** A command's group, and the Redis version that introduced it. */
type Origins = ReadonlyMap<string, string>

const originsOf = (docs: Result): Origins => {
  const origins = new Map<string, string>()
  for (const [name, doc] of Object.entries(fieldsOf(docs))) {
    const { group, since, subcommands = [] } = fieldsOf(doc)
    origins.set(name, `${group}|${since}`)
    for (const [sub, origin] of originsOf(subcommands)) origins.set(sub, origin)
  }
  return origins
}

const lines = (command: Result, origins: Origins): ReadonlyArray<string> => {
  const [name, arity, flags, first, last, step, categories, tips, specs, subcommands] = command as List
  const words = (list: Result | undefined, separator: string) => (list as List).join(separator)
  const own = [
    name,
    arity,
    words(flags, " "),
    `${first},${last},${step}`,
    words(categories, " "),
    words(tips, " "),
    (specs as List).map(keySpec).join(" "),
    origins.get(String(name))
  ].join("|")
  const below = (subcommands as List).flatMap((subcommand) => lines(subcommand, origins))
  return [own, ...below.map((line) => line.replace("|", " ")).sort()]
}

/** One line for each command, followed by its subcommands' lines. */
export const commandSpecs = async (connection: Connection): Promise<string> => {
  const [commands, docs] = await connection.send([["COMMAND"], ["COMMAND", "DOCS"]])
  const origins = originsOf(docs!)
  const sorted = (commands as List).slice().sort((a, b) => String((a as List)[0]) < String((b as List)[0]) ? -1 : 1)
  return sorted.flatMap((command) => lines(command, origins)).join("\n")
}

export const moduleOf = (text: string): string =>
  `// Written by test/differential/commandSpecs.ts from the commands that redis-server 7.0 reports.\n` +
  `export const commandSpecs = \`\n${text}\n\`.trim()\n`

export const file = fileURLToPath(new URL("../../src/internal/commandSpecs.generated.ts", import.meta.url))

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await startServer()
  const connection = await open(server.path)
  const text = await commandSpecs(connection)
  writeFileSync(file, moduleOf(text))
  connection.close()
  await server.stop()
}
