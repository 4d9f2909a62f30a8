/**
 * The protocol from `rawByOurScripts`, in Effect fibers that acquire in a scope. Shows the minimum cost of a hand-off
 * in Effect: there are no deadlines, timeouts, metrics or interruption.
 */
import { Effect } from "effect"
import { contend } from "../lib/contention.ts"
import type { Contestant } from "../lib/contestant.ts"
import { connect } from "./rawByOurScripts.ts"

export const contestant: Contestant = {
  connect: Effect.fnUntraced(function*(request) {
    const { enter, subscribed } = yield* Effect.acquireRelease(
      Effect.promise(() => connect(request)),
      ({ close }) => Effect.sync(close)
    )
    const queued = (name: string, layer: string) =>
      Effect.callback<() => Promise<unknown>>((resume) => {
        const release = enter(name, layer, () => resume(Effect.succeed(release)))
      })
    const acquire = (name: string) =>
      Effect.acquireRelease(
        Effect.flatMap(Effect.promise(subscribed), (layer) => queued(name, layer)),
        (release) => Effect.promise(release)
      )
    const unsupported = () => Effect.die(new Error("this contestant only contends"))
    return {
      pairs: unsupported,
      hold: unsupported,
      contend: (request, onGrant) => contend(acquire, request, onGrant)
    }
  })
}
