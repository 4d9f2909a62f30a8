/** Shared hooks: one renders when the player changes, and others follow the reader's settings. */
import { useEffect, useReducer, useState } from "preact/hooks"
import { dark, light, type Palette } from "../draw/shapes.ts"
import type { Player } from "../player.ts"

/** Renders the component again whenever the player changes. */
export const useChanges = (player: Player): void => {
  const [, rerender] = useReducer((count: number) => count + 1, 0)
  useEffect(() => player.subscribe(() => rerender(undefined)), [player])
}

const query = "(prefers-color-scheme: dark)"

const stored = () => document.documentElement.dataset["theme"]

export const isDark = (): boolean => stored() === "dark" || (stored() !== "light" && matchMedia(query).matches)

export const palette = (): Palette => isDark() ? dark : light

export const useTheme = (): readonly [dark: boolean, toggle: () => void] => {
  const [shown, setShown] = useState(isDark())
  useEffect(() => {
    const media = matchMedia(query)
    const changed = () => setShown(isDark())
    media.addEventListener("change", changed)
    return () => media.removeEventListener("change", changed)
  }, [])
  return [shown, () => {
    document.documentElement.dataset["theme"] = isDark() ? "light" : "dark"
    setShown(isDark())
  }]
}
