/**
 * Rules that must hold in every history of a simulation.
 *
 * Checkers read the server. From programs they take only facts that a server cannot know: when protected work begins
 * and ends, and the answers of a lease.
 *
 * Programs report them by `client.note(kind, { resource, id, ... })`:
 *
 * - `waiting`, `waited`: asks for a `resource`, and has it (`served` is 1) or has given up; `wait` is a name of its
 *   own. `unfair` (1) does not queue for it; `recovery` is how long after a fault it may take to ask again, in
 *   milliseconds.
 * - `granted`: has it, with `id`, and `token` where there is one.
 * - `ensured`: the lease has just answered that it is held; `left` is the milliseconds until its deadline.
 * - `begin`, `step`, `stopped`, `end`: protected work under `id`; from `stopped` on only its finalizers run.
 * - `writing`: sends the `write` of that name to a resource outside, under `id`. The resource notes `written`, with
 *   its `token`, and whether it was `accepted` (1 or 0).
 *
 * **Example** (Those that fit a lock)
 *
 * ```ts
 * import { Checker } from "@effect-simba/testkit"
 *
 * // They read the server alone
 * const always = [Checker.oneOwner, Checker.nothingIsLeft]
 *
 * // For leases with tokens, where programs note `granted` and `ensured`
 * const leases = [Checker.tokensGrow, Checker.ensureTellsTheTruth, Checker.noFlapping({ recovery: "1 second" })]
 *
 * // Where they note `begin`, `step`, `stopped`, `end`, and `writing`
 * const work = [Checker.workIsProtected, Checker.workNeverOverlaps, Checker.releasedAfterWork, Checker.writesAreFenced]
 *
 * // For locks that queue, where they note `waiting` and `waited`
 * const order = [
 *   Checker.firstComeFirstServed,
 *   Checker.inOrderWithinLines,
 *   Checker.servedInTurn({ barges: 0, turn: "5 seconds", recovery: "1 second" }),
 *   Checker.nobodyOversleeps({ bound: "2 seconds", afterLoss: "20 seconds" }),
 *   Checker.everybodyIsServed
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
 * A rule for every history: it gets each event, and reports violations.
 *
 * **Example** (Nobody works for longer than a second)
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

/**
 * An owner is followed by another only after its release, after its time was up, or after the server lost data.
 *
 * @category testing
 * @since 0.1.0
 */
export const oneOwner: Checker = ownership.oneOwner

/**
 * Each grant has a greater token than all before it, unless the server lost data, and its holder gets that token.
 *
 * @category testing
 * @since 0.1.0
 */
export const tokensGrow: Checker = ownership.tokensGrow

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

/**
 * `ensure` passes before the local deadline only, and only while the server agrees.
 *
 * **Details**
 *
 * Exceptions: the server lost data since the grant, its wall clock stepped forward since the first request, the
 * client's was set while its machine slept, the process is in its first turn after a pause, or the lease was taken by
 * force and would not have ended yet.
 *
 * @category testing
 * @since 0.1.0
 */
export const ensureTellsTheTruth: Checker = whatTheServerSays(
  "ensure tells the truth",
  ["ensured"],
  "passed ensure",
  false
)

/**
 * Protected work takes its steps only while its lease is in force on the server.
 *
 * **Details**
 *
 * The exceptions are those of `ensureTellsTheTruth`.
 *
 * @category testing
 * @since 0.1.0
 */
export const workIsProtected: Checker = whatTheServerSays("work is protected", ["begin", "step"], "worked", true)

/**
 * No process releases a resource that its own work still uses.
 *
 * @category testing
 * @since 0.1.0
 */
export const releasedAfterWork: Checker = {
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
            if (working.has(id)) view.violated(`${id} released ${resource} while its work went on`)
          }
        }
      }
    }
  }
}

/**
 * Protected work does not begin while other work goes on, under another lease or the same.
 *
 * **Details**
 *
 * Exceptions: the process of the other work was paused past its deadline, the server lost data, or its wall clock was
 * stepped. From `stopped` on only finalizers run, which may go on.
 *
 * @category testing
 * @since 0.1.0
 */
export const workNeverOverlaps: Checker = work.workNeverOverlaps

