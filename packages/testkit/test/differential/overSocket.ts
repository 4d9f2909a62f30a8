/** The differential run with both servers at the other end of a socket. */
import { FakeRedis } from "@effect-simba/testkit"
import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
import { Effect } from "effect"
import type { Connection } from "./resp.ts"
import { open } from "./resp.ts"
import type { Outcome } from "./runner.ts"
import { run, socketFake } from "./runner.ts"

/** A batch reaches the fake after the real server has answered it. */
const behind = 1000

export const overSocket = (real: Connection, seed: number, cases: number): Promise<Outcome> =>
  Effect.gen(function*() {
    const { port } = yield* FakeRedisServer.listen()
    return yield* Effect.promise(async () => {
      const fake = await open(port)
      const outcome = await run(real, socketFake(fake), seed, cases, behind)
      fake.close()
      return outcome
    })
  }).pipe(Effect.scoped, Effect.provide(FakeRedis.layer({ seed, expiryDelay: [0, 0] })), Effect.runPromise)
