/**
 * Feeds invalid input to everything that enters a process from outside:
 *
 *     pnpm fuzz --cases 200000 --seed 1
 *
 * `--area` selects one area: texts, options, replies, messages, entries or frames.
 */
import { FakeRedis } from "@effect-simba/testkit"
import { Effect, Layer, Logger, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { commandLine } from "../../../../scripts/lib/commandLine.mjs"
import { fuzzFrames } from "./frames.ts"
import { type Finding, fuzzOptions, fuzzTexts } from "./fuzz.ts"
import { fuzzEntries, fuzzMessages, fuzzReplies } from "./layers.ts"

const unhandled: Array<Finding> = []
process.on("unhandledRejection", (error) => {
  unhandled.push({ area: "process", name: "a rejection", number: 0, input: "", problem: String(error) })
})

/**
 * For some invalid frames, ioredis's parser throws an exception that no caller can catch. Without this handler it would
 * end the process.
 */
let ofDriver = 0
process.on("uncaughtException", (error) => {
  if (error.stack?.includes("DataHandler.js")) ofDriver++
  else unhandled.push({ area: "process", name: "an exception", number: 0, input: "", problem: String(error.stack) })
})

type Fuzz = (
  seed: number,
  cases: number
) => Effect.Effect<ReadonlyArray<Finding>, unknown, FakeRedis.FakeRedis | Scope.Scope>

/**
 * The areas, and their shares of the cases. A case takes milliseconds for a whole layer and microseconds for a reader,
 * but only layers can hang, lose leases, or fail to recover.
 */
const areas: ReadonlyArray<readonly [name: string, part: number, fuzz: Fuzz]> = [
  ["texts", 0.55, (seed, cases) => Effect.sync(() => fuzzTexts(seed, cases))],
  ["options", 0.12, fuzzOptions],
  ["messages", 0.15, fuzzMessages],
  ["entries", 0.06, fuzzEntries],
  ["replies", 0.1, fuzzReplies],
  ["frames", 0.02, fuzzFrames]
]

const { values } = commandLine({
  options: {
    cases: { type: "string", default: "200000" },
    seed: { type: "string", default: "1" },
    area: { type: "string" }
  }
}, { counts: ["cases"], whole: ["seed"], name: { area: areas.map(([name]) => name) } })
const [cases, seed] = [Number(values.cases), Number(values.seed)]

const onFake = Layer.provideMerge(FakeRedis.layer(), Layer.merge(TestClock.layer(), Logger.layer([])))

let problems = 0
for (const [name, part, fuzz] of areas) {
  if (values.area !== undefined && values.area !== name) continue
  const own = values.area === undefined ? Math.ceil(cases * part) : cases
  const start = performance.now()
  const run = Effect.scoped(fuzz(seed, own))
  const findings = [
    ...await Effect.runPromise(
      // The driver needs real time
      name === "frames" ? Effect.provide(run, FakeRedis.layer()) : Effect.provide(run, onFake)
    ),
    ...unhandled.splice(0)
  ]
  problems += findings.length
  for (const { input, name, number, problem } of findings.slice(0, 20)) {
    console.log(`${name}, case ${number}, ${input}: ${problem}`)
  }
  console.log(
    `${name}: ${own} cases, ${findings.length} problems, ${((performance.now() - start) / 1000).toFixed(1)} s`
  )
}
if (ofDriver > 0) console.log(`frames: ${ofDriver} exceptions in the driver that no caller can catch`)
process.exit(problems === 0 ? 0 : 1)
