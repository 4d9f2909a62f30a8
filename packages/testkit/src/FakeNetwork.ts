/**
 * What can go wrong between a client and the fake server, link by link. A link carries the name of its client. All of
 * it is decided by the seed of the server, and each link draws from a stream of its own.
 *
 * **Example** (A reply that never comes)
 *
 * ```ts
 * import { FakeNetwork } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const link = yield* FakeNetwork.link("a")
 *   yield* link.set({ loseReply: 0.5, requestDelay: [1, 20] })
 *   yield* link.partition("replies")
 *   yield* link.heal("replies")
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { FakeRedis } from "./FakeRedis.ts"
import type { Direction as LinkDirection, LinkFaults } from "./internal/client/link.ts"

/**
 * What a link does to each command and message. Delays are in milliseconds, a draw between the two; the others are
 * probabilities. What travels over one connection keeps its order; different connections overtake one another.
 *
 * - `requestDelay`, `replyDelay`: on the way to the server and back.
 * - `messageDelay`: of published messages; by default like replies.
 * - `loseRequest`: the command never arrives. `loseReply`: it was run, and nobody hears of it.
 * - `reset`: the connection breaks after a command was sent. What is under way arrives in part, or not at all.
 * - `straggle`: how much later it arrives: after later commands of a new connection.
 *
 * **Example** (A bad line)
 *
 * ```ts
 * import { FakeNetwork } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const bad: FakeNetwork.Faults = { requestDelay: [5, 200], replyDelay: [5, 200], loseReply: 0.05, reset: 0.01 }
 *
 * const program = Effect.flatMap(FakeNetwork.link("a"), (link) => link.set(bad))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Faults = LinkFaults

/**
 * Towards the server, back from it, or both.
 *
 * @see {@link link}
 * @category models
 * @since 0.1.0
 */
export type Direction = LinkDirection | "both"

/**
 * The network of one client.
 *
 * - `set` replaces what the link does to each command and message from now on.
 * - `clog` holds everything back, in order, until `release`; `clogged` does so while the scope is open.
 * - `partition` cuts the link in one direction or both until `heal`. As with TCP, what was sent arrives after healing
 *   if the connection still stands; clients notice the silence, give their connection up, and cannot make another.
 * - `reset` breaks the connections.
 *
 * Holding is counted: what was cut twice must be healed twice.
 *
 * @see {@link link}
 * @category models
 * @since 0.1.0
 */
export interface Link {
  readonly name: string
  readonly set: (faults: Faults) => Effect.Effect<void>
  readonly clog: (direction?: Direction) => Effect.Effect<void>
  readonly release: (direction?: Direction) => Effect.Effect<void>
  readonly clogged: (direction?: Direction) => Effect.Effect<void, never, Scope.Scope>
  readonly partition: (direction?: Direction) => Effect.Effect<void>
  readonly heal: (direction?: Direction) => Effect.Effect<void>
  readonly reset: Effect.Effect<void>
}

const both = ["requests", "replies"] as const

const directions = (direction: Direction = "both") => direction === "both" ? both : [direction]

/**
 * The link of the client of that name, whether it is there yet or not.
 *
 * **Example** (Five seconds without requests, replies or both, then a broken connection)
 *
 * ```ts
 * import { FakeNetwork } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const silence = (direction: FakeNetwork.Direction) =>
 *   Effect.gen(function*() {
 *     const link = yield* FakeNetwork.link("a")
 *     yield* Effect.scoped(Effect.andThen(link.clogged(direction), TestClock.adjust("5 seconds")))
 *     yield* link.reset
 *   })
 * ```
 *
 * @category accessors
 * @since 0.1.0
 */
export const link = (name: string): Effect.Effect<Link, never, FakeRedis> =>
  FakeRedis.useSync(({ server }) => {
    const link = server.link(name)
    const hold = (direction?: Direction) =>
      Effect.sync(() => directions(direction).forEach((direction) => link.hold(direction)))
    const release = (direction?: Direction) =>
      Effect.sync(() => directions(direction).forEach((direction) => link.release(direction)))
    return {
      name,
      set: (faults) =>
        Effect.sync(() => {
          link.faults = faults
        }),
      clog: hold,
      release,
      clogged: (direction) => Effect.acquireRelease(hold(direction), () => release(direction)),
      partition: hold,
      heal: release,
      reset: Effect.sync(() => link.reset())
    }
  })
