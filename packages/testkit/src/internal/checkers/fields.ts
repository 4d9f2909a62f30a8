/** How checkers read and write what is in a history. */
import type { Fields } from "../simulation/history.ts"

export const seconds = (millis: number): string => `${(millis / 1000).toFixed(3)} s`

export const field = (fields: Fields, name: string): string => String(fields[name] ?? "")
