/** Compares complete scans. Page boundaries may differ between the servers, but the elements found must not. */
import { isList } from "./comparison.ts"
import type { Draw } from "./draw.ts"
import type { Result } from "./resp.ts"

type Args = ReadonlyArray<string>

const scanners: Readonly<Record<string, string>> = { hash: "HSCAN", set: "SSCAN", zset: "ZSCAN" }

const options: ReadonlyArray<Args> = [
  [],
  ["COUNT", "1"],
  ["COUNT", "2"],
  ["COUNT", "10"],
  ["MATCH", "*[0-9]", "COUNT", "1"],
  ["MATCH", "[a-c]", "COUNT", "2"]
]

const types: ReadonlyArray<Args> = [[], [], ["TYPE", "hash"], ["TYPE", "string"], ["TYPE", "stream"]]

const pick = <A>(draw: Draw, items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!

/** The scans to compare: one of the keyspace, and one of each key whose type has a scan command. */
export const scansOf = (
  draw: Draw,
  keys: ReadonlyArray<readonly [key: string, type: string]>
): ReadonlyArray<Args> => [
  ["SCAN", "0", ...pick(draw, options), ...pick(draw, types)],
  ...keys.flatMap(([key, type]) => {
    const name = scanners[type]
    return name === undefined ? [] : [[name, key, "0", ...pick(draw, options)]]
  })
]

/** Scans to the end. Returns all elements found, sorted and without duplicates, or the error. */
export const walk = async (
  send: (commands: ReadonlyArray<Args>) => Promise<ReadonlyArray<Result>>,
  args: Args
): Promise<Result> => {
  const at = args[0] === "SCAN" ? 1 : 2
  const width = args[0] === "HSCAN" || args[0] === "ZSCAN" ? 2 : 1
  const found = new Set<string>()
  let cursor = "0"
  do {
    const [page] = await send([args.with(at, cursor)])
    if (!isList(page!)) return page!
    const [next, items] = page as readonly [string, ReadonlyArray<Result>]
    for (let i = 0; i < items.length; i += width) found.add(JSON.stringify(items.slice(i, i + width)))
    cursor = next
  } while (cursor !== "0")
  return ["0", [...found].sort()]
}
