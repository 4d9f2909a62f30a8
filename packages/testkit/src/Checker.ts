/**
 * Rules that must hold in every history of a simulation.
 *
 * Checkers read the server. They need from programs only what a server cannot know: when protected work begins and
 * ends, and what a lease returned.
 *
 * Programs report these facts with `client.note(kind, { resource, id, ... })`:
 *
 * - `waiting`, `waited`: the program requests a `resource`, then owns it (`served` is 1) or has given up; `wait`
 *   identifies the wait. `recovery` is how long after a fault the next request may take, in milliseconds.
 * - `granted`: the program owns the resource, with `id`, and with `token` if there is one.
 * - `ensured`: the lease has just confirmed that it is held; `left` is the number of milliseconds until its deadline.
 * - `begin`, `step`, `stopped`, `end`: protected work under `id`; after `stopped` only its finalizers run.
 * - `writing`: the program sends the write named `write` to an external resource, under `id`. The resource notes
 *   `written`, with the write's `token`, and whether it was `accepted` (1 or 0).
 *
 * **Example** (The rules that fit a lock)
 *
 * ```ts
 * import { Checker } from "@effect-simba/testkit"
 *
 * // These read only the server
 * const always = [Checker.rules.oneOwner, Checker.rules.nothingIsLeft]
 *
 * // For leases with tokens, where programs note `granted` and `ensured`
 * const leases = [Checker.rules.tokensGrow, Checker.rules.ensureIsTruthful, Checker.rules.noFlapping({ recovery: "1 second" })]
 *
 * // For programs that note `begin`, `step`, `stopped`, `end`, and `writing`
 * const work = [Checker.rules.workIsProtected, Checker.rules.workNeverOverlaps, Checker.rules.releasedAfterWork, Checker.rules.writesAreFenced]
 *
 * // For locks that queue, where programs note `waiting` and `waited`
 * const order = [
 *   Checker.rules.firstComeFirstServed,
 *   Checker.rules.inOrderWithinLines,
 *   Checker.rules.servedInTurn({ barges: 0, turn: "5 seconds", recovery: "1 second" }),
 *   Checker.rules.nobodyOversleeps({ bound: "2 seconds", afterLoss: "20 seconds" }),
 *   Checker.rules.everybodyIsServed
 * ]
 * ```
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as arrivalOrder from "./internal/checkers/arrivalOrder.ts"
import { beliefs } from "./internal/checkers/excuses.ts"
import { field } from "./internal/checkers/fields.ts"
import * as ownership from "./internal/checkers/ownership.ts"
import * as turns from "./internal/checkers/turns.ts"
import * as waits from "./internal/checkers/waits.ts"
import * as work from "./internal/checkers/work.ts"
import { all as allOf } from "./internal/simulation/ownershipTracker.ts"
import type { Checker as AnyChecker } from "./internal/simulation/setup.ts"

/**
 * A rule for every history: it receives each event and reports violations.
 *
 * **Example** (No work takes longer than a second)
 *
 * ```ts
 * import type { Checker } from "@effect-simba/testkit"
 *
 * const isBrief: Checker.Checker = {
 *   name: "work is brief",
 *   start: (view) => {
 *     const since = new Map<unknown, number>()
 *     return {
 *       onEvent: (event) => {
 *         if (event._tag !== "Note") return
 *         const id = event.fields["id"]
 *         if (event.kind === "begin") since.set(id, event.at)
 *         if (event.kind === "end" && event.at - since.get(id)! > 1000) view.violated(`${id} worked for too long`)
 *       }
 *     }
 *   }
 * }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Checker = AnyChecker

const whatTheServerSays = (name: string, kinds: ReadonlyArray<string>, act: string, timers: boolean): Checker => ({
  name,
  start: (view) => {
    const { isExcused, onEvent } = beliefs(view)
    return {
      onEvent: (event) => {
        onEvent(event)
        if (event._tag !== "Note" || !kinds.includes(event.kind)) return
        const id = field(event.fields, "id")
        const resource = field(event.fields, "resource")
        if (event.kind === "ensured" && Number(event.fields["left"]) <= 0) {
          return view.violated(`ensure of ${id} passed after its deadline`)
        }
        const owner = view.owner(resource)?.id
        if (owner === id || isExcused(event.client, resource, id, timers)) return
        view.violated(`${id} ${act} while ${resource} belonged to ${owner ?? "nobody"}`)
      }
    }
  }
})

const releasedAfterWork: Checker = {
  name: "released after the work ended",
  start: (view) => {
    const working = new Map<string, string>()
    return {
      onEvent: (event) => {
        if (event._tag === "Note") {
          const id = field(event.fields, "id")
          if (event.kind === "begin") working.set(id, event.client)
          else if (event.kind === "end") working.delete(id)
        } else if (event._tag === "Fault" && event.fault === "kill") {
          for (const [id, client] of [...working]) if (client === event.target) working.delete(id)
        } else if (event._tag === "Command") {
          for (const { id, resource } of allOf(view.lock.released?.(event.command.args, event.command.reply))) {
            if (working.has(id)) view.violated(`${id} released ${resource} while its work was running`)
          }
        }
      }
    }
  }
}

const nothingIsLeft: Checker = {
  name: "nothing is left behind",
  start: (view) => ({
    onClosed: () => {
      const keep = view.lock.keep ?? (() => false)
      const keys = view.keys().filter(({ expiresAt, key }) => !keep(key, expiresAt !== undefined)).map(({ key }) => key)
      if (keys.length > 0) view.violated(`keys are left: ${keys.join(", ")}`)
      const rest = {
        subscriptions: view.subscriptions(),
        connections: view.connections(),
        fibers: view.fibers(),
        timers: view.timers()
      }
      for (const [what, count] of Object.entries(rest)) if (count > 0) view.violated(`${count} ${what} are left`)
    }
  })
}

/**
 * Each rule by its name, for simulations that do not fit `all`.
 *
 * @category testing
 * @since 0.1.0
 */
