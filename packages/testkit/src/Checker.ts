/**
 * Rules that every simulation history must obey.
 *
 * Checkers read the server's state directly. Programs only have to report what a server cannot know: when protected
 * work begins and ends, and what a lease returned.
 *
 * Programs report this with `client.note(kind, { resource, id, ... })`:
 *
 * - `waiting`, `waited`: the program requests a `resource`, and later owns it (`served` is 1) or gives up. `wait`
 *   identifies the wait. `recovery` is the maximum time in milliseconds between a fault and the next request.
 * - `granted`: the program owns the resource as `id`, with a `token` if leases have tokens.
 * - `ensured`: the lease has just confirmed that it is still held, with `left` milliseconds until its deadline.
 * - `begin`, `step`, `stopped`, `end`: protected work by the owner `id`. After `stopped`, only finalizers run.
 * - `writing`: the owner `id` sends the write named `write` to an external resource. The resource then notes `written`,
 *   with the write's `token` and whether it was `accepted` (1 or 0).
 *
 * **Example** (Choosing rules for a lock)
 *
 * ```ts
 * import { Checker } from "@effect-simba/testkit"
 *
 * // These rules read only the server
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
import { forgetFallen } from "./internal/checkers/fallen.ts"
import { field } from "./internal/checkers/fields.ts"
import * as ownership from "./internal/checkers/ownership.ts"
import * as turns from "./internal/checkers/turns.ts"
import * as waits from "./internal/checkers/waits.ts"
import * as work from "./internal/checkers/work.ts"
import { all as allOf } from "./internal/simulation/ownershipTracker.ts"
import type { Checker as AnyChecker } from "./internal/simulation/setup.ts"

/**
 * A rule that every history must obey. It receives each event and reports violations.
 *
 * **Example** (A limit on the duration of work)
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
    const working = new Map<string, { readonly client: string }>()
    return {
      onEvent: (event) => {
        forgetFallen(event, [working])
        if (event._tag === "Note") {
          const id = field(event.fields, "id")
          if (event.kind === "begin") working.set(id, event)
          else if (event.kind === "end") working.delete(id)
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
      if (keys.length > 0) view.violated(`found keys that \`keep\` does not accept: ${keys.join(", ")}`)
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
 * The individual rules, for locks that do not have to obey all of them.
 *
 * @category testing
 * @since 0.1.0
 */
export const rules: {
  /** A resource changes owners only after a release, after the lease has expired, or after the server has lost data. */
  readonly oneOwner: Checker
  /**
   * Each grant has a larger token than all earlier grants, unless the server has lost data. The owner receives exactly
   * the granted token.
   */
  readonly tokensGrow: Checker
  /**
   * `ensure` succeeds only before the local deadline, and only while the client is the owner according to the server.
   *
   * Exceptions:
   *
   * - The server has lost data since the grant, or its wall clock has been stepped forward since the first request.
   * - The client's machine has been suspended since the grant, and its wall clock has been set since the first request.
   * - The lease ended during the current event-loop turn, or the process is in its first turn after a pause.
   * - The lease was forcibly released and would not have expired yet.
   */
  readonly ensureIsTruthful: Checker
  /**
   * Protected work takes steps only while its lease is valid on the server.
   *
   * Exceptions: the same as for `ensureIsTruthful`, and the first 1.1 seconds after the machine resumes, because a
   * suspension stops timers too.
   */
  readonly workIsProtected: Checker
  /** A process does not release a resource while its own protected work is still using it. */
  readonly releasedAfterWork: Checker
  /**
   * Protected work does not start while other protected work is running, under the same lease or a different one.
   *
   * Exceptions: the same as for `workIsProtected`, for either lease. Finalizers, which run after `stopped`, do not
   * count as work. Work that notes its steps may take 5 seconds to stop, but must not take a `step` in that time.
   */
  readonly workNeverOverlaps: Checker
  /**
   * A resource that checks tokens never accepts a write with a smaller token than one that it has already accepted.
   *
   * The rule applies to external resources and to `fencedKey` in Redis, where data loss is an exception. An external
   * resource must also accept every write that was sent while its lease was valid on the server. Exceptions: since
   * then, the server has lost data, its wall clock has been stepped, or the lease has been forcibly released.
   */
  readonly writesAreFenced: Checker
  /**
   * The waiter with the earliest place is granted the resource first. If the lock has a `channel`, only subscribed
   * waiters are compared.
   *
   * Exceptions: since the waiter queued, the server has lost data, its wall clock has been stepped, or a fault has
   * affected the waiter. Ids in the same `line` are not compared.
   */
  readonly firstComeFirstServed: Checker
  /**
   * Waiters for the same resource in one process are served in the order in which they noted `waiting`.
   *
   * Exceptions: waiters that give up, and waiters affected by a fault in the meantime. The rule applies only to locks
   * whose waiters in one process form a line.
   */
  readonly inOrderWithinLines: Checker
  /**
   * No grant is wasted without a reason.
   *
   * A grant is wasted if its owner neither notes `granted` nor releases it. Valid reasons are a fault that affected the
   * owner at most `recovery` before the grant, data loss, or a server clock step. Up to `bound` consecutive grants
   * (default: 0) may be wasted without a reason. The rule finds locks that pass from owner to owner without any work
   * being done.
   */
  readonly noFlapping: (
    options: { readonly recovery: Duration.Input; readonly bound?: number }
  ) => Checker
  /**
   * While a waiter is subscribed and not affected by faults, the number of grants to others is at most the number of
   * waiters that were ahead of it when it queued, plus `barges`.
   *
   * `barges` is the number of grants that may go to parties that did not queue. Each turn takes at most `turn`. After a
   * fault, a waiter's counts restart from zero once `recovery` has passed.
   *
   * The places of `foreign` ids are unknown, so their grants count as barges and their waits are not checked. During
   * faults, a barge within `notice` (default: zero) after the lock became free does not count, because it won a race
   * against the message to the next waiter. This can happen repeatedly.
   *
   * With or without faults, a barge within `race` (default: zero) after the lock became free does not count if the next
   * request arrives within that time too, because the notified waiter lost a race. Set `race` to the time that a
   * message and a request take together. More than 40 consecutive lost races are a violation.
   *
   * `foreignPlace` returns the place that a foreign contender would take at the given server time (milliseconds since
   * 1970). A grant to a foreign contender does not count while that place is ahead of the waiter's place.
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
   * While the lock is free, no waiter that is unaffected by faults sleeps longer than `bound`.
   *
   * The limit is `afterLoss` if the server lost the owner, if the server's clock was stepped, or if at least two other
   * processes are unresponsive. For a paused or suspended waiter, the limit counts from when it resumes. If a fault
   * affects the waiter, the limit counts from `recovery` later (default: zero), because a waiter whose command was lost
   * waits for the timeout and pauses before it retries.
   */
  readonly nobodyOversleeps: (options: {
    readonly bound: Duration.Input
    readonly afterLoss: Duration.Input
    readonly recovery?: Duration.Input | undefined
  }) => Checker
  /** All parties that are waiting when the faults end are served before the liveness phase ends. */
  readonly everybodyIsServed: Checker
  /**
   * After all scopes are closed, nothing is left: no subscriptions, connections, fibers or timers, and no keys except
   * those that the lock model allows.
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
 * The rules for a lock with tokens, a queue and protected work. Excludes `inOrderWithinLines` and `servedInTurn`, which
 * do not apply to every such lock.
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
