/** Asking data streams back: first a word, then the grace, then an interruption, and the end of the work is awaited. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Member } from "../StreamStore.ts"
import type { ClientContext } from "./context.ts"
import type { OwnedStream } from "./ownedStream.ts"

const isOver = (owned: OwnedStream) => !owned.isOpen() && owned.work === undefined

/** Ends when none of them is owned any more, however that came. */
export const ended = (holdings: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    let open = 0
    const unlisten: Array<() => void> = []
    const one = () => {
      if (--open === 0) resume(Effect.void)
    }
    for (const owned of holdings) {
      if (!owned.isOpen()) continue
      open++
      unlisten.push(owned.onEnd.add(one))
    }
    if (open === 0) return resume(Effect.void)
    return Effect.sync(() => unlisten.forEach((stop) => stop()))
  })

/** What has a handler ends by it; the others are left as they are. */
const stop = (holdings: ReadonlyArray<OwnedStream>) =>
  Effect.andThen(
    Effect.sync(() => {
      for (const owned of holdings) if (owned.isOpen()) owned.stop()
    }),
    ended(holdings.filter((owned) => owned.work !== undefined))
  )

/** For somebody else, or for anybody. Its handler gives it back, or is done with it. */
export const one = (client: ClientContext, owned: OwnedStream, heir: Member | undefined): Effect.Effect<void> =>
  Effect.gen(function*() {
    owned.heir = heir
    owned.askBack()
    const within = yield* Effect.timeoutOption(ended([owned]), client.config.gracePeriod)
    if (Option.isNone(within)) yield* stop([owned])
  })

/** At once, without asking first. */
export const now = (owned: OwnedStream): Effect.Effect<void> => stop([owned])

/** Likewise, and it is done then. */
export const finished = (owned: OwnedStream): Effect.Effect<void> =>
  Effect.suspend(() => {
    owned.isFinished = true
    return stop([owned])
  })

/**
 * All of them. What has no handler may be released by its user within the grace, and is released after it. The backend
 * is waited for no longer than the release timeout after the last handler has ended.
 */
export const all = (client: ClientContext, holdings: ReadonlyArray<OwnedStream>): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { config, ending, table } = client
    if (holdings.every(isOver)) return
    for (const owned of holdings) if (owned.isOpen()) owned.askBack()
    yield* Effect.timeoutOption(ended(holdings), config.gracePeriod)
    yield* stop(holdings)
    const left = holdings.filter((owned) => owned.isOpen())
    if (left.length === 0) return
    yield* Effect.timeoutOption(
      Effect.forEach(left, ending.giveBack, { concurrency: 256, discard: true }),
      config.releaseTimeout
    )
    for (const owned of left) table.end(owned, "released")
  })
