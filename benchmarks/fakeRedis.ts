/**
 * Compares the in-memory Redis, over a socket, with redis-server and ioredis-mock in one run: commands and scripts per
 * second with one ioredis client, pipelined commands per second with redis-benchmark, startup time, and memory per key.
 *
 *     pnpm bench:fake [--quick]
 */
import { createFakeRedis } from "@effect-simba/fake-redis"
import { Effect } from "effect"
import { Redis } from "ioredis"
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { createServer } from "node:net"
import { cpus, loadavg } from "node:os"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { aligned } from "./lib/table.ts"
import { load } from "./peers/folder.ts"
import { installed } from "./peers/install.ts"

const { values: options } = commandLine({ options: { quick: { type: "boolean", default: false } } })
const seconds = options.quick ? 1 : 3

/** The client methods that the suite needs. ioredis-mock has them, too. */
interface Client {
  readonly set: (key: string, value: string) => Promise<unknown>
  readonly get: (key: string) => Promise<unknown>
  readonly eval: (script: string, keys: number, ...args: ReadonlyArray<string>) => Promise<unknown>
  readonly disconnect: () => void
}

const script =
  "local n = tonumber(redis.call('GET', KEYS[1]) or '0') + 1 redis.call('SET', KEYS[1], n, 'PX', ARGV[1]) return n"

const concurrency = 100

/** Measures calls per second, with a fixed number in flight. */
const rate = async (call: (at: number) => Promise<unknown>): Promise<number> => {
  let calls = 0
  const started = performance.now()
  const end = started + 1000 * seconds
  await Promise.all(Array.from({ length: concurrency }, async (_, at) => {
    while (performance.now() < end) {
      await call(at)
      calls++
      // If there is no socket, nothing else yields to the event loop
      if (calls % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
  }))
  return Math.round(calls / ((performance.now() - started) / 1000))
}

const measure = async (client: Client) => {
  await rate((at) => client.set(`k${at}`, "value"))
  return {
    set: await rate((at) => client.set(`k${at}`, "value")),
    get: await rate((at) => client.get(`k${at}`)),
    eval: await rate((at) => client.eval(script, 1, `n${at}`, "60000"))
  }
}

const output = (command: string, args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) =>
    execFile(command, args, (error, stdout) => error === null ? resolve(stdout) : reject(error))
  )

/** Returns the CPU seconds that a process has used so far. */
const cpuOf = async (pid: number): Promise<number> => {
  const fields = (await output("cat", [`/proc/${pid}/stat`])).split(") ")[1]!.split(" ")
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Runs `redis-benchmark` on 50 connections with pipelines of 16. Measures requests per second and per CPU second. */
const pipelined = async (command: "set" | "get", port: number, pid: number) => {
  const requests = options.quick ? 100_000 : 500_000
  const run = (count: number) =>
    output("redis-benchmark", ["-p", String(port), "-t", command, "-P", "16", "-n", String(count), "--csv"])
  await run(50_000)
  const before = await cpuOf(pid)
  const text = await run(requests)
  const busy = await cpuOf(pid) - before
  const perSecond = Math.round(Number(new RegExp(`"${command.toUpperCase()}","([0-9.]+)"`).exec(text)?.[1]))
  return { perSecond, perCpuSecond: Math.round(requests / busy) }
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as { readonly port: number }
      probe.close(() => resolve(port))
    })
  })

const program = ["dist/bin/fakeRedis.js", "src/bin/fakeRedis.ts"]
  .map((path) => new URL(`../packages/fake-redis/${path}`, import.meta.url).pathname)
  .find(existsSync)!

/** Starts a server. Resolves with the startup time once the server's output reports that it is ready. */
const start = (command: string, args: ReadonlyArray<string>, ready: RegExp) =>
  new Promise<{ readonly child: ChildProcess; readonly millis: number }>((resolve, reject) => {
    const started = performance.now()
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] })
    child.on("error", reject)
    child.stdout.on("data", (chunk: Buffer) => {
      if (ready.test(chunk.toString())) resolve({ child, millis: Math.round(performance.now() - started) })
    })
  })

