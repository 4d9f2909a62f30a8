// Runs the `npx` lines in the guides, each in an application that has installed only the package that the line needs.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../lib/workspace.mjs"
import { fromTarballs, install, system } from "./consumer.mjs"
import { run, start } from "./processes.mjs"
import { problem } from "./report.mjs"

const shell = process.platform === "win32"

/** The arguments of the first `npx` line on a page that runs this command, exactly as the page prints them. */
const documented = (page, command) => {
  const text = readFileSync(join(root, page), "utf8")
  return new RegExp(`^(?:.*\`)?npx ((?:-\\S+ )*${command}\\b[^\`\\n]*)`, "m").exec(text)[1].split(" ")
}

const application = async (packed, temporary, name) => {
  const folder = join(temporary, `npx-${name.split("/").at(-1)}`)
  await install(folder, fromTarballs(packed.filter((one) => one.name === name)))
  return folder
}

const runCommandLine = async (packed, temporary, redisUrl) => {
  const cwd = await application(packed, temporary, "effect-simba")
  const npx = async (args, env, pattern) => {
    const { text } = await run("npx", args, { cwd, env: { ...system, ...env }, shell })
    // `doctor` exits with 1 if it has advice
    if (!pattern.test(text)) problem(`npx ${args.join(" ")}:\n${text}`)
  }
  await npx([...documented("docs/command-line.md", "effect-simba"), "--json"], { REDIS_URL: redisUrl }, /"findings":\[/)
  const named = documented("docs/requirements.md", "effect-simba")
  await npx([...named, "--url", redisUrl, "doctor", "--json"], {}, /"findings":\[/)
  await npx([...named, "--help"], {}, /--sentinel/)
  await npx([...named, "--version"], {}, /^effect-simba v?\d+\.\d+\.\d+$/)
}

/** Starts the in-memory Redis, on a free port instead of 6379. */
const runFakeRedis = async (packed, temporary) => {
  const cwd = await application(packed, temporary, "@effect-simba/fake-redis")
  const args = documented("docs/in-memory-redis.md", "fake-redis").map((one) => one === "6379" ? "0" : one)
  // npx runs the command in a child process: signal the group to end both
  const { child, ended } = start("npx", args, { cwd, env: system, shell, detached: !shell })
  const line = new Promise((resolve) => child.stdout.once("data", resolve))
  const first = await Promise.race([line, ended.then(({ text }) => text)])
  if (!/^redis:\/\/127\.0\.0\.1:\d+\n$/.test(first)) problem(`npx ${args.join(" ")}:\n${first}`)
  if (shell) child.kill()
  else if (child.exitCode === null) process.kill(-child.pid, "SIGTERM")
  await ended
}

export const runCommandLines = async (packed, temporary, redisUrl) => {
  await runCommandLine(packed, temporary, redisUrl)
  await runFakeRedis(packed, temporary)
}
