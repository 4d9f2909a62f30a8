/** Builds charts whose points are rows. */
import type { Chart } from "./chart.ts"
import type { Row } from "./row.ts"

export interface RowChart extends Omit<Chart, "series"> {
  /** The id of the row at each x. */
  readonly points: ReadonlyArray<readonly [x: number, row: string]>
  /** The title of the column to draw instead of the rows' main figure. */
  readonly column?: string
}

const figures = (row: Row, column: string | undefined): ReadonlyArray<readonly [name: string, value: number]> => {
  if (column !== undefined) return Object.entries(row.columns?.find(({ title }) => title === column)?.values ?? {})
  const others = row.others.filter(({ role }) => role === "peer")
  return [
    ["ours", row.ours],
    ["raw", row.raw],
    ...others.map(({ name, value }) => [name, value ?? Number.NaN] as const)
  ]
}

/** Draws effect-simba, raw and the peers that all rows have. Returns undefined if a row is missing. */
export const drawn = ({ column, points, ...head }: RowChart, rows: ReadonlyArray<Row>): Chart | undefined => {
  const series = new Map<string, Array<readonly [number, number]>>()
  for (const [x, id] of points) {
    const row = rows.find((row) => row.id === id)
    if (row === undefined) return undefined
    for (const [name, value] of figures(row, column)) {
      series.set(name, [...series.get(name) ?? [], [x, value]])
    }
  }
  return {
    ...head,
    series: [...series]
      .filter(([, drawn]) => drawn.length === points.length)
      .map(([name, points]) => ({ name, points }))
  }
}