/**
 * Resources that check tokens take no write with a smaller token after one with a larger.
 *
 * **Details**
 *
 * It watches `fencedKey` in Redis, unless the server lost data since, and a resource outside. The resource outside
 * refuses no write whose lease was in force on the server when it was sent, unless the server lost data or its wall
 * clock was stepped since.
 *
 * @category testing
 * @since 0.1.0
 */
export const writesAreFenced: Checker = work.writesAreFenced

/**
 * Among waiters that listen, the earliest place is granted first.
 *
 * **Details**
 *
 * Exceptions: somebody `unfair` takes the lock, the server lost data, its wall clock was stepped, or a fault touched
 * the waiter, since it queued. Ids of one `line` are not compared.
 *
 * @category testing
 * @since 0.1.0
 */
export const firstComeFirstServed: Checker = arrivalOrder.firstComeFirstServed

/**
 * Waiters of one process for one resource are served in the order in which they noted `waiting`.
 *
 * **Details**
 *
 * Exceptions: waiters that are unfair, give up, or were touched by a fault since. It is not among `all`: it fits locks
 * whose waiters form a line within the process.
 *
 * @category testing
 * @since 0.1.0
 */
export const inOrderWithinLines: Checker = arrivalOrder.inOrderWithinLines

/**
 * A grant that ends without work must have a reason.
 *
 * **Details**
 *
 * A grant comes to nothing when its holder has neither noted `granted` nor released it. Reasons are a fault that
 * touched the holder within `recovery` before the grant, or since, a loss of data, and a step of the server's clock.
 * `bound` (default 0) grants in a row may come to nothing without a reason. So it finds a lock that goes round and
 * round without work.
 *
 * @category testing
 * @since 0.1.0
 */
export const noFlapping: (
  options: { readonly recovery: Duration.Input; readonly bound?: number }
) => Checker = turns.noFlapping

/**
 * While a waiter listens undisturbed, no more grants go to others than were ahead of it when it queued, and `barges`.
 *
 * **Details**
 *
 * `barges` is how often others may come in between without queueing. Each turn takes at most `turn`. After a fault,
 * and `recovery`, a waiter counts anew.
 *
 * Nobody knows the place of `foreign` ids: their grants are barges, and they are not waited for. While there are
 * faults, a barge within `notice` (default zero) after the lock became free does not count: it has won a race against
 * the message to the next waiter, and may do so again and again.
 *
 * @category testing
 * @since 0.1.0
 */
export const servedInTurn: (options: {
  readonly barges: number
  readonly turn: Duration.Input
  readonly recovery: Duration.Input
  readonly notice?: Duration.Input
  readonly foreign?: (id: string) => boolean
}) => Checker = turns.servedInTurn

/**
 * While the lock is free, no undisturbed waiter sleeps longer than `bound`.
 *
 * **Details**
 *
 * The limit is `afterLoss` where the server lost the owner or its clock was stepped, or where several others are silent.
 * It counts from the moment at which a paused or suspended waiter continues. A disturbed waiter has `recovery` (default
 * zero) to try again: a command that is lost costs its timeout and the pause behind it.
 *
 * @category testing
 * @since 0.1.0
 */
export const nobodyOversleeps: (options: {
  readonly bound: Duration.Input
  readonly afterLoss: Duration.Input
  readonly recovery?: Duration.Input | undefined
}) => Checker = waits.nobodyOversleeps

/**
 * When faults are over, all present waiters are served before the liveness phase ends.
 *
 * @category testing
 * @since 0.1.0
 */
export const everybodyIsServed: Checker = waits.everybodyIsServed

/**
 * When all scopes are closed nothing is left: no keys but those that may stay, no subscription, connection, fiber or
 * timer.
 *
 * @category testing
 * @since 0.1.0
 */
export const nothingIsLeft: Checker = {
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
 * All checkers that fit a lock with tokens, a queue and protected work.
 *
 * **Example** (A lock that looks again every 1.5 seconds)
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
  oneOwner,
  tokensGrow,
  ensureTellsTheTruth,
  workIsProtected,
  releasedAfterWork,
  workNeverOverlaps,
  writesAreFenced,
  firstComeFirstServed,
  nobodyOversleeps({
    bound: options.sleepBound,
    afterLoss: options.sleepBoundAfterLoss ?? options.sleepBound,
    recovery: options.recovery
  }),
  noFlapping({ recovery: options.recovery ?? 0 }),
  everybodyIsServed,
  nothingIsLeft
]
