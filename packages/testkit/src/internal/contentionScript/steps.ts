/** Generates and shrinks the steps of contention scripts. */
import * as Arbitrary from "effect/Arbitrary"
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import type { arbitrary, Script } from "../../ContentionScript.ts"

export const millis = (input: Duration.Input) => Math.round(Duration.toMillis(Duration.fromInputUnsafe(input)))

const names = (input: number | ReadonlyArray<string>, prefix: string): ReadonlyArray<string> =>
  typeof input === "number" ? Array.from({ length: input }, (_, index) => `${prefix}-${index + 1}`) : input

const between = ([minimum, maximum]: readonly [Duration.Input, Duration.Input]) =>
  Schema.Int.check(Schema.isBetween({ minimum: millis(minimum), maximum: millis(maximum) }))

type Step = Script[number]

interface Drawn {
  readonly at: number
  readonly worker: string
  readonly mutex: string
  readonly hold: number
  readonly kind: Step["kind"]
  readonly patience: number
}

/** Shrinks to fewer steps first, then to earlier starts and to small round numbers. */
const simpler = (steps: ReadonlyArray<Drawn>): ReadonlyArray<ReadonlyArray<Drawn>> => {
  const candidates: Array<ReadonlyArray<Drawn>> = []
  for (let size = Math.floor(steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < steps.length; from += size) candidates.push(steps.toSpliced(from, size))
  }
  const first = Math.min(...steps.map(({ at }) => at))
  if (first > 0) candidates.push(steps.map((step) => ({ ...step, at: step.at - first })))
  steps.forEach((step, index) => {
    if (step.kind !== "acquire") candidates.push(steps.with(index, { ...step, kind: "acquire" }))
    for (const field of ["at", "hold", "patience"] as const) {
      if (field === "patience" && (step.kind === "acquire" || step.kind === "acquireIfAvailable")) continue
      const value = step[field]
      const smaller = new Set([0, 1, ...[1000, 100, 10].map((unit) => Math.floor(value / unit) * unit)])
      for (const less of smaller) if (less < value) candidates.push(steps.with(index, { ...step, [field]: less }))
    }
  })
  return candidates
}

export const draw = (options: NonNullable<Parameters<typeof arbitrary>[0]>): Arbitrary.Arbitrary<Script> => {
  const [minLength, maxLength] = options.length ?? [1, 20]
  const range = ["1 millis", "3 seconds"] as const
  const step = Schema.Struct({
    at: between([0, options.within ?? "10 seconds"]),
    worker: Schema.Literals(names(options.workers ?? 3, "worker")),
    mutex: Schema.Literals(names(options.mutexes ?? 2, "mutex")),
    kind: Schema.Literals(options.kinds ?? ["acquire", "acquireIfAvailable", "timeout", "interrupt"]),
    hold: between(options.hold ?? range),
    patience: between(options.patience ?? range)
  })
  /** The length is a separate field, because the length of a generated array depends on the run's size. */
  const drawn = Schema.Struct({
    length: Schema.Int.check(Schema.isBetween({ minimum: minLength, maximum: maxLength })),
    steps: Schema.Array(step).check(Schema.isMinLength(maxLength), Schema.isMaxLength(maxLength))
  })
  const shrink = ({ length, steps }: typeof drawn.Type) =>
    simpler(steps.slice(0, length)).map((fewer) => ({
      length: fewer.length,
      steps: [...fewer, ...steps].slice(0, maxLength)
    }))
  return Arbitrary.schema(drawn, { shrink }).pipe(
    Arbitrary.map(({ length, steps }) =>
      steps.slice(0, length).map(({ at, kind, patience, ...rest }): Step =>
        kind === "acquire" || kind === "acquireIfAvailable"
          ? { ...rest, at: at + 0, kind } // Add 0 to turn -0 into 0
          : { ...rest, at: at + 0, kind, patience }
      ).sort((a, b) => a.at - b.at)
    )
  )
}
