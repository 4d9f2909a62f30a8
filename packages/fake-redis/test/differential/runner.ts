/**
 * Runs generated commands on the fake and on a real server. Sends TIME to the real server before each command, and sets
 * the engine's clock to the reply, so that both clocks agree within a millisecond or two.
 */
import { Engine } from "../../src/internal/engine.ts"
import type { LuaVm } from "../../src/internal/lua/script.ts"
import type { Normal } from "./comparison.ts"
import { isList, normalise, same, show, toResult } from "./comparison.ts"
import { makeDraw } from "./draw.ts"
import { initialSettings } from "./examples.ts"
import { generate } from "./generator.ts"
import { known } from "./known.ts"
import type { Connection, Result } from "./resp.ts"
import { Refusal } from "./resp.ts"
import { scansOf, walk } from "./scans.ts"
import type { Trackers } from "./trackers.ts"

type Args = ReadonlyArray<string>

export interface Difference {
  readonly seed: number
  readonly step: number
  readonly args: Args
  readonly real: string
  readonly fake: string
  /** The preceding commands, with the fake's results. */
  readonly context: ReadonlyArray<string>
}

export interface Outcome {
  readonly comparisons: number
  readonly differences: ReadonlyArray<Difference>
  /** The number of occurrences of each accepted difference. */
  readonly accepted: ReadonlyMap<string, number>
}

const BATCH = 100

/** The command that reads a key of each type. A key that has just expired has type `none`. */
const readers: Readonly<Record<string, (key: string) => Args>> = {
  none: (key) => ["EXISTS", key],
  string: (key) => ["GET", key],
  hash: (key) => ["HGETALL", key],
  list: (key) => ["LRANGE", key, "0", "-1"],
  set: (key) => ["SMEMBERS", key],
  zset: (key) => ["ZRANGE", key, "0", "-1", "WITHSCORES"],
  stream: (key) => ["XINFO", "STREAM", key, "FULL", "COUNT", "0"]
}

const quote = (args: Args): string => args.map((arg) => JSON.stringify(arg)).join(" ")

export const describe = (difference: Difference, context = 4): string => {
  const { args, fake, real, seed, step } = difference
  return [
    `seed ${seed}, step ${step}: ${quote(args)}`,
    `  real ${real}`,
    `  fake ${fake}`,
    ...difference.context.slice(difference.context.length - context).map((line) => `    ${line}`)
  ].join("\n")
}

/** Removes the replies to the TIME commands that were queued between a transaction's commands. */
const withoutTimes = (args: Args, real: Result): Result => {
  if (args[0] !== "EXEC" || !isList(real)) return real
  return real.filter((item) =>
    !(isList(item) && item.length === 2 && /^1[0-9]{9}$/.test(String(item[0])) && /^[0-9]{1,6}$/.test(String(item[1])))
  )
}

/** The server under test. `micros` is the real server's time before the command, if it is known. */
export interface Fake {
  readonly send: (
    commands: ReadonlyArray<readonly [args: Args, micros: number | undefined]>
  ) => ReadonlyArray<Result> | Promise<ReadonlyArray<Result>>
}

/** Runs commands on the engine, with the real server's clock. */
export const engineFake = (lua: LuaVm, seed: number): Fake => {
  let micros = 0
  const engine = new Engine({ nowMicros: () => micros, random: makeDraw(seed + 1), expiryDelayMillis: [0, 0], lua })
  const session = engine.connect(() => {})
  return {
    send: (commands) =>
      commands.map(([args, at]) => {
        micros = at ?? micros
        let result: Result = new Refusal("no reply")
        engine.tick()
        session.execute(args, (reply) => {
          result = toResult(reply)
        })
        return result
      })
  }
}

/** Runs commands on a server behind a socket, which has its own clock. */
export const socketFake = (connection: Connection): Fake => ({
  send: (commands) => connection.send(commands.map(([args]) => args))
})

/**
 * Compares the servers on `cases` commands. `tolerance` is the allowed difference between times in milliseconds, in
 * addition to the real server's longest pause. `trackers` are clients that receive invalidations from both servers.
 */
