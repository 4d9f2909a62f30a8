// Runs the root's npm scripts on a machine that has only Node (20 or newer) and npm.
//
// Installs the pinned pnpm into .bootstrap/, then all dependencies (including the Node that the tools run on), then
// runs the requested task. Finished steps are skipped, so a second run starts the task immediately.
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { constants } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { postgresProgram, systemEnvironment } from "./lib/system.mjs"

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const windows = process.platform === "win32"
// Both `npm test` and `pnpm test` run this package's `test` script: npm's runs everything, pnpm's the quick tests.
const isPnpm = basename(process.env.npm_execpath ?? "").startsWith("pnpm")
const tasks = {
  test: isPnpm ? "test:memory" : "test:all",
  demo: "demo:run",
  "demo:streams": "demo:streams:run",
  site: "site:run",
  playground: "playground:run",
  "pack:check": "pack:check"
}
const [task, ...rest] = process.argv.slice(2)

const say = (text) => console.log(`> ${text}`)
const stop = (text) => {
  console.error(`\n${text}\n`)
  process.exit(1)
}

const env = systemEnvironment(join(root, ".bootstrap/node_modules/.bin"))

const run = (command, args, options = {}) =>
  spawnSync(command, args, { cwd: root, env, stdio: "inherit", shell: windows, ...options })
const output = (command, args) => {
  const { status, stdout } = run(command, args, { stdio: ["ignore", "pipe", "ignore"], encoding: "utf8" })
  return status === 0 ? stdout.trim() : undefined
}
const must = (command, args, explanation) => {
  const result = run(command, args)
  if (result.status !== 0) stop(explanation)
}

const checkNode = () => {
  const major = Number(process.versions.node.split(".")[0])
  if (major < 20) stop(`Node 20 or newer is needed to get started; this is ${process.version} (${process.execPath}).`)
}

const ensurePnpm = () => {
  const pinned = /^pnpm@([^+]+)/.exec(JSON.parse(readFileSync(join(root, "package.json"), "utf8")).packageManager)?.[1]
  if (pinned === undefined) stop("package.json does not name a pnpm version in `packageManager`.")
  if (output("pnpm", ["--version"]) === pinned) return
  say(`installing pnpm ${pinned} into .bootstrap/`)
  const folder = join(root, ".bootstrap")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "package.json"), `{ "private": true }\n`)
  must(
    "npm",
    ["install", "--prefix", folder, "--no-save", "--no-audit", "--no-fund", "--loglevel=error", `pnpm@${pinned}`],
    "npm could not install pnpm. It needs access to a package registry."
  )
}

/** A hash that changes whenever an install may be needed. */
const manifests = () => {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`)
  const folders = [
    ".",
    "examples",
    "benchmarks",
    "site",
    "playground",
    ...readdirSync(join(root, "packages")).map((name) => `packages/${name}`)
  ]
  const files = ["pnpm-lock.yaml", "pnpm-workspace.yaml", ...folders.map((folder) => `${folder}/package.json`)]
  for (const file of files.sort()) {
    if (existsSync(join(root, file))) hash.update(file).update(readFileSync(join(root, file)))
  }
  return hash.digest("hex")
}

const ensureDependencies = () => {
  const stamp = join(root, "node_modules/.bootstrap-stamp")
  const wanted = manifests()
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return
  say("installing the dependencies, with the Node that the tools run on")
  must(
    "pnpm",
    ["install", "--frozen-lockfile", "--loglevel=error"],
    "The dependencies could not be installed; see above. The installation needs access to a package registry."
  )
  writeFileSync(stamp, wanted)
}

const serverAdvice = `The tests start servers of their own: Redis, with \`redis-server\` on the PATH, and Postgres.

  Debian, Ubuntu    sudo apt-get install redis-server postgresql   (and, if no service is wanted:
                    sudo systemctl disable --now redis-server postgresql)
  Fedora            sudo dnf install redis postgresql-server
  Alpine            apk add redis postgresql
  macOS             brew install redis postgresql`

/** The Debian packages for the servers that are not installed. */
const missingServers = () =>
  [["redis-server", "redis-server"], ["postgresql", postgresProgram("postgres")]]
    .filter(([, program]) => output(program, ["--version"]) === undefined)
    .map(([name]) => name)

const canInstall = () =>
  existsSync("/etc/debian_version") && output("apt-get", ["--version"]) !== undefined && process.getuid?.() === 0

const installed = (...packages) =>
  withoutStartingServices(() => {
    const quiet = { env: { ...env, DEBIAN_FRONTEND: "noninteractive" } }
    const apt = (...args) => run("apt-get", ["-qq", "-o", "Dpkg::Use-Pty=0", ...args], quiet).status === 0
    return apt("update") && apt("install", "--yes", "--no-install-recommends", ...packages)
  })

const ensureServers = () => {
  const wanted = missingServers()
  if (wanted.length === 0) return
  if (!canInstall()) stop(`not found: ${wanted.join(", ")}.\n\n${serverAdvice}`)
  say(`installing Debian's ${wanted.join(", ")}: the tests start their own servers (no system service is started)`)
  if (!installed(...wanted) || missingServers().length > 0) {
    stop(`apt-get could not install them; see above.\n\n${serverAdvice}`)
  }
}

/** A browser is optional: without one, `site:check` reports that it did not open the site. */
const ensureBrowser = () => {
  if (output("chromium", ["--version"]) !== undefined || !canInstall()) return
  say("installing Debian's chromium: a test opens the site in it")
  installed("chromium")
}

/** Debian starts a newly installed server as a service unless its policy-rc.d hook forbids that. */
const withoutStartingServices = (install) => {
  const policy = "/usr/sbin/policy-rc.d"
  if (existsSync(policy)) return install()
  writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 })
  try {
    return install()
  } finally {
    rmSync(policy, { force: true })
  }
}

let child
const forward = (signal) => {
  // In a terminal, Ctrl-C already reaches the whole process group. A second signal would abort the child immediately.
  if (signal !== "SIGINT" || !process.stdin.isTTY) child?.kill(signal)
}

/** Runs the task in the foreground and forwards signals to it. Returns its exit code. */
const hand = (script) => {
  child = spawn("pnpm", ["run", script, ...rest], { cwd: root, env, stdio: "inherit", shell: windows })
  child.on("error", (error) => stop(`pnpm could not be started: ${error.message}`))
  child.on("exit", (code, signal) => {
    process.exitCode = signal === null ? code : 128 + constants.signals[signal]
  })
}

if (!Object.hasOwn(tasks, task ?? "")) {
  stop(`usage: node scripts/bootstrap.mjs ${Object.keys(tasks).join("|")} [arguments]`)
}
checkNode()
// Installed early: a signal must not abort an installation halfway.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, forward)
ensurePnpm()
ensureDependencies()
if (task === "pack:check" || tasks[task] === "test:all") ensureServers()
if (tasks[task] === "test:all") ensureBrowser()
say(`pnpm run ${[tasks[task], ...rest].join(" ")}`)
hand(tasks[task])
