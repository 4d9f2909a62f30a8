/** Counts the connections that a process opens if it holds many leases and waits for as many others. */
import { Effect } from "effect"
import { atDefaults, type Bench, type Entrant } from "../lib/bench.ts"
import * as Row from "../lib/row.ts"
import { freshName } from "./handoff.ts"

/** Peers get fewer leases and waiters because some of them poll or open a connection for each waiter. */
const countFor = (entrant: Entrant) => entrant.role === "peer" ? 200 : 10_000

const connected = (bench: Bench) =>
  Effect.map(
    Effect.promise(() => bench.admin.client("LIST")),
    (list) => String(list).trim().split("\n").length
  )

/** Lists the waiters. effect-simba has a queue for each mutex, and raw has a channel for each waiter. */
const waiting = (bench: Bench, entrant: Entrant): Effect.Effect<ReadonlyArray<unknown>> =>
  Effect.promise(() => entrant.role === "ours" ? bench.admin.keys("simba:*:contender") : bench.admin.pubsub("CHANNELS"))

const allWait = (bench: Bench, entrant: Entrant, count: number) =>
  entrant.role === "peer"
    ? Effect.sleep("1 second")
    : waiting(bench, entrant).pipe(
      Effect.delay("250 millis"),
      Effect.repeat({ until: (found) => found.length >= count }),
      Effect.timeoutOrElse({
        duration: "1 minute",
        orElse: () => Effect.die(new Error(`fewer than ${count} waiters have queued within a minute`))
      })
    )

const measure = (bench: Bench) =>
  Effect.fnUntraced(function*(entrant: Entrant) {
    const count = countFor(entrant)
    const others = freshName("others")
    const elsewhere = yield* bench.freshAgent(entrant)
    yield* elsewhere.ask("hold", { prefix: others, count })
    const before = yield* connected(bench)
    const agent = yield* bench.freshAgent(entrant)
    yield* agent.ask("hold", { prefix: freshName("mine"), count })
    yield* agent.ask("contend", {
      name: others,
      contenders: count,
      places: 1,
      mutexes: count,
      holdMillis: 0,
      announces: false
    })
    yield* allWait(bench, entrant, count)
    return (yield* connected(bench)) - before
  })

export const connections = Effect.fnUntraced(function*(bench: Bench) {
  const entrants = atDefaults(bench)
  const outcomes = yield* bench.rounds(entrants, 1, measure(bench))
  const head = {
    id: "connections-10000",
    title: "connections of a process with 10,000 leases and 10,000 waiters",
    unit: "connections",
    better: "less"
  } as const
  return Row.make(bench, head, outcomes, (opened) => opened, {
    leasesAndWaiters: Object.fromEntries(entrants.map((entrant) => [entrant.name, countFor(entrant)]))
  })
})