export const run = async (
  connection: Connection,
  server: Fake,
  seed: number,
  cases: number,
  { tolerance = 2, trackers }: { readonly tolerance?: number; readonly trackers?: Trackers } = {}
): Promise<Outcome> => {
  let micros = 0
  const draw = makeDraw(seed)
  const differences: Array<Difference> = []
  const accepted = new Map<string, number>()
  const history: Array<string> = []
  const queued: Array<Args> = []
  let comparisons = 0
  let step = 0
  let encoding: Normal = null
  /** The real server's longest pause so far, in milliseconds. Times may differ by this much. */
  let slack = 0

  const both = async (commands: ReadonlyArray<Args>): Promise<ReadonlyArray<readonly [Result, Result]>> => {
    const real = await connection.send(commands.flatMap((args) => [["TIME"], args]))
    const dated = commands.map((args, index): readonly [Args, number | undefined] => {
      const time = real[index * 2]!
      // Inside MULTI, the server only queues TIME.
      if (!isList(time)) return [args, undefined]
      const next = Number(time[0]) * 1e6 + Number(time[1])
      // On a busy machine, the server may pause between TIME and the command.
      if (index > 0) slack = Math.min(100, Math.max(slack, Math.ceil((next - micros) / 1000)))
      micros = next
      return [args, next]
    })
    const fake = await server.send(dated)
    return commands.map((_, index) => [real[index * 2 + 1]!, fake[index]!])
  }

  const sendNow = async (commands: ReadonlyArray<Args>) => await server.send(commands.map((args) => [args, undefined]))

  const agree = (args: Args, real: Normal, fake: Normal): boolean => {
    const before = encoding
    if (args[0] === "OBJECT" && args[1] === "ENCODING") encoding = real
    if (same(real, fake, tolerance + slack)) return true
    const reason = known.find((item) => item.matches(args, real, fake, before))
    if (reason === undefined) return false
    accepted.set(reason.name, (accepted.get(reason.name) ?? 0) + 1)
    return true
  }

  /** Compares each result in a transaction like the result of a single command. */
  const agreeOnAll = (commands: ReadonlyArray<Args>, real: ReadonlyArray<Result>, fake: ReadonlyArray<Result>) =>
    real.length === fake.length && real.every((item, index) => {
      const args = commands[index] ?? []
      const name = args[0]?.toUpperCase() ?? ""
      return agree(args, normalise(name, item), normalise(name, fake[index]!))
    })

  const compare = (args: Args, real: Result, fake: Result): boolean => {
    comparisons++
    const name = args[0]!.toUpperCase()
    if (fake === "QUEUED") queued.push(args)
    const commands = ["EXEC", "DISCARD", "RESET"].includes(name) ? queued.splice(0) : []
    const ok = name === "EXEC" && isList(real) && isList(fake)
      ? agreeOnAll(commands, real, fake)
      : agree(args, normalise(name, real), normalise(name, fake))
    if (!ok) differences.push({ seed, step, args, real: show(real), fake: show(fake), context: history.slice(-260) })
    return ok
  }

  await connection.send([
    ["DISCARD"],
    ["FLUSHALL"],
    ["SELECT", "0"],
    initialSettings,
    ["SCRIPT", "FLUSH"]
  ])
  while (comparisons < cases && differences.length < 20) {
    const before = differences.length
    if (trackers !== undefined) {
      const [real, fake] = await trackers.begin(draw)
      compare(trackers.command, real, fake)
    }
    const commands: Array<Args> = []
    while (commands.length < BATCH) commands.push(...generate(draw))
    // Close an open transaction, or it would queue later commands.
    commands.push(["DISCARD"], ["UNWATCH"])
    const results = await both(commands)
    commands.forEach((args, index) => {
      step++
      const [real, fake] = results[index]!
      compare(args, withoutTimes(args, real), fake)
      history.push(`${quote(args)} -> ${show(fake).slice(0, 120)}`)
    })
    for (const db of ["0", "1"]) {
      const [keys] = (await both([["SELECT", db], ["KEYS", "*"]])).slice(1)
      compare(["KEYS", "*"], keys![0], keys![1])
      if (!isList(keys![0])) continue
      const names = keys![0] as ReadonlyArray<string>
      const types = await both(names.map((key) => ["TYPE", key]))
      const probes = names.flatMap((key, index) => [readers[String(types[index]![0])]!(key), ["PTTL", key]])
      const values = await both(probes)
      probes.forEach((args, index) => compare(args, values[index]![0], values[index]![1]))
      for (const args of scansOf(draw, names.map((key, index) => [key, String(types[index]![0])]))) {
        const [theirs, own] = [await walk(connection.send, args), await walk(sendNow, args)]
        compare(args, theirs, own)
      }
    }
    if (trackers !== undefined) {
      const [real, fake] = await trackers.end(commands)
      compare(trackers.command, real, fake)
    }
    await both([["SELECT", "0"]])
    // Start from equal data again, or every later comparison would repeat the difference.
    if (differences.length > before) await both([["FLUSHALL"]])
  }
  return { comparisons, differences, accepted }
}
