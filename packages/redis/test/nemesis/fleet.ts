/** The processes of the fleet, and the external system that they write to. */
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
  /** Whether a fault keeps it away, or stopped. */
  isTouched: boolean
  /** The end of the process's output. */
  output: string
  /** The length of the process's output, in bytes. */
  printed: number
}

const libraries = [
  "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
  "/usr/lib/faketime/libfaketime.so.1"
]

/** libfaketime, of the Debian package `faketime`. */
export const fakeTime = libraries.find(existsSync)

/** The wall clock runs at another rate, or seconds ahead; CLOCK_MONOTONIC is that of the machine. */
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
  /** Seconds. */
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
      // Also for one that is killed before it writes
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
        violations.push(`${name} ended by itself (${signal ?? code}): ${members[index]?.output ?? ""}`)
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
      /** Waits until all have ended on their own: a timer or connection that is left keeps a process alive. */
      ended: (bound: number) =>
        Effect.gen(function*() {
          const until = now() + bound
          const left = () => members.filter(({ child }) => child.exitCode === null && child.signalCode === null)
          while (left().length > 0 && now() < until) yield* Effect.sleep("50 millis")
          for (const { child, name, output } of left()) {
            violations.push(`${name} continues after its end: timers or connections are left. ${output}`)
            child.kill("SIGKILL")
          }
          for (const { name, output, printed } of members) {
            if (printed > 2_000_000) violations.push(`${name} printed ${printed} bytes: ${output}`)
          }
        })
    }
  }) satisfies Effect.Effect<unknown, never, Scope.Scope>
