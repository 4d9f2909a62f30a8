/** Starts the processes, lets happen what the plan says, and writes down what they say. */
import { Clock, Deferred, Effect, Option, Queue, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { fileURLToPath } from "node:url"
import { print } from "../demo/view.ts"
import { type Event, read } from "./events.ts"
import type { Place } from "./members.ts"
import * as plan from "./plan.ts"

export type Said = Event | { readonly _tag: "Killed" | "Leaves"; readonly who: string }

/** What was said, and how many milliseconds after the start. */
export type History = ReadonlyArray<readonly [at: number, said: Said]>

const text = (said: Said): string | undefined => {
  switch (said._tag) {
    case "Taken":
      return `owns ${said.stream}, token ${said.token}`
    case "Done":
      return `is through with ${said.stream}`
    case "GivenBack":
      return `gives ${said.stream} back`
    case "Announced":
      return `announces ${said.stream}`
    case "Killed":
      return "is killed"
    case "Leaves":
      return "is asked to end"
    case "Joins":
      return "joins"
    case "Processed":
      return undefined
  }
}

export const direct = Effect.fnUntraced(function*(place: Place) {
  const start = yield* Clock.currentTimeMillis
  const history: Array<readonly [number, Said]> = []
  const events = yield* Queue.unbounded<Said>()

  const spawn = Effect.fnUntraced(function*(role: "producer" | "consumer", who: string) {
    const child = yield* ChildProcess.make(
      process.execPath,
      [fileURLToPath(import.meta.resolve("./main.ts")), role, who, place.url, place.service],
      { stderr: "inherit", forceKillAfter: "5 seconds" }
    )
    yield* child.stdout.pipe(
      Stream.decodeText,
      Stream.splitLines,
      Stream.mapEffect(read),
      Stream.runForEach((event) => Option.isSome(event) ? Queue.offer(events, event.value) : Effect.void),
      Effect.ignore,
      Effect.forkScoped
    )
    return child
  })

  const kill = (child: Effect.Success<ReturnType<typeof spawn>>, killSignal: "SIGKILL" | "SIGTERM", said: Said) =>
    Effect.andThen(Queue.offer(events, said), Effect.ignore(child.kill({ killSignal })))

  let noted = yield* Deferred.make<void>()
  const note = Effect.fnUntraced(function*(said: Said) {
    const at = (yield* Clock.currentTimeMillis) - start
    history.push([at, said])
    const line = text(said)
    if (line !== undefined) yield* print([`${(at / 1000).toFixed(1).padStart(6)} s  ${said.who.padEnd(6)}${line}`])
    const last = noted
    noted = yield* Deferred.make<void>()
    yield* Deferred.succeed(last, undefined)
  })
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(events), note)))

  const count = (tag: Said["_tag"]) => history.filter(([, said]) => said._tag === tag).length
  const has = (tag: Said["_tag"], who: string) => history.some(([, said]) => said._tag === tag && said.who === who)
  const until = Effect.fnUntraced(function*(condition: () => boolean) {
    while (!condition()) yield* Deferred.await(noted)
  })

  const show = Effect.gen(function*() {
    const [, leaving, killed] = yield* Effect.forEach(plan.consumers, (who) => spawn("consumer", who))
    yield* until(() => count("Joins") === plan.consumers.length)
    yield* Effect.sleep("1 second")
    yield* Effect.forEach(plan.producers, (who) => spawn("producer", who), { discard: true })
    const all = plan.producers.length * plan.streams
    yield* until(() => count("Taken") === all)
    yield* Effect.sleep("1 second")
    yield* kill(killed!, "SIGKILL", { _tag: "Killed", who: plan.killed })
    yield* spawn("consumer", plan.joins)
    yield* until(() => has("Taken", plan.joins) || count("Done") === all)
    yield* kill(leaving!, "SIGTERM", { _tag: "Leaves", who: plan.leaves })
    yield* until(() => count("Done") === all)
  })
  // Far longer than it takes; what is missing by then is missing
  yield* Effect.timeoutOption(show, "2 minutes")
  return history as History
}, Effect.scoped)
