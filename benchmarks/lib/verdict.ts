/** Decides whether effect-simba is ahead of, behind or level with another entrant, for the tables. */
import type { Row } from "./row.ts"

/**
 * Returns "ahead" or "behind", or "level" if the interquartile ranges overlap. Returns undefined if there are no
 * quartiles.
 */
export const verdict = (
  better: Row["better"],
  ours: readonly [number, number] | undefined,
  theirs: readonly [number, number] | undefined
): "ahead" | "level" | "behind" | undefined => {
  if (ours === undefined || theirs === undefined || [...ours, ...theirs].some(Number.isNaN)) return undefined
  const isAbove = ours[0] > theirs[1]
  if (!isAbove && ours[1] >= theirs[0]) return "level"
  return isAbove === (better === "more") ? "ahead" : "behind"
}
