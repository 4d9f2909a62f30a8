/** The page, which shows a scenario or a simulator seed. */
import { useEffect, useRef, useState } from "preact/hooks"
import * as address from "../address.ts"
import { Player } from "../player.ts"
import { scenarioOf, scenarios } from "../world/scenarios.ts"
import { useTheme } from "./hooks.ts"
import { ScenarioView } from "./ScenarioView.tsx"
import { SeedView } from "./SeedView.tsx"

export const player = new Player()

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches

const useAddress = () => {
  const [current, setCurrent] = useState(() => address.read(location.hash))
  useEffect(() => {
    const changed = () => setCurrent(address.read(location.hash))
    addEventListener("hashchange", changed)
    return () => removeEventListener("hashchange", changed)
  }, [])
  return current
}

/** Follows the theme of a page that embeds this one. */
const useThemeOfParent = (isEmbedded: boolean) =>
  useEffect(() => {
    if (!isEmbedded || parent === window) return
    let root: HTMLElement
    try {
      root = parent.document.documentElement
    } catch {
      // The theme of a page from another origin cannot be read
      return
    }
    const follow = () => {
      document.documentElement.dataset["theme"] = root.classList.contains("dark") ? "dark" : "light"
    }
    const observer = new MutationObserver(follow)
    observer.observe(root, { attributes: true, attributeFilter: ["class"] })
    follow()
    return () => observer.disconnect()
  }, [isEmbedded])

/** The list of scenarios. On a phone it is wider than the page, so the current scenario is scrolled into view. */
const Scenarios = ({ current }: { readonly current: string | undefined }) => {
  const list = useRef<HTMLElement>(null)
  useEffect(() => {
    const nav = list.current!
    const chosen = nav.querySelector<HTMLElement>("[aria-current]")
    if (chosen !== null) nav.scrollLeft = chosen.offsetLeft - 24
  }, [current])
  return (
    <nav aria-label="Scenarios" ref={list}>
      {scenarios.map(({ id, title }) => (
        <a key={id} href={address.ofScenario(id, "1", [])} aria-current={id === current ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  )
}

export const App = () => {
  const current = useAddress()
  const [isDark, toggleTheme] = useTheme()
  useThemeOfParent(current.isEmbedded)
  const scenario = scenarioOf(current.scenario ?? "") ?? scenarios[0]!
  useEffect(() => {
    if (current.plan !== undefined) return player.unload()
    void player.load(scenario, current.seed, current.acts, !calm(), current.clients)
  }, [current])
  const content = current.plan === undefined
    ? <ScenarioView player={player} scenario={scenario} seed={current.seed} />
    : <SeedView key={location.hash} address={current} />
  if (current.isEmbedded) return <main class="embedded">{content}</main>
  return (
    <>
      <header>
        <h1>
          effect-simba <span>playground</span>
        </h1>
        <button
          type="button"
          class="theme"
          aria-label={isDark ? "Light colours" : "Dark colours"}
          onClick={toggleTheme}
        >
          {isDark ? "☀" : "☾"}
        </button>
      </header>
      <Scenarios current={current.plan === undefined ? scenario.id : undefined} />
      <main>{content}</main>
      <footer>
        <p>
          This page runs the library itself, including its Lua scripts, on the testkit's in-memory Redis, in virtual
          time. No data leaves the page.
        </p>
      </footer>
    </>
  )
}
