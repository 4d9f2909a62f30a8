/** Fields of events, as checkers read and print them. */
import type { Fields } from "../simulation/history.ts"

export const seconds = (millis: number): string => `${(millis / 1000).toFixed(3)} s`

export const field = (fields: Fields, name: string): string => String(fields[name] ?? "")
