// Runs the command line as npm installed it.
import { execFileSync } from "node:child_process"

const ask = (...args) => execFileSync("node_modules/.bin/effect-simba", args, { encoding: "utf8" }).trim()

const holds = /^effect-simba v\d/.test(ask("--version")) &&
  Array.isArray(JSON.parse(ask("list", "--json"))) &&
  Number(ask("run", "packed", "--", "sh", "-c", "echo $SIMBA_TOKEN")) > 0
if (holds) console.log("holds")
