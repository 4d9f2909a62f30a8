/**
 * Injects faults between clients and the fake server. Each link has its own faults.
 *
 * A link has the same name as its client, and draws its faults from its own random stream. All streams are derived from
 * the server's seed.
 *
 * **Example** (A reply that never arrives)
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
 * A link's faults, drawn separately for each command and message.
 *
 * **Details**
 *
 * Delays are in milliseconds, drawn from the given range. All other values are probabilities. Each connection keeps its
 * messages in order, except for late messages. Messages on different connections may overtake each other.
 *
 * - `requestDelay`, `replyDelay`: the delay on the way to the server and back.
 * - `messageDelay`: the delay of published messages. Default: `replyDelay`.
 * - `loseRequest`: the command never arrives.
 * - `loseReply`: the command runs, but its reply never arrives.
 * - `hang`: the command runs, but its reply does not arrive and it does not time out. The program must not wait longer
 *   than `lasts`. A client on a socket receives the reply, and all later replies on that connection, after `lasts`.
 * - `reset`: the connection breaks after a command has been sent. Some in-flight commands may still arrive, but no
 *   replies do.
 * - `straggle`: the additional delay of commands that still arrive after a reset. They may arrive after commands on a
 *   new connection.
 * - `lateMessage`: the delay of a published message that later messages overtake, as may happen between Cluster nodes.
 *
 * **Example** (A bad connection)
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

type Direction = LinkDirection | "both"

/**
 * The network between one client and the server.
 *
 * **Details**
 *
 * Partitions are counted: a link that has been cut twice must be healed twice.
 *
 * **Example** (An outage of ten seconds for one client)
 *
 * ```ts
 * import { FakeNetwork } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const outage = Effect.gen(function*() {
 *   const link = yield* FakeNetwork.link("a")
 *   yield* link.partition()
 *   yield* TestClock.adjust("10 seconds")
 *   yield* link.heal()
 * })
 * ```
 *
 * @see {@link link}
 * @category models
 * @since 0.1.0
 */
export interface Link {
  readonly name: string
  /** Replaces the link's faults. */
  readonly set: (faults: Faults) => Effect.Effect<void>
  /** Holds back all messages until `release`, keeping their order. */
  readonly clog: (direction?: Direction) => Effect.Effect<void>
  readonly release: (direction?: Direction) => Effect.Effect<void>
  /** Holds back all messages while the scope is open. */
  readonly clogged: (direction?: Direction) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Cuts the link until `heal`. As with TCP, messages arrive after the link is healed if their connection is still
   * open. Meanwhile, clients detect the silence and close their connections, but cannot open new ones.
   */
  readonly partition: (direction?: Direction) => Effect.Effect<void>
  readonly heal: (direction?: Direction) => Effect.Effect<void>
  /** Breaks all connections. */
  readonly reset: Effect.Effect<void>
}

const both = ["requests", "replies"] as const

const directions = (direction: Direction = "both") => direction === "both" ? both : [direction]

/**
 * Returns the link of the client with this name. The client does not have to exist yet.
 *
 * **Example** (Holding back requests for five seconds, then breaking the connection)
 *
 * ```ts
 * import { FakeNetwork } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const program = Effect.gen(function*() {
 *   const link = yield* FakeNetwork.link("a")
 *   yield* Effect.scoped(Effect.andThen(link.clogged("requests"), TestClock.adjust("5 seconds")))
 *   yield* link.reset
 * })
 * ```
 *
 * @category getters
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
