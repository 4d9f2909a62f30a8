// Runs what the compiler made of the consumer: an ES module, and CommonJS that requires ES modules.
import { system } from "./consumer.mjs"
import { must } from "./report.mjs"

export const runPrograms = async (folder, node = "node") => {
  const said = []
  for (const file of ["out/program.js", "out/commonjs.cjs"]) {
    said.push(await must(`${file} on ${node}`, node, [file], { cwd: folder, env: system }))
  }
  return said.join("; ")
}