export const rules: {
  /** An owner has a successor only after its release, after its lease expired, or after the server lost data. */
  readonly oneOwner: Checker
  /**
   * Each grant has a larger token than all before it, unless the server lost data, and the owner receives that token.
   */
  readonly tokensGrow: Checker
  /**
   * `ensure` succeeds only before the local deadline, and only while the server agrees.
   *
   * Exceptions: the server lost data since the grant, its wall clock stepped forward since the first request, the
   * client's wall clock was set while its machine was suspended, the process is in its first turn after a pause, or the
   * lease was released by force, for as long as it would have lasted.
   */
  readonly ensureIsTruthful: Checker
  /**
   * Protected work takes steps only while its lease is valid on the server.
   *
   * The exceptions are those of `ensureIsTruthful`.
   */
  readonly workIsProtected: Checker
  /** No process releases a resource that its own work still uses. */
  readonly releasedAfterWork: Checker
  /**
   * Protected work does not start while other work runs, under another lease or the same one.
   *
   * Exceptions: the process of the other work was paused past its deadline, the server lost data, or its wall clock was
   * stepped. After `stopped` only finalizers run, which may continue.
   */
  readonly workNeverOverlaps: Checker
  /**
   * Resources that check tokens accept no write with a smaller token after one with a larger token.
   *
   * The rule watches `fencedKey` in Redis, unless the server lost data since, and external resources. The external
   * resource refuses no write whose lease was valid on the server when it was sent, unless the server lost data or its
   * wall clock was stepped since.
   */
  readonly writesAreFenced: Checker
  /**
   * Among subscribed waiters, the earliest place is granted first.
   *
   * Exceptions: since it queued, the server lost data, its wall clock was stepped,
   * or a fault affected the waiter. Ids of one `line` are not compared.
   */
  readonly firstComeFirstServed: Checker
  /**
   * Waiters of one process for one resource are served in the order in which they noted `waiting`.
   *
   * Exceptions: waiters that give up, or were affected by a fault since. `all` leaves it out, because it
   * applies only to locks whose waiters form a line within the process.
   */
  readonly inOrderWithinLines: Checker
  /**
   * Every grant that ends without work has a reason.
   *
   * A grant is wasted when its owner has neither noted `granted` nor released it. Reasons are a fault that affected the
   * owner since `recovery` before the grant, a loss of data, and a step of the server's clock. `bound` (default 0)
   * consecutive grants may be wasted without a reason. So this finds a lock that passes from owner to owner without any
   * work.
   */
  readonly noFlapping: (
    options: { readonly recovery: Duration.Input; readonly bound?: number }
  ) => Checker
  /**
   * While a waiter is subscribed and undisturbed, others get no more grants than were ahead of it when it queued, plus
   * `barges`.
   *
   * `barges` is how often others may barge in without queueing. Each turn takes at most `turn`. After a fault and
   * `recovery`, the count of a waiter starts from zero.
   *
   * The places of `foreign` ids are unknown: their grants are barges, and their waits are not checked. While there are
   * faults, a barge within `notice` (default zero) after the lock became free does not count: it won a race against the
   * message to the next waiter, which can happen repeatedly.
   *
   * With or without faults, a barge within `race` (default zero) after the lock became free does not count if the next
   * request arrives within that time, too: the notified waiter lost a race. Pass the time of a message and a request.
   * More than 40 lost races in a row are a violation.
   *
   * `foreignPlace` returns the place that a foreign contender takes if it queues at this time of the server, in
   * milliseconds since 1970. A grant to a foreign contender does not count as long as that place is ahead of the
   * waiter's.
   */
  readonly servedInTurn: (options: {
    readonly barges: number
    readonly turn: Duration.Input
    readonly recovery: Duration.Input
    readonly notice?: Duration.Input
    readonly race?: Duration.Input
    readonly foreignPlace?: (serverNow: number) => number
    readonly foreign?: (id: string) => boolean
  }) => Checker
  /**
   * While the lock is free, no undisturbed waiter sleeps longer than `bound`.
   *
   * The limit is `afterLoss` if the server lost the owner or its clock was stepped, or if several others are
   * unresponsive. For a paused or suspended waiter, time counts from its resumption. A disturbed waiter has `recovery`
   * (default zero) to retry: a lost command costs its timeout and the pause after it.
   */
  readonly nobodyOversleeps: (options: {
    readonly bound: Duration.Input
    readonly afterLoss: Duration.Input
    readonly recovery?: Duration.Input | undefined
  }) => Checker
  /** When faults are over, all current waiters are served before the liveness phase ends. */
  readonly everybodyIsServed: Checker
  /**
   * When all scopes are closed, nothing is left: no keys except those that may remain, no subscription, connection,
   * fiber or timer.
   */
  readonly nothingIsLeft: Checker
} = {
  oneOwner: ownership.oneOwner,
  tokensGrow: ownership.tokensGrow,
  ensureIsTruthful: whatTheServerSays(
    "ensure is truthful",
    ["ensured"],
    "passed ensure",
    false
  ),
  workIsProtected: whatTheServerSays("work is protected", ["begin", "step"], "worked", true),
  releasedAfterWork,
  workNeverOverlaps: work.workNeverOverlaps,
  writesAreFenced: work.writesAreFenced,
  firstComeFirstServed: arrivalOrder.firstComeFirstServed,
  inOrderWithinLines: arrivalOrder.inOrderWithinLines,
  noFlapping: turns.noFlapping,
  servedInTurn: turns.servedInTurn,
  nobodyOversleeps: waits.nobodyOversleeps,
  everybodyIsServed: waits.everybodyIsServed,
  nothingIsLeft
}

