/** `streams pause` and `streams resume`, for a whole service or for some of its data streams. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { stop } from "./exitCodes.ts"
import { inTurn, print, printable } from "./output.ts"
import { streamArgument } from "./streamPositions.ts"
import { known, onStore, serviceArgument } from "./streamServices.ts"

const command = (name: "pause" | "resume", done: string, unchanged: string) =>
  Command.make(
    name,
    { service: serviceArgument, streams: streamArgument.pipe(Argument.variadic()) },
    Effect.fnUntraced(function*({ service: name_, streams }) {
      const { service } = yield* known(name_)
      const show = (results: ReadonlyArray<{ readonly stream: string | null; readonly changed: boolean }>) =>
        print(results, (paint) =>
          results.map(({ changed, stream }) =>
            paint(changed ? "green" : "yellow", `${changed ? done : unchanged}: ${printable(stream ?? name_)}`)
          ))
      const results = yield* inTurn(
        streams.length === 0 ? [undefined] : streams,
        (stream) =>
          Effect.map(service.setPaused(stream, name === "pause"), (changed) => ({ stream: stream ?? null, changed })),
        show
      )
      yield* show(results)
      if (
        name === "resume" && results.some(({ changed }) =>
          !changed
        )
      ) return yield* stop("negative")
    }, onStore)
  )

export const pause = command("pause", "paused", "paused already").pipe(
  Command.withDescription("Pause a service, or individual data streams, until they are resumed")
)

export const resume = command("resume", "resumed", "not paused").pipe(
  Command.withDescription("Resume a service, or data streams that were paused individually")
)
