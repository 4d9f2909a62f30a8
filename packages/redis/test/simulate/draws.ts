/** Named random numbers for plans. Adding a name does not change the other numbers. */

/** Returns a number in [0, 1) that depends on nothing but the seed and the name. */
export const draws = (seed: number | string) => (name: string) => {
  let hash = 2166136261
  for (const char of `${seed}/${name}`) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619)
  hash = Math.imul(hash ^ hash >>> 15, 2246822507)
  return ((hash ^ hash >>> 13) >>> 0) / 4294967296
}
