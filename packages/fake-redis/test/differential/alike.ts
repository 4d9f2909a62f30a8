/** Runs the same commands on the fake and on a redis-server, and compares the replies. */
import { createFakeRedis } from "@effect-simba/fake-redis"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { toPlain } from "./comparison.ts"
import type { RealServer } from "./realServer.ts"
import { startServer } from "./realServer.ts"
import type { Connection } from "./resp.ts"
import { open } from "./resp.ts"

const words = (line: string): ReadonlyArray<string> =>
  (line.match(/"[^"]*"|\S+/g) ?? []).map((word) =>
    word.startsWith("\"") ? word.slice(1, -1).replaceAll("\\n", "\n") : word
  )

/**
 * Runs lines such as `alice: GET x`, which is sent over the connection `alice`. Lines without a name use the first
 * connection.
 */
const run = async (
  connect: () => Promise<Connection>,
  lines: ReadonlyArray<string>
): Promise<ReadonlyArray<unknown>> => {
  const connections = new Map<string, Connection>()
  const replies: Array<unknown> = []
  for (const line of ["FLUSHALL", "CONFIG RESETSTAT", ...lines]) {
    const [, name = "", command = line] = /^(\w+): (.*)$/.exec(line) ?? []
    const connection = connections.get(name) ?? await connect()
    connections.set(name, connection)
    const [result] = await connection.send([words(command)])
    replies.push(`${line} -> ${JSON.stringify(toPlain(result!))}`)
  }
  for (const connection of connections.values()) connection.close()
  return replies
}

/** Starts both servers for the tests in a file. */
export const bothServers = () => {
  let real: RealServer
  let fake: Awaited<ReturnType<typeof createFakeRedis>>
  beforeAll(async () => {
    ;[real, fake] = await Promise.all([startServer(), createFakeRedis()])
  })
  afterAll(() => Promise.all([real.stop(), fake.close()]))

  return {
    where: () => ({ fake: { port: fake.port }, real: { path: real.path } }),
    alike: (title: string, text: string, normalize = (reply: unknown): unknown => reply) =>
      it(title, async () => {
        const lines = text.trim().split("\n").map((line) => line.trim())
        const [own, theirs] = await Promise.all([run(() => open(fake.port), lines), run(() => open(real.path), lines)])
        assert.deepStrictEqual(own.map(normalize), theirs.map(normalize))
      })
  }
}
