/**
 * Runs generated sequences against the engine and a real server. TIME goes before each command and becomes the engine's
 * clock, so that both see the same instant within a millisecond or two.
 */
import { Engine } from "../../src/internal/engine/Engine.ts"
import type { LuaVm } from "../../src/internal/engine/lua.ts"
import { ReplyError } from "../../src/internal/engine/types.ts"
import type { Reply, Session } from "../../src/internal/engine/types.ts"
import { generate, makeDraw } from "./generator.ts"
import { known } from "./known.ts"
import type { Answer, Connection } from "./resp.ts"
import { Refusal } from "./resp.ts"

export interface Difference {
  readonly seed: number
  readonly step: number
  readonly args: ReadonlyArray<string>
  readonly real: string
  readonly fake: string
  readonly context: ReadonlyArray<string>
}

export interface Outcome {
  readonly comparisons: number
  readonly differences: ReadonlyArray<Difference>
  /** How often each accepted difference was seen. */
  readonly accepted: ReadonlyMap<string, number>
}

const BATCH = 100

const UNORDERED: ReadonlySet<string> = new Set([
  "SMEMBERS",
  "SINTER",
  "SUNION",
  "SDIFF",
  "KEYS",
  "HKEYS",
  "HVALS",
  "SPOP",
  "SRANDMEMBER",
  "SSCAN",
  "SCAN",
  "ZSCAN"
])
const PAIRS: ReadonlySet<string> = new Set(["HGETALL", "HSCAN"])
const TIMED: ReadonlySet<string> = new Set(["PTTL", "TTL", "XPENDING", "XINFO", "PEXPIRETIME", "EXPIRETIME", "EXEC"])

const toAnswer = (reply: Reply): Answer => {
  if (reply instanceof ReplyError) return new Refusal(reply.message)
  return Array.isArray(reply) ? (reply as ReadonlyArray<Reply>).map(toAnswer) : reply as Answer
}

const sortText = (items: ReadonlyArray<Answer>): ReadonlyArray<Answer> =>
  items.slice().sort((a, b) => JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)

const pairUp = (items: ReadonlyArray<Answer>): ReadonlyArray<Answer> =>
  Array.from({ length: items.length / 2 }, (_, i) => [items[2 * i]!, items[2 * i + 1]!])

const normalise = (name: string, answer: Answer): Answer => {
  if (answer instanceof Refusal) return new Refusal(answer.text.replace(/ script: [0-9a-f]{40}, on .*$/, "").trim())
  if (!Array.isArray(answer)) return answer
  const list = answer as ReadonlyArray<Answer>
  if (name.endsWith("SCAN") && list.length === 2 && Array.isArray(list[1])) {
    return [list[0]!, sortText(name === "HSCAN" || name === "ZSCAN" ? pairUp(list[1]) : list[1])]
  }
  if (PAIRS.has(name)) return sortText(pairUp(list))
  return UNORDERED.has(name) ? sortText(list) : list
}

const same = (real: Answer, fake: Answer, tolerance: number): boolean => {
  if (real instanceof Refusal || fake instanceof Refusal) {
    return real instanceof Refusal && fake instanceof Refusal && real.text === fake.text
  }
  if (Array.isArray(real)) {
    return Array.isArray(fake) && real.length === fake.length &&
      real.every((item, index) => same(item as Answer, (fake as ReadonlyArray<Answer>)[index]!, tolerance))
  }
  if (typeof real === "number" && typeof fake === "number") return Math.abs(real - fake) <= tolerance
  return real === fake
}

const show = (answer: Answer): string =>
  answer instanceof Refusal
    ? `(error) ${answer.text}`
    : Array.isArray(answer)
    ? `[${(answer as ReadonlyArray<Answer>).map(show).join(", ")}]`
    : JSON.stringify(answer)

const readers: Readonly<Record<string, (key: string) => ReadonlyArray<string>>> = {
  string: (key) => ["GET", key],
  hash: (key) => ["HGETALL", key],
  list: (key) => ["LRANGE", key, "0", "-1"],
  set: (key) => ["SMEMBERS", key],
  zset: (key) => ["ZRANGE", key, "0", "-1", "WITHSCORES"],
  stream: (key) => ["XINFO", "STREAM", key, "FULL", "COUNT", "0"]
}

/** Radix tree sizes are how Redis stores a stream, not what it holds. */
const withoutTree = (answer: Answer): Answer => {
  if (!Array.isArray(answer)) return answer
  const list = (answer as ReadonlyArray<Answer>).slice()
  for (let i = 0; i + 1 < list.length; i += 2) {
    if (list[i] === "radix-tree-keys" || list[i] === "radix-tree-nodes") list[i + 1] = 0
  }
  return list
}

