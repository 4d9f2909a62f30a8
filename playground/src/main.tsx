/** The entry point of the page. */
import { render } from "preact"
import { App, player } from "./ui/App.tsx"
import { picture } from "./ui/ScenarioView.tsx"
import { scenarios } from "./world/scenarios.ts"
import "./style.css"

// The simulation creates thousands of errors as values, and capturing stack traces would be most of their cost
Error.stackTraceLimit = 0

render(<App />, document.getElementById("app")!)

/** Gives the browser checks and the script that exports pictures access to the page. */
Object.assign(globalThis, {
  playground: {
    player,
    scenarios: scenarios.map(({ duration, id }) => ({ id, duration: duration === Infinity ? null : duration })),
    picture: (width?: number) => picture(player, width)
  }
})
