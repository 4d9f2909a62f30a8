/**
 * Runs contenders as Effect fibers, for the contestants that are written with Effect. Each contender acquires the mutex
 * with `acquire`, holds it, and releases it by closing its scope.
 */
import { Deferred, Effect, Exit, type Scope } from "effect"
import { type ContendRequest, type Holding, micros, nameOf, Turns } from "./contestant.ts"

export const contend = Effect.fnUntraced(function*<E>(
  acquire: (name: string, contender: number) => Effect.Effect<unknown, E, Scope.Scope>,
  request: ContendRequest,
  onGrant: () => void
) {
  const turns = new Turns()
  const first = Deferred.makeUnsafe<number>()
  let holdings: Array<Holding> = []
  let failures = 0
  const one = (contender: number) => {
    const name = nameOf(request, contender)
    const turn = Effect.gen(function*() {
      yield* acquire(name, contender)
      const grantedAt = micros()
      Deferred.doneUnsafe(first, Exit.succeed(grantedAt))
      turns.granted()
      onGrant()
      if (request.holdMillis > 0) yield* Effect.sleep(request.holdMillis)
      const next = turns.next()
      holdings.push([contender, grantedAt, micros()])
      return { next }
    })
    return Effect.scoped(turn).pipe(
      Effect.flatMap(({ next }) => Effect.promise(() => next)),
      Effect.catch(() => Effect.sync(() => failures++)),
      Effect.forever
    )
  }
  for (let i = 0; i < request.contenders; i++) yield* Effect.forkScoped(one(i))
  return {
    grantedElsewhere: () => turns.granted(),
    first: Deferred.await(first),
    taken: Effect.sync(() => {
      const taken = { holdings, failures }
      holdings = []
      failures = 0
      return taken
    })
  }
})
