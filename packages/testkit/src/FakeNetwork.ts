/**
 * Faults between a client and the fake server, link by link.
 *
 * A link is named after its client. The seed of the server determines all faults, and each link has its own random
 * stream.
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
 * The faults of a link, for each command and message.
 *
 * **Details**
 *
 * Delays are in milliseconds, drawn between the two numbers; the others are probabilities. Each connection keeps the
 * order of its messages, except late ones; messages of different connections may overtake each other.
 *
 * - `requestDelay`, `replyDelay`: to the server and back.
 * - `messageDelay`: for published messages. Default: as for replies.
 * - `loseRequest`: the command never arrives.
 * - `loseReply`: the command ran, and its reply never arrives.
 * - `hang`: the command runs, and neither a reply nor a timeout follows. The program waits for at most `lasts`. A
 *   client on a socket gets the reply, and all later ones of the connection, after `lasts`.
 * - `reset`: the connection breaks after a command was sent. Some or none of the messages in flight arrive.
 * - `straggle`: how much later these messages arrive: possibly after commands on a new connection.
 * - `lateMessage`: the delay of a published message that later messages overtake, as between the nodes of a Cluster.
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

type Direction = LinkDirection | "both"

/**
 * The network of one client.
 *
 * **Details**
 *
 * Holds are counted: a link that was cut twice must be healed twice.
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
  /** Replaces the faults from now on. */
  readonly set: (faults: Faults) => Effect.Effect<void>
  /** Holds all messages back, in order, until `release`. */
  readonly clog: (direction?: Direction) => Effect.Effect<void>
  readonly release: (direction?: Direction) => Effect.Effect<void>
  /** Holds all messages back while the scope is open. */
  readonly clogged: (direction?: Direction) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Cuts the link until `heal`. As with TCP, messages arrive after healing if the connection is still open. Clients
   * detect the silence, close their connection, and cannot open another one.
   */
  readonly partition: (direction?: Direction) => Effect.Effect<void>
  readonly heal: (direction?: Direction) => Effect.Effect<void>
  /** Breaks the connections. */
  readonly reset: Effect.Effect<void>
}

const both = ["requests", "replies"] as const

const directions = (direction: Direction = "both") => direction === "both" ? both : [direction]

/**
 * Returns the link of the client with that name, even before the client exists.
 *
 * **Example** (Five seconds without requests, then a broken connection)
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
