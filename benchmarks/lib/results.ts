/** The results of a run, as kept in `results/`. */
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
  /** When they were drawn, if an earlier run drew them. */
  readonly chartsAt?: string
}

/** JSON has no number for "not measured": it is written as null. */
export const parse = (text: string): Results =>
  JSON.parse(text, (_, value: unknown) => value === null ? Number.NaN : value) as Results

export const textOf = (results: Results): string => `${JSON.stringify(results, null, 2)}\n`
