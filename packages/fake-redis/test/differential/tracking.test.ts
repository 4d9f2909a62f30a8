/**
 * Compares, byte for byte, the invalidations that clients receive from the fake and from a redis-server, and their
 * order.
 */
import { createFakeRedis } from "@effect-simba/fake-redis"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { openRaw, type RawSocket } from "../rawSocket.ts"
import type { RealServer } from "./realServer.ts"
import { startServer } from "./realServer.ts"

let real: RealServer
let fake: Awaited<ReturnType<typeof createFakeRedis>>

beforeAll(async () => {
  ;[real, fake] = await Promise.all([startServer(), createFakeRedis()])
})

afterAll(() => Promise.all([real.stop(), fake.close()]))

type Where = { readonly port: number } | { readonly path: string }

/**
 * Runs steps such as `b: GET x ; GET y`, which is one packet on connection b. Waits for the effects of each step on
 * every connection before the next step. Returns each connection's output.
 */
const outputs = async (where: Where, steps: ReadonlyArray<string>): Promise<Record<string, string>> => {
  const connections = new Map<string, RawSocket>()
  const names = new Set(steps.map((step) => step[0]!))
  for (const name of [...names].sort()) {
    const connection = await openRaw(where)
    connection.write("HELLO 3\r\n")
    await connection.until((text) => text.includes("modules"))
    connections.set(name, connection)
  }
  const [first] = connections.values()
  first!.write("FLUSHALL\r\n")
  for (const [at, step] of steps.entries()) {
    const commands = step.slice(3).split(" ; ").map((command) =>
      command.replace(/<id of (\w)>/g, (_, name: string) => ids.get(name)!)
    )
    const actor = connections.get(step[0]!)!
    const isSilent = /BLMOVE|QUIT/.test(step)
    // Send ECHO in the same packet: on both servers, messages at the end of the turn come after its reply
    actor.write([...commands, ...isSilent ? [] : [`ECHO turn-${at}`]].map((command) => `${command}\r\n`).join(""))
    if (!isSilent) {
      const text = await actor.until((text) => text.includes(`turn-${at}\r\n`))
      if (step.includes("CLIENT ID")) ids.set(step[0]!, /:([0-9]+)\r\n\$[0-9]+\r\nturn/.exec(text)![1]!)
    }
    // A blocked or closed client gets no reply to ECHO
    const listening = [...connections].filter(([name]) => !step.includes("BLMOVE") || name !== step[0])
      .filter(([, { socket }]) => !socket.destroyed && !socket.readableEnded)
    if (step.includes("QUIT")) {
      await connections.get(step[0]!)!.rest()
      connections.delete(step[0]!)
      continue
    }
    // Start with the acting client: once it has its reply, the other clients' messages have been sent
    listening.sort(([a], [b]) => Number(b === step[0]) - Number(a === step[0]))
    for (const [name, connection] of listening) {
      if (blocked(steps, at, name)) continue
      connection.write(`ECHO step-${at}\r\n`)
      await connection.until((text) => text.includes(`step-${at}\r\n`))
    }
  }
  const texts: Record<string, string> = {}
  for (const [name, connection] of connections) {
    const text = await connection.until(() => true)
    texts[name] = text.slice(text.indexOf("step-0")).replace(/\$[0-9]+\r\n(?:step|turn)-[0-9]+\r\n/g, "|\r\n")
      .replace(/(redirect|broken)\r\n:[1-9][0-9]*\r\n/g, "$1\r\n:id\r\n").replace(/^:[0-9]{2,}\r\n/gm, ":id\r\n")
    connection.socket.destroy()
  }
  return texts
}

const ids = new Map<string, string>()

/** Whether a client is blocked in BLMOVE, because no element has been pushed yet. */
const blocked = (steps: ReadonlyArray<string>, at: number, name: string): boolean =>
  steps.slice(0, at + 1).some((step) => step.startsWith(`${name}: BLMOVE`)) &&
  !steps.slice(0, at + 1).some((step) => step.includes("RPUSH"))

const alike = (title: string, ...steps: ReadonlyArray<string>) =>
  it(title, async () => {
    const theirs = await outputs({ path: real.path }, steps)
    const own = await outputs({ port: fake.port }, steps)
    assert.deepStrictEqual(own, theirs)
  })

