/** The entry point of the page. */
import { render } from "preact"
import { App, player } from "./ui/App.tsx"
import { picture } from "./ui/ScenarioView.tsx"
import { scenarios } from "./world/scenarios.ts"
import "./style.css"

// The simulation creates thousands of errors as values, and stack traces would be most of their cost
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
