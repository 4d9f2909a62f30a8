/** The suite's side of the proxy in front of Redis: starts its process and reads its counts. */
import { Deferred, Effect, Exit, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { ProxyAsked, ProxyReplied, Traffic } from "./proxyProcess.ts"

export type { Traffic } from "./proxyProcess.ts"

export interface Proxy {
  readonly url: string
  /** Returns the traffic since the last call. With `log`, records each command from now on. */
  readonly take: (options?: { readonly log?: boolean }) => Effect.Effect<Traffic>
}

const file = fileURLToPath(new URL("./proxyProcess.ts", import.meta.url))

export const start = Effect.fnUntraced(function*(
  port: number,
  latencyMillis: number
): Effect.fn.Return<Proxy, never, Scope.Scope> {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, ["--no-warnings", file, JSON.stringify({ port, latencyMillis })], {
        env: { ...process.env, NODE_OPTIONS: "" },
        stdio: ["ignore", 2, 2, "ipc"]
      })
    ),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  const asked = new Map<number, Deferred.Deferred<ProxyReplied>>()
  const expect = (id: number) => {
    const reply = Deferred.makeUnsafe<ProxyReplied>()
    asked.set(id, reply)
    return Deferred.await(reply)
  }
  const settle = (id: number, exit: Exit.Exit<ProxyReplied>) => {
    const reply = asked.get(id)
    asked.delete(id)
    if (reply !== undefined) Deferred.doneUnsafe(reply, exit)
  }
  child.on("message", (replied: ProxyReplied) => settle(replied.id, Exit.succeed(replied)))
  child.on("exit", () => [...asked.keys()].forEach((id) => settle(id, Exit.die(new Error("the proxy has ended")))))
  const ready = yield* expect(0)
  let count = 0
  return {
    url: `redis://127.0.0.1:${ready.port}`,
    take: (options) =>
      Effect.suspend(() => {
        const id = ++count
        const reply = expect(id)
        child.send({ id, log: options?.log === true } satisfies ProxyAsked)
        return reply
      })
  }
})
