/** Formats times, and the fields of notes in a history, for the messages of checkers. */
import type { Fields } from "../simulation/history.ts"

/** Formats milliseconds as seconds, such as `1.500 s`. */
export const seconds = (millis: number): string => `${(millis / 1000).toFixed(3)} s`

/** Returns a field as text; empty if the note does not have it. */
export const field = (fields: Fields, name: string): string => String(fields[name] ?? "")
