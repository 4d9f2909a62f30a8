/**
 * Measures the time from the expiry of a killed owner's key until its successor has the mutex, and the commands that
 * the waiters send in the meantime.
 */
import { Effect } from "effect"
import type { AgentError } from "../lib/agent.ts"
import { atDefaults, type Bench, type Entrant } from "../lib/bench.ts"
import { micros } from "../lib/contestant.ts"
import * as Proxy from "../lib/proxy.ts"
import * as Row from "../lib/row.ts"
import { median, quantile, rounded } from "../lib/statistics.ts"
import { freshName, settling } from "./handoff.ts"

const leaseMillis = 800
const waiters = 100

interface TakeOver {
  readonly beyondMillis: number
  /** The commands that all waiters for this mutex have sent since the key's expiry and since the owner was killed. */
  readonly commands: number
  readonly commandsSinceKill: number
}

/** Returns the key whose expiry ends the ownership. */
const keyOf = (contestant: string, name: string): string => {
  switch (contestant) {
    case "ours":
      return `simba:{${name}}`
    case "redis-semaphore":
      return `mutex:${name}`
    case "effect-distributed-lock":
      return `semaphore:${name}`
    default:
      return name
  }
}

/**
 * Several mutexes yield several samples per wait. Peers get only one mutex, because polling peers would be too busy
 * with more.
 */
const mutexesFor = (entrant: Entrant) => entrant.role === "peer" ? 1 : 8

const expiry = (bench: Bench, key: string) =>
  Effect.promise(async () => {
    const asked = micros()
    const left = await bench.admin.pttl(key)
    return (asked + micros()) / 2 + left * 1000
  })

const measure = (bench: Bench, proxy: Proxy.Proxy) =>
  Effect.fnUntraced(function*(entrant: Entrant): Effect.fn.Return<ReadonlyArray<TakeOver>, AgentError, never> {
    const mutexes = mutexesFor(entrant)
    const name = freshName("takeover")
    return yield* Effect.scoped(Effect.gen(function*() {
      const owner = yield* bench.freshAgent(entrant, { leaseMillis })
      const names = Array.from({ length: mutexes }, (_, i) => `${name}-${i}`)
      yield* owner.ask("hold", { prefix: name, count: mutexes })
      const agent = yield* bench.agent(entrant, { url: proxy.url, leaseMillis })
      // With only one mutex, its name is `name` itself
      yield* agent.ask("contend", {
        name: mutexes === 1 ? names[0]! : name,
        contenders: waiters * mutexes,
        places: waiters,
        mutexes,
        holdMillis: 40,
        announces: false
      })
      yield* settling(waiters * mutexes)
      yield* proxy.take({ log: true })
      const killedAt = micros()
      yield* owner.kill
      const ends = yield* Effect.forEach(names, (name) => expiry(bench, keyOf(entrant.contestant, name)))
      yield* Effect.sleep(leaseMillis + 600)
      const { holdings } = yield* agent.ask("taken")
      const { log } = yield* proxy.take()
      yield* agent.ask("stopContending")
      return names.map((name, index): TakeOver => {
        const granted = holdings
          .filter(([contender, at]) => contender % mutexes === index && at > killedAt)
          .reduce((least, [, at]) => Math.min(least, at), Infinity)
        const mine = new RegExp(`${name}(?!\\d)`)
        const sentSince = (since: number) =>
          log.filter(([at, text]) => at > since && at <= granted && mine.test(text)).length
        return {
          beyondMillis: (granted - ends[index]!) / 1000,
          commands: sentSince(ends[index]!),
          commandsSinceKill: sentSince(killedAt)
        }
      })
    }))
  })

export const takeover = Effect.fnUntraced(function*(bench: Bench) {
  const proxy = yield* Proxy.start(bench.server.port, 0)
  yield* Effect.addFinalizer(() => bench.disconnectAll)
  const entrants = atDefaults(bench)
  const outcomes = yield* bench.rounds(
    entrants,
    bench.pace.isQuick ? 2 : 8,
    measure(bench, proxy),
    bench.pace.isQuick ? 1 : 5
  )
  const details = Object.fromEntries(outcomes.map(({ entrant, samples }) => {
    const all = samples.flat()
    const beyond = all.map(({ beyondMillis }) => beyondMillis)
    const spent = all.map(({ commands }) => commands)
    return [entrant.name, {
      takeOvers: all.length,
      p50: rounded(median(beyond)),
      most: rounded(quantile(beyond, 1)),
      commandsMedian: median(spent),
      commandsMost: quantile(spent, 1),
      commandsSinceKillMedian: median(all.map(({ commandsSinceKill }) => commandsSinceKill))
    }]
  }))
  const head = {
    id: "takeover-p99-ms",
    title: "take-over after SIGKILL of the owner, 100 waiters, p99 beyond the key's expiry",
    unit: "ms",
    better: "less"
  } as const
  const p99 = (
    _: ReadonlyArray<number>,
    { samples }: { readonly samples: ReadonlyArray<ReadonlyArray<TakeOver>> }
  ) => quantile(samples.flat().map(({ beyondMillis }) => beyondMillis), 0.99)
  return Row.make(
    bench,
    head,
    outcomes,
    (sample) => quantile(sample.map(({ beyondMillis }) => beyondMillis), 0.99),
    details,
    p99
  )
})
