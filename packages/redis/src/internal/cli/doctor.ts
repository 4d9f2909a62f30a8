/** `doctor`: examines the server. */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as RedisDoctor from "../../RedisDoctor.ts"
import { exitCodes, Stop } from "./exitCodes.ts"
import { print, printable, type Style } from "./output.ts"
import { redisWith } from "./settings.ts"

const styles: Readonly<Record<RedisDoctor.Finding["status"], Style>> = {
  ok: "green",
  info: "cyan",
  warning: "yellow",
  error: "red"
}

export const doctor = Command.make(
  "doctor",
  {
    streams: Flag.Boolean("streams").pipe(
      Flag.withDescription("Also what data streams need: keyspace events and permissions"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ streams }) {
    const report = yield* RedisDoctor.examine({ streams })
    yield* print(report, (paint) =>
      RedisDoctor.format(report).split("\n").map((line, at) =>
        // A line begins with its status
        printable(line).replace(/^\w+/, (status) => paint(styles[report.findings[at]?.status ?? "info"], status))
      ))
    if (!report.isHealthy) return yield* new Stop({ code: exitCodes.negative, message: "" })
  }, Effect.provide(redisWith({ serverChecks: false })))
).pipe(Command.withDescription("Examine the server: settings, clock, latency, permissions, and what to change"))
