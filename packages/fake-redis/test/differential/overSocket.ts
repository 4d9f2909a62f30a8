/** Compares the fake with a redis-server, both over sockets. */
import { createFakeRedis } from "@effect-simba/fake-redis"
import type { Connection } from "./resp.ts"
import { open } from "./resp.ts"
import type { Outcome } from "./runner.ts"
import { run, socketFake } from "./runner.ts"
import { openTrackers } from "./trackers.ts"

/** The tolerance in milliseconds: the fake receives each batch after the real server has replied to it. */
const behind = 1000

/** Runs the comparison. `path` is the real server's socket. */
export const overSocket = async (real: Connection, path: string, seed: number, cases: number): Promise<Outcome> => {
  const server = await createFakeRedis({ seed: String(seed), expiryDelay: [0, 0] })
  const fake = await open(server.port)
  const trackers = await openTrackers({ path }, { port: server.port })
  const outcome = await run(real, socketFake(fake), seed, cases, { tolerance: behind, trackers })
  trackers.close()
  fake.close()
  await server.close()
  return outcome
}
