// Follows the README and the testing guide as a new user would. Runs their install lines, with the tarballs instead
// of the published packages, then the README's programs and the guide's first test.
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { fencedBlocks } from "../lib/doc-blocks.mjs"
import { root } from "../lib/workspace.mjs"
import { binOf, system } from "./consumer.mjs"
import { testingPage } from "./paths.mjs"
import { run } from "./processes.mjs"
import { installLines, runReadme } from "./readme.mjs"
import { problem } from "./report.mjs"

/** The arguments of a page's first install line, and its TypeScript blocks. */
const read = (page) => {
  const blocks = fencedBlocks(readFileSync(join(root, page), "utf8"))
  const line = blocks.flatMap(({ code }) => code.split("\n")).find((line) => line.startsWith("npm install "))
  return {
    wanted: line.split(/\s+/).slice(2),
    programs: blocks.filter(({ language }) => language === "ts").map(({ code }) => code)
  }
}

/**
 * The path of npm's own script. It must be run by the Node under test, because npm checks packages against the Node
 * that runs it.
 */
const npm = async () => realpathSync((await run("which", ["npm"], { env: system })).text)

/** An application in its own folder, on this version of Node. */
const application = (runtime, packed, temporary, redisUrl) => {
  const folder = join(temporary, `quick-start-${runtime.version}`)
  mkdirSync(folder)
  // Like the output of `npm init`: the package is CommonJS
  writeFileSync(join(folder, "package.json"), `{ "name": "quick-start", "version": "1.0.0" }`)
  const env = { ...system, REDIS_URL: redisUrl, PATH: [dirname(runtime.command), system.PATH].join(delimiter) }
  const node = (...args) => run(runtime.command, args, { cwd: folder, env })
  const tarballs = new Map(packed.map(({ name, tarball }) => [name, tarball]))
  return {
    env,
    folder,
    node,
    install: async (wanted) => {
      const names = wanted.map((name) => tarballs.get(name) ?? name)
      const { failed, text } = await node(await npm(), "install", "--no-audit", "--no-fund", ...names)
      // npm must not warn about packages that do not support this Node or conflict with another package
      if (failed || /EBADENGINE|ERESOLVE/.test(text)) {
        problem(`npm install ${wanted.join(" ")} on Node ${runtime.version}:\n${text}`)
      }
    }
  }
}

const ofReadme = async (app, runtime, redisUrl) => {
  const canStrip = Number.parseInt(runtime.version) >= 22
  // On Node 20, run only the first line: npm refuses to install vitest 5, which does not support Node 20
  for (const line of installLines().slice(0, canStrip ? undefined : 1)) await app.install(line)
  return runReadme({ canStrip, env: app.env, folder: app.folder, node: runtime.command, redisUrl })
}

const firstTest = async ({ folder, install, node }, version) => {
  const { programs, wanted } = read(testingPage)
  await install(wanted)
  writeFileSync(join(folder, "first.test.ts"), programs.find((program) => program.includes("@effect/vitest")))
  const { failed, text } = await node(binOf(folder, "vitest"), "run")
  if (failed) problem(`the first test in ${testingPage} on Node ${version}:\n${text}`)
}

export const quickStart = async (runtime, packed, temporary, redisUrl) => {
  const app = application(runtime, packed, temporary, redisUrl)
  const ran = await ofReadme(app, runtime, redisUrl)
  // vitest 5 does not support Node 20
  if (Number.parseInt(runtime.version) < 22) return ran
  await firstTest(app, runtime.version)
  return `${ran}, and the guide's first test`
}
