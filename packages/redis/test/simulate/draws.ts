/** The random numbers of a plan. Each has a name, so that an additional one does not change the others. */

/** A number in [0, 1) for each name, the same for the same seed. */
export const draws = (seed: number | string) => (name: string) => {
  let hash = 2166136261
  for (const char of `${seed}/${name}`) hash = Math.imul(hash ^ char.charCodeAt(0), 16777619)
  hash = Math.imul(hash ^ hash >>> 15, 2246822507)
  return ((hash ^ hash >>> 13) >>> 0) / 4294967296
}