/** Measures the memory per key, in bytes, with a hundred thousand keys and values of 20 bytes. */
const memory = async (client: Redis, pid: number): Promise<number> => {
  const resident = async () =>
    Number(/VmRSS:\s+([0-9]+)/.exec(await output("cat", [`/proc/${pid}/status`]))?.[1]) * 1024
  await client.flushall()
  const before = await resident()
  const keys = 100_000
  for (let from = 0; from < keys; from += 1000) {
    const pipeline = client.pipeline()
    for (let at = from; at < from + 1000; at++) pipeline.set(`key:${at}`, `value:${String(at).padStart(14, "0")}`)
    await pipeline.exec()
  }
  return Math.round((await resident() - before) / keys)
}

const overSocket = async (command: string, args: (port: number) => ReadonlyArray<string>, ready: RegExp) => {
  const port = await freePort()
  const { child, millis } = await start(command, args(port), ready)
  try {
    const client = new Redis({ port })
    const bytes = await memory(client, child.pid!)
    const rates = await measure(client)
    client.disconnect()
    const pipelines = { set: await pipelined("set", port, child.pid!), get: await pipelined("get", port, child.pid!) }
    return { ...rates, pipelines, millis, bytes }
  } finally {
    child.kill()
  }
}

const peer = { name: "ioredis-mock", dependencies: { "ioredis-mock": "8.13.1", ioredis: "5.11.1" }, fast: "" }

const mocked = async () => {
  const problem = await Effect.runPromise(installed(peer))
  if (problem !== undefined) return problem
  const { default: Mock } = await load<{ readonly default: new() => Client }>(peer.name, "ioredis-mock")
  const client = new Mock()
  const rates = await measure(client)
  client.disconnect()
  return rates
}

/**
 * Measures how long `createFakeRedis` takes in a running process: when it has to load the Lua VM, and when the VM is
 * already loaded.
 */
const listening = async (): Promise<readonly [first: number, second: number]> => {
  const once = async () => {
    const started = performance.now()
    const server = await createFakeRedis()
    const millis = Math.round(performance.now() - started)
    await server.close()
    return millis
  }
  return [await once(), await once()]
}

const [first, second] = await listening()
const real = await overSocket("redis-server", (port) => ["--port", String(port), "--save", ""], /Ready to accept/)
const fake = await overSocket(process.execPath, (port) => [program, "--port", String(port)], /redis:/)
const mock = await mocked()
const number = (value: number | undefined) => value === undefined ? "-" : value.toLocaleString("en")
const mockRates = typeof mock === "string" ? undefined : mock
const row = (name: string, key: "set" | "get" | "eval") => [
  name,
  number(real[key]),
  number(fake[key]),
  number(mockRates?.[key])
]

console.log(`${cpus().length} cores of ${cpus()[0]!.model}, load ${loadavg()[0]!.toFixed(1)}, node ${process.version}`)
if (typeof mock === "string") console.log(mock)
console.log(aligned([
  ["per second", "redis-server", "fake-redis", "ioredis-mock"],
  row("SET with ioredis", "set"),
  row("GET with ioredis", "get"),
  row("EVAL of a counter with ioredis", "eval"),
  ["SET, pipelines of 16", number(real.pipelines.set.perSecond), number(fake.pipelines.set.perSecond), "-"],
  ["GET, pipelines of 16", number(real.pipelines.get.perSecond), number(fake.pipelines.get.perSecond), "-"],
  [
    "the same SET, per CPU second",
    number(real.pipelines.set.perCpuSecond),
    number(fake.pipelines.set.perCpuSecond),
    "-"
  ],
  [
    "the same GET, per CPU second",
    number(real.pipelines.get.perCpuSecond),
    number(fake.pipelines.get.perCpuSecond),
    "-"
  ],
  ["startup of the process, ms", number(real.millis), number(fake.millis), "-"],
  ["startup in a running process, ms", "-", `${first}, then ${second}`, "-"],
  ["bytes of memory per key", number(real.bytes), number(fake.bytes), "-"]
]))
