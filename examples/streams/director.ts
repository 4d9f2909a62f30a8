/** Starts the processes, follows their events, and carries out the plan. */
import { Effect, Stream, SubscriptionRef } from "effect"
import { now } from "../shared/clock.ts"
import { type Process, spawn } from "../shared/process.ts"
import { print } from "../shared/terminal.ts"
import { Event } from "./events.ts"
import { all, type History, isDone, startOf, takeovers, tenures } from "./history.ts"
import * as plan from "./plan.ts"

const text = (event: Event): string | undefined => {
  switch (event._tag) {
    case "Joins":
      return "joins"
    case "Announced":
      return `announces ${event.stream}`
    case "Taken":
      return `owns ${event.stream}, token ${event.token}`
    case "Processed":
      return undefined
    case "Done":
      return `has finished ${event.stream}`
    case "Yielded":
      return `yields ${event.stream}`
    case "Stopped":
      return `stops working on ${event.stream}`
    case "Killed":
      return "is killed"
    case "AskedToEnd":
      return "is asked to shut down"
    case "Failed":
      return `failed: ${event.problem}`
  }
}

/** Whether the consumer to kill is now in the middle of a stream. */
const canKill = (history: History): boolean =>
  tenures(history).some(({ isOver, messages, who }) => {
    const last = messages.at(-1) ?? 0
    return who === plan.killed && !isOver && last >= plan.middle && last <= plan.messages - plan.middle
  })

export const direct = Effect.fnUntraced(function*(redis: string) {
  const service = `streams-${process.pid}`
  const history = yield* SubscriptionRef.make<History>([])
  const note = Effect.fnUntraced(function*(event: Event) {
    const events = yield* SubscriptionRef.updateAndGet(history, (events) => [...events, event])
    const line = text(event)
    const at = ((event.at - startOf(events)) / 1000).toFixed(1)
    if (line !== undefined) yield* print([`${at.padStart(6)} s  ${event.who.padEnd(6)}${line}`])
  })
  const until = (condition: (history: History) => boolean) =>
    SubscriptionRef.changes(history).pipe(Stream.filter(condition), Stream.runHead)

  const members = new Map<string, Process>()
  const start = Effect.fnUntraced(function*(role: "producer" | "consumer", names: ReadonlyArray<string>) {
    yield* print([`          Starting ${names.join(", ")} (${role}${names.length === 1 ? "" : "s"})`])
    for (const who of names) {
      const member = yield* spawn({
        module: import.meta.resolve("./member.ts"),
        args: [role, who, service],
        redis,
        event: Event,
        onEvent: note,
        onText: (line) => print([line]),
        onFailure: (problem) => Effect.flatMap(now, (at) => note({ _tag: "Failed", who, at, problem }))
      })
      members.set(who, member)
    }
  })

  const show = Effect.gen(function*() {
    yield* start("consumer", plan.consumers)
    yield* until((history) => all(history, "Joins").length === plan.consumers.length)
    // Wait until the consumers have discovered each other: each then gets its share from the start
    yield* Effect.sleep("1 second")
    yield* start("producer", plan.producers)
    yield* until((history) => all(history, "Taken").length > 0)
    yield* start("consumer", [plan.joins])
    yield* until((history) => canKill(history) || isDone(history))
    yield* note({ _tag: "Killed", who: plan.killed, at: yield* now })
    yield* members.get(plan.killed)!.end("SIGKILL")
    yield* until((history) => takeovers(history).every(({ next }) => next !== undefined) || isDone(history))
    yield* note({ _tag: "AskedToEnd", who: plan.leaves, at: yield* now })
    yield* members.get(plan.leaves)!.end("SIGTERM")
    yield* until(isDone)
    yield* Effect.forEach(plan.producers, (who) => members.get(who)!.ended, { discard: true })
  })
  const failure = until((history) => all(history, "Failed").length > 0)
  yield* Effect.timeoutOption(Effect.raceFirst(show, failure), plan.limit)
  // Wait for all processes to exit: then all events have been read
  yield* Effect.forEach(members.values(), ({ end }) => end("SIGTERM"), { concurrency: "unbounded", discard: true })
  return yield* SubscriptionRef.get(history)
}, Effect.scoped)
