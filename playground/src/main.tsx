/** The start of the page. */
import { render } from "preact"
import { App, player } from "./ui/App.tsx"
import { picture } from "./ui/ScenarioView.tsx"
import { scenarios } from "./world/scenarios.ts"
import "./style.css"

// Errors are values in the simulation, made by the thousand: their stacks would cost more than they tell
Error.stackTraceLimit = 0

render(<App />, document.getElementById("app")!)

/** For the check in a browser, and for scripts that draw pictures. */
Object.assign(globalThis, {
  playground: {
    player,
    scenarios: scenarios.map(({ duration, id }) => ({ id, duration: duration === Infinity ? null : duration })),
    picture: (width?: number) => picture(player, width)
  }
})
