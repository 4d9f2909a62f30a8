/** The proxy before Redis, from the side of the suite. */
import { Deferred, Effect, Exit, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { ProxyAnswered, ProxyAsked, Traffic } from "./proxyProcess.ts"

export type { Traffic } from "./proxyProcess.ts"

export interface Proxy {
  readonly url: string
  /** What was sent since the last time; from now on with a log, where one is wanted. */
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
  const asked = new Map<number, Deferred.Deferred<ProxyAnswered>>()
  const expect = (id: number) => {
    const answer = Deferred.makeUnsafe<ProxyAnswered>()
    asked.set(id, answer)
    return Deferred.await(answer)
  }
  const settle = (id: number, exit: Exit.Exit<ProxyAnswered>) => {
    const answer = asked.get(id)
    asked.delete(id)
    if (answer !== undefined) Deferred.doneUnsafe(answer, exit)
  }
  child.on("message", (answered: ProxyAnswered) => settle(answered.id, Exit.succeed(answered)))
  child.on("exit", () => [...asked.keys()].forEach((id) => settle(id, Exit.die(new Error("the proxy has ended")))))
  const ready = yield* expect(0)
  let count = 0
  return {
    url: `redis://127.0.0.1:${ready.port}`,
    take: (options) =>
      Effect.suspend(() => {
        const id = ++count
        const answer = expect(id)
        child.send({ id, log: options?.log === true } satisfies ProxyAsked)
        return answer
      })
  }
})