alike(
  "a client is notified of the first change to a key that it has read",
  "a: CLIENT TRACKING ON",
  "a: GET k",
  "b: SET k 1",
  "b: SET k 2",
  "a: GET k",
  "a: SET k 3"
)
alike(
  "each key that a command reads is tracked separately",
  "a: CLIENT TRACKING ON",
  "a: MGET k l m",
  "b: MSET k 1 l 2",
  "b: DEL m"
)
alike(
  "broadcasting sends one message for a command, a transaction or a pipeline",
  "a: CLIENT TRACKING ON BCAST",
  "b: MSET k 1 j 2",
  "b: MULTI ; SET z 1 ; SET y 2 ; EXEC",
  "b: SET q 1 ; SET p 2 ; SET q 3",
  "a: SET own 1 ; GET own"
)
alike(
  "broadcasting sends a separate message for each prefix",
  "a: CLIENT TRACKING ON BCAST PREFIX x: PREFIX y: NOLOOP",
  "b: MSET x:1 1 y:1 1 z:1 1",
  "a: SET x:2 1",
  "b: SET x:2 2"
)
alike(
  "overlapping prefixes are rejected",
  "a: CLIENT TRACKING ON BCAST PREFIX foo PREFIX foobar",
  "a: CLIENT TRACKING ON BCAST PREFIX foo",
  "a: CLIENT TRACKING ON BCAST PREFIX foobar",
  "a: CLIENT TRACKING ON BCAST PREFIX fo",
  "a: CLIENT TRACKING ON BCAST PREFIX bar",
  "a: CLIENT TRACKINGINFO",
  "a: CLIENT TRACKING ON BCAST",
  "a: CLIENT TRACKING ON"
)
alike(
  "a client is notified when its redirection target disconnects",
  "c: CLIENT ID",
  "a: CLIENT TRACKING ON REDIRECT <id of c>",
  "a: GET k",
  "b: SET k 1",
  "c: QUIT",
  "a: GET k",
  "b: SET k 2",
  "a: CLIENT TRACKINGINFO",
  "a: GET k",
  "b: SET k 3"
)
alike(
  "scripts track the keys that they read, not those that they write",
  "a: CLIENT TRACKING ON",
  "a: EVAL \"return redis.call('set', KEYS[1], 1)\" 1 w",
  "b: SET w 2",
  "a: EVAL \"return redis.call('get', KEYS[1])\" 1 r",
  "b: SET r 2",
  "a: EVAL \"return redis.call('get', 'other')\" 1 named",
  "b: SET other 1",
  "b: SET named 1",
  "a: EVAL_RO \"return 1\" 1 ro",
  "b: SET ro 1"
)
alike(
  "a blocking command that wakes up notifies tracking clients",
  "a: CLIENT TRACKING ON",
  "a: LRANGE from 0 -1",
  "a: LRANGE to 0 -1",
  "c: CLIENT TRACKING ON",
  "c: LRANGE from 0 -1 ; LRANGE to 0 -1",
  "c: BLMOVE from to LEFT LEFT 0",
  "b: RPUSH from x",
  "b: PING"
)
alike(
  "OPTIN tracks only the keys of commands after CLIENT CACHING YES",
  "a: CLIENT TRACKING ON OPTIN",
  "a: GET k",
  "b: SET k 1",
  "a: CLIENT CACHING YES ; GET k ; GET l",
  "b: MSET k 2 l 2",
  "a: CLIENT CACHING YES ; MULTI ; GET k ; GET l ; EXEC",
  "b: MSET k 3 l 3"
)
alike(
  "tracking clients are notified of expiries and flushes",
  "a: CLIENT TRACKING ON",
  "a: GET k",
  "b: SET k 1 PX 1",
  "b: FLUSHALL",
  "b: FLUSHDB"
)
alike(
  "a key that changes while tracking is off is no longer tracked",
  "a: CLIENT TRACKING ON",
  "a: MGET k l",
  "a: CLIENT TRACKING OFF",
  "b: SET k 1",
  "a: CLIENT TRACKING ON",
  "b: SET k 2",
  "b: SET l 2"
)
alike(
  "SWAPDB affects tracked keys as in Redis",
  "a: CLIENT TRACKING ON",
  "b: SET k 1",
  "a: GET k",
  "b: SWAPDB 0 1",
  "b: SWAPDB 0 1",
  "b: SET k 2"
)
alike("TRACKINGINFO reports the broadcast prefixes", "a: CLIENT TRACKING ON BCAST", "a: CLIENT TRACKINGINFO")
