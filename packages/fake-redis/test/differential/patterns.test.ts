/** Matches random patterns against random keys, on the fake and on a redis-server. */
import { assert, it } from "@effect/vitest"
import { bothServers } from "./alike.ts"
import { makeDraw } from "./draw.ts"
import { open } from "./resp.ts"

const { where } = bothServers()

const pick = <A>(draw: () => number, items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!

const texts = (draw: () => number, alphabet: ReadonlyArray<string>, count: number, longest: number) =>
  Array.from(
    { length: count },
    () => Array.from({ length: 1 + Math.floor(draw() * longest) }, () => pick(draw, alphabet)).join("")
  )

it("match the same keys", async () => {
  const draw = makeDraw(7)
  const keys = texts(draw, ["a", "b", "c", "]", "[", "*", "?", "\\", "-", "^", "é"], 150, 6)
  const patterns = texts(draw, ["a", "b", "*", "*", "?", "[", "]", "^", "-", "\\", "[a", "a-c", "é"], 4000, 8)
  const replies: Array<ReadonlyArray<unknown>> = []
  for (const at of [where().real.path, where().fake.port]) {
    const connection = await open(at)
    await connection.send([["FLUSHALL"], ...keys.map((key) => ["SET", key, "1"])])
    const found = await connection.send(patterns.map((pattern) => ["KEYS", pattern]))
    replies.push(found.map((reply) => (reply as ReadonlyArray<string>).toSorted()))
    connection.close()
  }
  const [theirs, own] = replies as [ReadonlyArray<unknown>, ReadonlyArray<unknown>]
  assert.isAbove(theirs.filter((found) => (found as ReadonlyArray<string>).length > 0).length, 500)
  patterns.forEach((pattern, at) => assert.deepStrictEqual(own[at], theirs[at], pattern))
})
