/** The results of a run, as stored in `results/`. */
import type { Profile } from "../work/profile.ts"
import type { Sizes } from "../work/size.ts"
import type { Chart } from "./chart.ts"
import type { Circumstances } from "./machine.ts"
import type { Row } from "./row.ts"

export interface Results extends Circumstances {
  readonly rows: ReadonlyArray<Row>
  readonly sizes?: Sizes
  readonly profiles?: ReadonlyArray<Profile>
  readonly charts?: ReadonlyArray<Chart>
  /** The time of the earlier run that some charts are from. Undefined if all charts are from this run. */
  readonly chartsAt?: string
}

/** Parses results. NaN means "not measured" and is stored as null, because JSON has no NaN. */
export const parse = (text: string): Results =>
  JSON.parse(text, (_, value: unknown) => value === null ? Number.NaN : value) as Results

export const textOf = (results: Results): string => `${JSON.stringify(results, null, 2)}\n`
