/**
 * Measures stream ownership: how fast a consumer takes data streams, how soon they are taken over after a crash, and
 * how much it costs to own many of them.
 *
 *     pnpm bench:streams [--quick] [--json] [--only assignments,takeover,owning,close,burst,trickle,join] [--save]
 */
import { Cause, Effect, Exit } from "effect"
import { Redis } from "ioredis"
import { mkdir, writeFile } from "node:fs/promises"
import { RedisServer, type Server } from "../packages/redis/test/support/redisServer.ts"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { format } from "./lib/format.ts"
import { circumstances } from "./lib/machine.ts"
import { aligned } from "./lib/table.ts"
import { assignments, owning, type StreamRow, takeover } from "./streams/rows.ts"
import { burst, close, join, trickle } from "./streams/scale.ts"

const { values: options } = commandLine({
  options: {
    /** Repeats less, for a run of a minute or two. */
    quick: { type: "boolean", default: false },
    /** Prints one line of JSON, and nothing else, to standard output. */
    json: { type: "boolean", default: false },
    only: { type: "string" },
    /** Keeps the results for `pnpm bench:page`. */
    save: { type: "boolean", default: false }
  }
}, {
  names: { only: ["assignments", "takeover", "owning", "close", "burst", "trickle", "join"] }
})

const wanted = options.only?.split(",")

const program = Effect.gen(function*() {
  const { quick } = options
  // Each benchmark gets its own server, because leftovers from one would distort the next
  const alone = <A, E>(work: (server: Server) => Effect.Effect<A, E>) =>
    Effect.scoped(Effect.flatMap(RedisServer.start(), work))
  const takeovers = (kind: Parameters<typeof takeover>[1]) => alone((server) => takeover(server, kind, quick ? 3 : 15))
  const growing = <E>(work: (server: Server, count: number) => Effect.Effect<ReadonlyArray<StreamRow>, E>) =>
    Effect.map(
      Effect.forEach([100, 1000, 10_000], (count) => alone((server) => work(server, count))),
      (rows) => rows.flat()
    )
  const works = {
    assignments: alone((server) => assignments(server, quick ? 2000 : 10_000, quick ? 3 : 5)),
    takeover: Effect.map(
      Effect.all([takeovers("events"), takeovers("sweep"), takeovers("events-10000")]),
      (rows) => rows.flat()
    ),
    owning: alone((server) => owning(server, 10_000, quick ? 10 : 20, quick ? 1 : 3)),
    close: growing(close),
    burst: growing(burst),
    trickle: growing((server, count) => trickle(server, count, quick ? 6 : 20)),
    join: alone((server) => join(server, quick ? 5000 : 10_000))
  }
  const rows: Array<StreamRow> = []
  for (const [name, work] of Object.entries(works)) {
    if (wanted !== undefined && !wanted.includes(name)) continue
    for (const row of yield* work) {
      const { longestStallMillis, lost, redisMillisPerMessage, seconds } = row
      const more = lost === undefined
        ? ""
        : ` ${JSON.stringify({ seconds, lost, longestStallMillis, redisMillisPerMessage })}`
      process.stderr.write(`${row.id}: ${row.value} ${row.unit}${more}\n`)
      rows.push(row)
    }
  }
  const server = yield* RedisServer.start()
  const admin = new Redis(server.url)
  const about = yield* Effect.promise(() => circumstances(admin))
  admin.disconnect()
  return { at: about.at, machine: about.machine, versions: about.versions, rows }
})

const exit = await Effect.runPromiseExit(Effect.scoped(program))
if (Exit.isFailure(exit)) {
  process.stderr.write(`${Cause.pretty(exit.cause)}\n`)
  process.exit(1)
}
const results = exit.value
if (options.save) {
  const file = new URL("./results/streams.json", import.meta.url)
  await mkdir(new URL(".", file), { recursive: true })
  await writeFile(file, JSON.stringify(results, null, 2))
  await format(file)
}
if (options.json) process.stdout.write(`${JSON.stringify(results)}\n`)
else {
  process.stdout.write(`${
    aligned([
      ["", "median", "min", "max", "bound", "samples"],
      ...results.rows.map(({ bound, samples, spread: [min, max], title, unit, value }) => [
        `${title} (${unit})`,
        String(value),
        String(min),
        String(max),
        bound === undefined ? "" : String(bound),
        String(samples)
      ])
    ])
  }\n`)
}
process.exit(0)
