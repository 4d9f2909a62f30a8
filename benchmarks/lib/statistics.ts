/** Medians, quantiles and spreads. */

/** Returns the quantile for this share, by the nearest-rank method. */
export const quantile = (values: ReadonlyArray<number>, part: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))] ?? Number.NaN
}

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  if (sorted.length === 0) return Number.NaN
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Returns the smallest and the largest value. */
export const spread = (values: ReadonlyArray<number>): readonly [number, number] => [
  values.reduce((a, b) => Math.min(a, b), Infinity),
  values.reduce((a, b) => Math.max(a, b), -Infinity)
]

/** Returns the lower and the upper quartile. */
export const quartiles = (values: ReadonlyArray<number>): readonly [number, number] => {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (part: number) => {
    const place = part * (sorted.length - 1)
    const below = sorted[Math.floor(place)] ?? Number.NaN
    return below + (place % 1) * ((sorted[Math.ceil(place)] ?? Number.NaN) - below)
  }
  return [at(0.25), at(0.75)]
}

/** Rounds to four significant digits, because more would be noise. */
export const rounded = (value: number): number => Number.isFinite(value) ? Number(value.toPrecision(4)) : value
