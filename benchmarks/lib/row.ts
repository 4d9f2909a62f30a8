/** Builds the rows of the tables from the contestants' measurements. */
import type { Bench, Entrant, Outcome } from "./bench.ts"
import { median, quartiles, rounded, spread } from "./statistics.ts"

export interface Other {
  readonly name: string
  readonly role: "variant" | "peer"
  readonly value: number | undefined
  readonly ratio: number | undefined
  readonly spread: readonly [number, number] | undefined
  /** The interquartile range (IQR) of the repetitions. */
  readonly quartiles?: readonly [number, number] | undefined
  readonly failure?: string
}

/** An additional figure for each entrant, by the entrant's name. */
export interface Column {
  readonly title: string
  readonly values: Readonly<Record<string, number>>
}

/** Compares effect-simba with raw: medians of the repetitions, and their ratio. */
export interface Row {
  readonly id: string
  readonly title: string
  readonly unit: string
  readonly better: "more" | "less"
  readonly ours: number
  readonly raw: number
  readonly ratio: number
  readonly spread: { readonly ours: readonly [number, number]; readonly raw: readonly [number, number] }
  readonly quartiles?: { readonly ours: readonly [number, number]; readonly raw: readonly [number, number] }
  readonly columns?: ReadonlyArray<Column>
  /** The entrant that replaces raw, if any. */
  readonly against?: string
  readonly repetitions: number
  readonly others: ReadonlyArray<Other>
  readonly details: Readonly<Record<string, unknown>>
  /** The share of the machine's CPU time that the hypervisor used for other machines during the measurement. */
  readonly stolen?: number
}

export interface Head {
  readonly id: string
  readonly title: string
  readonly unit: string
  readonly better: "more" | "less"
}

const quartilesOf = (values: ReadonlyArray<number>) => {
  const [lower, upper] = quartiles(values.filter((value) => !Number.isNaN(value)))
  return [rounded(lower), rounded(upper)] as const
}

/** Returns the median over the repetitions that produced a figure. */
export const overMeasured = (values: ReadonlyArray<number>): number =>
  median(values.filter((value) => !Number.isNaN(value)))

/** Computes an additional figure for each entrant from all of its samples. */
export const column = <A>(
  title: string,
  outcomes: ReadonlyArray<Outcome<A>>,
  value: (samples: ReadonlyArray<A>) => number
): Column => ({
  title,
  values: Object.fromEntries(outcomes.map(({ entrant, samples }) => [entrant.name, rounded(value(samples))]))
})

const spreadOf = (values: ReadonlyArray<number>) => {
  const [least, most] = spread(values)
  return [rounded(least), rounded(most)] as const
}

/**
 * Builds a row from the results of each entrant's repetitions. `over` reduces an entrant's repetitions to one value.
 * With the default, the median, the row's ratio is the median of the ratios within each repetition, so a slow minute
 * does not distort it. With another `over`, the row's ratio is the ratio of the two values.
 */
export const make = <A>(
  bench: Bench,
  head: Head,
  outcomes: ReadonlyArray<Outcome<A>>,
  value: (sample: A, entrant: Entrant) => number,
  details: Readonly<Record<string, unknown>> = {},
  over: (values: ReadonlyArray<number>, outcome: Outcome<A>) => number = overMeasured,
  columns: ReadonlyArray<Column> = []
): Row => {
  const measured = outcomes.map((outcome) => {
    const values = outcome.samples.map((sample) => value(sample, outcome.entrant))
    return { outcome, values, value: over(values, outcome) }
  })
  const of = (role: Entrant["role"]) => measured.find(({ outcome }) => outcome.entrant.role === role)!
  const ours = of("ours")
  const raw = of("raw")
  const ratioOf = ({ value, values }: typeof ours) =>
    rounded(
      over === overMeasured ? overMeasured(values.map((value, index) => value / raw.values[index]!)) : value / raw.value
    )
  const others = measured.filter(({ outcome: { entrant } }) => entrant.role === "variant" || entrant.role === "peer")
  return {
    ...head,
    ours: rounded(ours.value),
    raw: rounded(raw.value),
    ratio: ratioOf(ours),
    spread: { ours: spreadOf(ours.values), raw: spreadOf(raw.values) },
    quartiles: { ours: quartilesOf(ours.values), raw: quartilesOf(raw.values) },
    ...(raw.outcome.entrant.name === "raw" ? {} : { against: raw.outcome.entrant.name }),
    ...(columns.length === 0 ? {} : { columns }),
    repetitions: ours.values.length,
    others: [
      ...others.map((other) => ({ ...other, ratio: ratioOf(other) })).map(({
        outcome: { entrant, failure },
        ratio,
        value,
        values
      }): Other => ({
        name: entrant.name,
        role: entrant.role === "peer" ? "peer" : "variant",
        value: values.length === 0 ? undefined : rounded(value),
        ratio: values.length === 0 ? undefined : ratio,
        spread: values.length === 0 ? undefined : spreadOf(values),
        quartiles: values.length === 0 ? undefined : quartilesOf(values),
        ...(failure === undefined ? {} : { failure })
      })),
      ...bench.missing.map(({ entrant, failure }): Other => ({
        name: entrant.name,
        role: "peer",
        value: undefined,
        ratio: undefined,
        spread: undefined,
        failure: failure ?? "missing"
      }))
    ],
    details
  }
}