/**
 * All checkers for a lock with tokens, a queue and protected work.
 *
 * **Example** (A lock that polls every 1.5 seconds)
 *
 * ```ts
 * import { Checker } from "@effect-simba/testkit"
 *
 * const strict = Checker.all({ sleepBound: "2 seconds", sleepBoundAfterLoss: "20 seconds" })
 * ```
 *
 * @category testing
 * @since 0.1.0
 */
export const all = (options: {
  /** The `bound` of `nobodyOversleeps`. */
  readonly sleepBound: Duration.Input
  /** The `afterLoss` of `nobodyOversleeps`. Default: `sleepBound`. */
  readonly sleepBoundAfterLoss?: Duration.Input | undefined
  /** The `recovery` of `nobodyOversleeps` and `noFlapping`. Default: 0. */
  readonly recovery?: Duration.Input | undefined
}): ReadonlyArray<Checker> => [
  rules.oneOwner,
  rules.tokensGrow,
  rules.ensureIsTruthful,
  rules.workIsProtected,
  rules.releasedAfterWork,
  rules.workNeverOverlaps,
  rules.writesAreFenced,
  rules.firstComeFirstServed,
  rules.nobodyOversleeps({
    bound: options.sleepBound,
    afterLoss: options.sleepBoundAfterLoss ?? options.sleepBound,
    recovery: options.recovery
  }),
  rules.noFlapping({ recovery: options.recovery ?? 0 }),
  rules.everybodyIsServed,
  rules.nothingIsLeft
]
