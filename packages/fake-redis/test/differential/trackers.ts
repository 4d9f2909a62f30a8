/** Two clients, one on each server, that track keys. Both must receive the same messages while other clients write. */
import { openRaw } from "../rawSocket.ts"
import type { Draw } from "./draw.ts"
import type { Result } from "./resp.ts"

export interface Trackers {
  /** Stands for the command when a difference is reported. */
  readonly command: ReadonlyArray<string>
  /** Starts tracking random keys in a random mode. Returns both servers' replies. */
  readonly begin: (draw: Draw) => Promise<readonly [Result, Result]>
  /** Returns what both clients have received since `begin`, while `commands` ran. */
  readonly end: (commands: ReadonlyArray<ReadonlyArray<string>>) => Promise<readonly [Result, Result]>
  readonly close: () => void
}

const modes = [
  "ON",
  "ON",
  "ON NOLOOP",
  "ON OPTOUT",
  "ON BCAST",
  "ON BCAST PREFIX s PREFIX h",
  "ON BCAST PREFIX x1 NOLOOP",
  "ON BCAST PREFIX s PREFIX s1",
  "ON OPTIN BCAST",
  "ON FOO"
]

/** Commands whose replies have a defined order. Most read keys. */
const reads = [
  "GET s1",
  "GET s2",
  "MGET s1 s2 s3",
  "STRLEN s3",
  "HLEN h1",
  "HGET h2 f1",
  "LRANGE l1 0 -1",
  "LLEN l2",
  "SCARD t1",
  "SISMEMBER t2 a",
  "ZRANGE z1 0 -1",
  "ZCARD z2",
  "XLEN x1",
  "EXISTS s1 h1 x2",
  "TYPE z3",
  "EVAL \"return redis.call('exists', KEYS[1])\" 1 t3",
  "EVAL_RO \"return redis.call('exists', 'x2')\" 1 l2",
  "SET s3 written",
  "SINTERCARD 2 t1 t2",
  "CLIENT CACHING NO",
  "CLIENT CACHING YES"
]

const pick = <A>(draw: Draw, items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!

/** The keys of all messages, without duplicates. The grouping into messages depends on the server's event loop. */
const keysOf = (text: string): ReadonlyArray<string> =>
  [...new Set([...text.matchAll(/\$[0-9]+\r\n([a-z]+[0-9]?)\r\n/g)].map(([, key]) => key!))].sort()

type Where = { readonly port: number } | { readonly path: string }

export const openTrackers = async (real: Where, fake: Where): Promise<Trackers> => {
  const sockets = [await openRaw(real), await openRaw(fake)]
  let steps = 0
  let isBroadcast = false
  let from = [0, 0]
  /** Sends commands. Returns everything that arrived since the previous call, including the replies. */
  const ask = async (commands: ReadonlyArray<string>): Promise<readonly [Result, Result]> => {
    const mark = `step-${++steps}`
    const texts: Array<string> = []
    for (const [index, socket] of sockets.entries()) {
      socket.write([...commands, `ECHO ${mark}`].map((command) => `${command}\r\n`).join(""))
      const text = await socket.until((text) => text.includes(`${mark}\r\n`))
      texts.push(text.slice(from[index], text.indexOf(`$${mark.length}\r\n${mark}`)))
      from = from.with(index, text.length)
    }
    return [texts[0]!, texts[1]!]
  }
  await ask(["HELLO 3"])
  return {
    command: ["the tracking client"],
    begin: (draw) => {
      const mode = pick(draw, modes)
      isBroadcast = mode.includes("BCAST")
      const some = Array.from({ length: 12 }, () => pick(draw, reads))
      return ask(["CLIENT TRACKING OFF", `CLIENT TRACKING ${mode}`, "CLIENT TRACKINGINFO", ...some])
    },
    end: async (commands) => {
      const [theirs, own] = await ask([])
      // Redis does not broadcast the changes in a turn that flushes the database
      if (isBroadcast && commands.some(([name]) => name === "FLUSHDB")) return [null, null]
      return isBroadcast ? [keysOf(String(theirs)), keysOf(String(own))] : [theirs, own]
    },
    close: () => sockets.forEach(({ socket }) => socket.destroy())
  }
}
