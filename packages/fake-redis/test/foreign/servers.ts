/** Runs the same steps with another client library on the fake and on a redis-server, and compares the results. */
import { createFakeRedis } from "@effect-simba/fake-redis"
import { assert, it } from "@effect/vitest"
import type { RedisClientOptions } from "redis"
import { startServer } from "../differential/realServer.ts"

/** An address in a form that both ioredis and node-redis accept for their sockets. */
export type Where = { path: string } | { host: string; port: number }

/** node-redis has a separate type for each kind of address. */
export const socketOf = (
  where: Where
): NonNullable<RedisClientOptions["socket"]> => ("path" in where ? { ...where, tls: false } : where)

export type Steps = (where: Where) => Promise<Readonly<Record<string, unknown>>>

const onFake = async (steps: Steps): Promise<Readonly<Record<string, unknown>>> => {
  const server = await createFakeRedis()
  try {
    return await steps({ host: server.host, port: server.port })
  } finally {
    await server.close()
  }
}

const onReal = async (steps: Steps): Promise<Readonly<Record<string, unknown>>> => {
  const server = await startServer()
  try {
    return await steps({ path: server.path })
  } finally {
    await server.stop()
  }
}

/** Runs the steps on both servers. `names` are the steps that must have run, in order. */
export const alike = (title: string, names: ReadonlyArray<string>, steps: Steps): void => {
  it(title, async () => {
    const [fake, real] = await Promise.all([onFake(steps), onReal(steps)])
    assert.deepStrictEqual(Object.keys(real), names)
    assert.deepStrictEqual(fake, real)
  }, 60_000)
}

/** Returns a rejection's message. */
export const refusal = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    (value) => `no refusal: ${String(value)}`,
    (error: unknown) => error instanceof Error ? error.message : String(error)
  )

/** Waits until a change by another process or connection takes effect. */
export const eventually = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
  for (let attempt = 0; attempt < 400; attempt++) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
  throw new Error("the condition was still false after 10 seconds")
}
