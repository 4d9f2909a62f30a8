/** The suite's side of a contestant's process: starts the process, sends it requests, and ends it. */
import { Deferred, Effect, Schema, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { type Asked, type Call, type Calls, grantedId, type Replied } from "./calls.ts"
import type { Connect } from "./contestant.ts"

export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  contestant: Schema.String,
  message: Schema.String
}) {}

type WithoutRequest = { [K in Call]: Calls[K][0] extends void ? K : never }[Call]

export interface Agent {
  readonly pid: number
  readonly ask: {
    <K extends WithoutRequest>(call: K): Effect.Effect<Calls[K][1], AgentError>
    <K extends Call>(call: K, request: Calls[K][0]): Effect.Effect<Calls[K][1], AgentError>
  }
  /** Connects, unless it is already connected with the same options. */
  readonly connect: (request: Connect) => Effect.Effect<void, AgentError>
  readonly disconnect: Effect.Effect<void, AgentError>
  /** Sets the agents that are notified when one of this agent's contenders is granted a mutex. */
  readonly introduce: (others: ReadonlyArray<Agent>) => void
  readonly hear: () => void
  readonly kill: Effect.Effect<void>
  /** The code paths that the process has warmed up. */
  readonly warm: Set<string>
}

/**
 * Returns the program that the process runs. If commits are compared, each runs its own program, because their versions
 * of Effect may differ.
 */
const fileIn = (root: string | undefined) =>
  fileURLToPath(
    root === undefined
      ? new URL("./agentProcess.ts", import.meta.url)
      : new URL("benchmarks/lib/agentProcess.ts", root)
  )

/** Starts a process for the contestant that the module exports. Closing the scope kills the process. */
export const start = Effect.fnUntraced(function*(
  name: string,
  module: URL,
  root?: string
): Effect.fn.Return<Agent, AgentError, Scope.Scope> {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, ["--expose-gc", "--no-warnings", fileIn(root), module.href], {
        // Drop Node options that pnpm or a debugger has set for this process
        env: { ...process.env, NODE_OPTIONS: "" },
        stdio: ["ignore", 2, 2, "ipc"]
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const asked = new Map<number, Deferred.Deferred<unknown, AgentError>>()
  const fail = (message: string) => new AgentError({ contestant: name, message })
  const expect = (id: number) => {
    const reply = Deferred.makeUnsafe<unknown, AgentError>()
    asked.set(id, reply)
    return reply
  }
  const settle = (id: number, with_: Effect.Effect<unknown, AgentError>) => {
    const reply = asked.get(id)
    asked.delete(id)
    if (reply !== undefined) Deferred.doneUnsafe(reply, with_ as never)
  }
  let known: ReadonlyArray<Agent> = []
  child.on("message", (replied: Replied) =>
    replied.id === grantedId
      ? known.forEach((agent) => agent.hear())
      : settle(replied.id, "error" in replied ? Effect.fail(fail(replied.error)) : Effect.succeed(replied.reply)))
  child.on("error", (error) => [...asked.keys()].forEach((id) => settle(id, Effect.fail(fail(error.message)))))
  child.on(
    "exit",
    (code, signal) =>
      [...asked.keys()].forEach((id) => settle(id, Effect.fail(fail(`its process ended (${signal ?? code})`))))
  )

  yield* Deferred.await(expect(0))
  let count = 0
  let connected = ""
  const ask = (call: Call, request?: unknown): Effect.Effect<never, AgentError> =>
    Effect.suspend(() => {
      if (child.exitCode !== null || child.signalCode !== null) return Effect.fail(fail("its process has ended"))
      const id = ++count
      const reply = expect(id)
      child.send({ id, call, request } satisfies Asked)
      return Deferred.await(reply) as Effect.Effect<never, AgentError>
    })
  return {
    pid: child.pid!,
    ask,
    connect: (request) =>
      Effect.suspend(() => {
        const wanted = JSON.stringify(request)
        if (wanted === connected) return Effect.void
        connected = ""
        return Effect.tap(ask("connect", request), () => Effect.sync(() => void (connected = wanted)))
      }),
    disconnect: Effect.suspend(() => {
      connected = ""
      return ask("disconnect")
    }),
    introduce: (others) => {
      known = others
    },
    hear: () => void child.send({ id: ++count, call: "grantedElsewhere", request: undefined } satisfies Asked),
    kill: Effect.sync(() => void child.kill("SIGKILL")),
    warm: new Set()
  }
})
