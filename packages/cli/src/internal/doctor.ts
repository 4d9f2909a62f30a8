/** `doctor`: checks the server and reports which settings and permissions to change. */
import * as RedisDoctor from "@effect-simba/redis/RedisDoctor"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { advised } from "./advice.ts"
import { stop } from "./exitCodes.ts"
import { print, printable, type Style } from "./output.ts"
import { redisWith, switchFlag } from "./settings.ts"

const styles: Readonly<Record<RedisDoctor.Report["findings"][number]["status"], Style>> = {
  ok: "green",
  info: "cyan",
  warning: "yellow",
  error: "red"
}

export const doctor = Command.make(
  "doctor",
  { streams: switchFlag("streams", "Also check the keyspace events and permissions that data streams need") },
  Effect.fnUntraced(function*({ streams }) {
    const { findings, ...verdict } = yield* RedisDoctor.examine({ streams })
    const report = {
      ...verdict,
      findings: findings.map((finding) => ({ ...finding, advice: finding.advice && advised(finding.advice) }))
    }
    yield* print(report, (paint) =>
      RedisDoctor.format(report).split("\n").map((line, at) =>
        // Each line of the report starts with a status
        printable(line).replace(/^\w+/, (status) => paint(styles[report.findings[at]?.status ?? "info"], status))
      ))
    if (!report.isHealthy) return yield* stop("negative")
  }, Effect.provide(redisWith({ serverChecks: false })))
).pipe(Command.withDescription("Check the server's settings, clock, latency and permissions, and recommend changes"))