export const run = async (connection: Connection, lua: LuaVm, seed: number, cases: number): Promise<Outcome> => {
  let micros = 0
  const draw = makeDraw(seed)
  const engineDraw = makeDraw(seed + 1)
  const engine = new Engine({ nowMicros: () => micros, random: engineDraw, expiryDelayMillis: [0, 0], lua })
  const session = engine.connect(() => {})
  const differences: Array<Difference> = []
  const accepted = new Map<string, number>()
  const history: Array<string> = []
  const queued: Array<ReadonlyArray<string>> = []
  let comparisons = 0
  let step = 0
  /** The longest pause of the server within a batch, in ms: times may differ by as much. */
  let slack = 0
  await connection.send([["DISCARD"], ["FLUSHALL"], ["SELECT", "0"], ["CONFIG", "SET", "notify-keyspace-events", ""], [
    "SCRIPT",
    "FLUSH"
  ]])

  /** The real answer in place of the engine's, where the difference between them is an accepted one. */
  const accept = (args: ReadonlyArray<string>, real: Answer, fake: Answer): Answer => {
    const reason = same(real, fake, 0) ? undefined : known.find((item) => item.matches(args, real, fake))
    if (reason === undefined) return fake
    accepted.set(reason.name, (accepted.get(reason.name) ?? 0) + 1)
    return real
  }

  const compare = (args: ReadonlyArray<string>, realRaw: Answer, fakeRaw: Answer): boolean => {
    comparisons++
    const name = args[0]!.toUpperCase()
    const tolerance = TIMED.has(name) ? 2 + slack : 0
    let real = normalise(name, realRaw)
    let fake = normalise(name, fakeRaw)
    if (fakeRaw === "QUEUED") queued.push(args)
    if (name === "EXEC" || name === "DISCARD" || name === "RESET") {
      const inside = queued.splice(0)
      const inner = (answer: Answer): Answer =>
        Array.isArray(answer)
          ? (answer as ReadonlyArray<Answer>).map((item, index) =>
            normalise(inside[index]?.[0]?.toUpperCase() ?? "", item)
          )
          : answer
      if (name === "EXEC") {
        const expected = inner(fake)
        real = inner(real)
        // An accepted difference is one inside a transaction, too.
        fake = Array.isArray(real) && Array.isArray(expected)
          ? (expected as ReadonlyArray<Answer>).map((item, index) =>
            accept(inside[index] ?? [], (real as ReadonlyArray<Answer>)[index] ?? null, item)
          )
          : expected
      }
    }
    if (name === "XINFO") {
      real = withoutTree(real)
      fake = withoutTree(fake)
    }
    if (name === "XADD" && args[2] === "*" && typeof real === "string" && typeof fake === "string") {
      return /^[0-9]+-0$/.test(fake) && Math.abs(parseInt(real, 10) - parseInt(fake, 10)) <= 2
    }
    if (same(real, fake, tolerance)) return true
    if (accept(args, real, fake) === real) return true
    differences.push({ seed, step, args, real: show(real), fake: show(fake), context: history.slice(-60) })
    return false
  }

  const execute = (at: Session, args: ReadonlyArray<string>): Answer => {
    let answer: Answer = new Refusal("no reply")
    engine.tick()
    at.execute(args, (reply) => {
      answer = toAnswer(reply)
    })
    return answer
  }

  const both = async (
    commands: ReadonlyArray<ReadonlyArray<string>>
  ): Promise<ReadonlyArray<readonly [Answer, Answer]>> => {
    // TIME would be queued by MULTI, so the clock comes from a connection of its own, just before the batch.
    const answers = await connection.send(commands.flatMap((args) => [["TIME"], args]))
    return commands.map((args, index) => {
      const time = answers[index * 2]
      if (Array.isArray(time)) {
        const next = Number(time[0]) * 1e6 + Number(time[1])
        // A busy machine may stop the server between TIME and the command.
        if (index > 0) slack = Math.min(100, Math.max(slack, Math.ceil((next - micros) / 1000)))
        micros = next
      }
      const real = answers[index * 2 + 1]!
      return [real, execute(session, args)]
    })
  }

  while (comparisons < cases && differences.length < 20) {
    const commands: Array<ReadonlyArray<string>> = []
    while (commands.length < BATCH) commands.push(...generate(draw))
    // TIME must not land in the queue of MULTI: leave the transactions whole by fencing each batch.
    commands.push(["DISCARD"], ["UNWATCH"])
    const answers = await both(commands)
    let clean = true
    commands.forEach((args, index) => {
      step++
      const [real, fake] = answers[index]!
      const ok = compare(args, stripTimes(args, real), fake)
      history.push(`${args.map((arg) => JSON.stringify(arg)).join(" ")} -> ${show(fake).slice(0, 120)}`)
      if (!ok) clean = false
    })
    const before = differences.length
    for (const db of ["0", "1"]) {
      const [keys] = (await both([["SELECT", db], ["KEYS", "*"]])).slice(1)
      compare(["KEYS", "*"], keys![0], keys![1])
      if (!Array.isArray(keys![0])) continue
      const names = keys![0] as ReadonlyArray<string>
      const types = await both(names.map((key) => ["TYPE", key]))
      const probes = names.flatMap((key, index) => [
        readers[String(types[index]![0])]!(key),
        ["PTTL", key]
      ])
      const values = await both(probes)
      probes.forEach((args, index) => compare(args, values[index]![0], values[index]![1]))
    }
    await both([["SELECT", "0"]])
    // State that differs would only repeat the difference.
    if (!clean || differences.length > before) await both([["FLUSHALL"]])
  }
  return { comparisons, differences, accepted }
}

/** The queued TIMEs of a transaction answer among its commands. */
const stripTimes = (args: ReadonlyArray<string>, real: Answer): Answer => {
  if (args[0] !== "EXEC" || !Array.isArray(real)) return real
  return (real as ReadonlyArray<Answer>).filter((item) =>
    !(Array.isArray(item) && item.length === 2 && /^1[0-9]{9}$/.test(String(item[0])) &&
      /^[0-9]{1,6}$/.test(String(item[1])))
  )
}
