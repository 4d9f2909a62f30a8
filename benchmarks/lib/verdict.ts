/** Decides whether effect-simba is ahead of another entrant, behind it or level, for the tables. */
import type { Row } from "./row.ts"

/** Returns ahead or behind, or level if the interquartile ranges overlap; undefined without quartiles. */
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
