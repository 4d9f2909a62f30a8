/** Reads and prints the fields of events, for checkers. */
import type { Fields } from "../simulation/history.ts"

export const seconds = (millis: number): string => `${(millis / 1000).toFixed(3)} s`

export const field = (fields: Fields, name: string): string => String(fields[name] ?? "")
