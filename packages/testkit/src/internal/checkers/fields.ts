/** Formats times and the fields of notes, for checkers' messages. */
import type { Fields } from "../simulation/history.ts"

/** Formats milliseconds as seconds, such as `1.500 s`. */
export const seconds = (millis: number): string => `${(millis / 1000).toFixed(3)} s`

/** Returns a field as text; empty if the note does not contain it. */
export const field = (fields: Fields, name: string): string => String(fields[name] ?? "")
