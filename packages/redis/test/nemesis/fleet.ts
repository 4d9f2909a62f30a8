/**
 * Starts, kills and restarts the worker processes of a nemesis run. It also plays the external system to which the
 * workers write.
 */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { writer } from "./history.ts"
import type { Order, Request, Role, WorkerConfig } from "./worker.ts"

export interface Member {
  readonly name: string
  readonly role: Role
  generation: number
  child: ChildProcess
  /** Whether a fault currently affects the process. */
  isTouched: boolean
  /** The last 4,000 characters that the process printed. */
  output: string
  /** How many bytes the process has printed in total. */
  printed: number
}

const libraries = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/faketime/libfaketime.so.1"
]

/** The path of libfaketime (Debian package `faketime`), or `undefined` if it is not installed. */
export const fakeTime = libraries.find(existsSync)

/** Environment variables for a wall clock with its own rate or offset. CLOCK_MONOTONIC stays the machine's. */
const clockOf = ({ ahead = 0, rate }: Place) =>
  fakeTime === undefined || (rate === 1 && ahead === 0)
    ? {}
    : {
      LD_PRELOAD: fakeTime,
      FAKETIME: `+${ahead} x${rate}`,
      DONT_FAKE_MONOTONIC: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1"
    }

const compileCache = fileURLToPath(new URL("../../../../node_modules/.cache/node-compile", import.meta.url))

export type Fleet = Effect.Success<ReturnType<typeof makeFleet>>

export interface Place {
  readonly name: string
  readonly role: Role
  readonly rate: number
  /** The wall clock's offset, in seconds. Default: 0. */
  readonly ahead?: number
}

export const makeFleet = (
  places: ReadonlyArray<Place>,
  config: Omit<WorkerConfig, "role" | "name" | "index" | "generation" | "history" | "phase">,
  { folder, now, write }: {
    readonly folder: string
    readonly now: () => number
    readonly write: ReturnType<typeof writer>
  }
) =>
  Effect.gen(function*() {
    const violations: Array<string> = []
    const histories: Array<string> = []
    let phase: WorkerConfig["phase"] = "safety"
    let version = 0
    const state = new Map<string, unknown>()

    const start = (place: Place, index: number, generation: number): ChildProcess => {
      const history = join(folder, `${place.name}.${generation}.jsonl`)
      histories.push(history)
      // Create the file even if the process is killed before its first write
      writeFileSync(history, "")
      const { name, role } = place
      const own: WorkerConfig = { ...config, role, name, index, generation, history, phase }
      const child = spawn(process.execPath, [fileURLToPath(new URL("./worker.ts", import.meta.url))], {
        env: {
          ...process.env,
          ...clockOf(place),
          NODE_OPTIONS: "",
          NODE_COMPILE_CACHE: compileCache,
          SIMBA_NEMESIS_WORKER: JSON.stringify(own)
        },
        stdio: ["ignore", "pipe", "pipe", "ipc"]
      })
      const send = (order: Order) => {
        if (child.connected) child.send(order, () => {})
      }
      child.on("message", (request: Request) => {
        const { call } = request
        if (request._tag === "Read") return send({ _tag: "State", call, version, state: [...state] })
        const accepted = request.version === version
        if (accepted) {
          version += 1
          for (const [key, value] of request.state) state.set(key, value)
          for (const [kind, fields] of request.notes) write([now(), name, generation, kind, fields])
        }
        send({ _tag: "Stored", call, accepted })
      })
      const keep = (chunk: Buffer) => {
        const member = members[index]
        if (member === undefined) return
        member.printed += chunk.length
        member.output = (member.output + chunk.toString("utf8")).slice(-4000)
      }
      child.stdout!.on("data", keep)
      child.stderr!.on("data", keep)
      child.on("exit", (code, signal) => {
        if (signal === "SIGKILL" || (code === 0 && phase === "closing")) return
        violations.push(`${name} exited unexpectedly (${signal ?? code}): ${members[index]?.output ?? ""}`)
      })
      return child
    }

    const members: Array<Member> = []
    for (const [index, place] of places.entries()) {
      const child = start(place, index, 1)
      members.push({
        name: place.name,
        role: place.role,
        generation: 1,
        child,
        isTouched: false,
        output: "",
        printed: 0
      })
    }
    yield* Effect.addFinalizer(() => Effect.sync(() => members.forEach(({ child }) => child.kill("SIGKILL"))))

    const order = (member: Member, what: Order) => {
      if (member.child.connected) member.child.send(what, () => {})
    }

    return {
      members,
      histories,
      violations,
      order,
      kill: (member: Member) => void member.child.kill("SIGKILL"),
      restart: (member: Member) => {
        const index = members.indexOf(member)
        member.generation += 1
        member.child = start(places[index]!, index, member.generation)
      },
      enter: (next: WorkerConfig["phase"]) => {
        phase = next
        for (const member of members) order(member, { _tag: "Phase", phase })
      },
      /**
       * Waits at most `bound` milliseconds until all processes have exited. A process that does not exit is a
       * violation: a leaked timer or connection keeps it alive.
       */
      ended: (bound: number) =>
        Effect.gen(function*() {
          const until = now() + bound
          const left = () => members.filter(({ child }) => child.exitCode === null && child.signalCode === null)
          while (left().length > 0 && now() < until) yield* Effect.sleep("50 millis")
          for (const { child, name, output } of left()) {
            violations.push(`${name} does not exit, because timers or connections are still open. ${output}`)
            child.kill("SIGKILL")
          }
          for (const { name, output, printed } of members) {
            if (printed > 2_000_000) violations.push(`${name} printed ${printed} bytes: ${output}`)
          }
        })
    }
  }) satisfies Effect.Effect<unknown, never, Scope.Scope>
