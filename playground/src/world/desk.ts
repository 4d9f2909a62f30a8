/** Passes orders from the page to the fleet's programs, and their leases' remaining time back to the page. */
import type { Simulation } from "@effect-simba/testkit"
import { Effect, Queue } from "effect"

/**
 * `Acquire` holds the mutex for `hold` milliseconds, or until `Release`. If `rest` is set, the process acquires it
 * again after that time.
 */
export type Order =
  | { readonly _tag: "Acquire"; readonly hold?: number | undefined; readonly rest?: number | undefined }
  | { readonly _tag: "Release" }

export class Desk {
  /**
   * For each leader, the remaining lease time that it last read, and the virtual time of that reading, in milliseconds.
   */
  readonly timesLeft = new Map<string, { readonly left: number; readonly at: number }>()
  /** Returns the world's virtual time. */
  now: () => number = () => 0
  private readonly inboxes = new Map<string, (order: Order) => void>()

  /** Opens the inbox in which a process receives orders. The process's next generation gets a new one. */
  open(client: Simulation.Client): Effect.Effect<Queue.Dequeue<Order>> {
    return Effect.map(Queue.unbounded<Order>(), (inbox) => {
      this.inboxes.set(client.name, (order) => Queue.offerUnsafe(inbox, order))
      return inbox
    })
  }

  order(client: string, order: Order): void {
    this.inboxes.get(client)?.(order)
  }
}

/** Waits for a `Release` order, and ignores all others. */
export const released = (inbox: Queue.Dequeue<Order>): Effect.Effect<void> =>
  Effect.asVoid(Effect.repeat(Queue.take(inbox), { until: ({ _tag }) => _tag === "Release" }))

/** Runs `session` for each `Acquire` order, until it ends or a `Release` order arrives. */
export const following = <E, R>(
  inbox: Queue.Dequeue<Order>,
  first: Order | undefined,
  session: (hold: number | undefined) => Effect.Effect<void, E, R>
): Effect.Effect<never, E, R> =>
  Effect.gen(function*() {
    let order = first ?? (yield* Queue.take(inbox))
    for (;;) {
      if (order._tag === "Acquire") {
        const { hold, rest } = order
        const wasReleased = yield* Effect.raceFirst(
          Effect.as(session(hold), false),
          Effect.as(released(inbox), true)
        )
        if (rest !== undefined && !wasReleased) {
          const repeated = Effect.succeed<Order>(order)
          order = yield* Effect.timeoutOrElse(Queue.take(inbox), { duration: rest, orElse: () => repeated })
          continue
        }
      }
      order = yield* Queue.take(inbox)
    }
  })
