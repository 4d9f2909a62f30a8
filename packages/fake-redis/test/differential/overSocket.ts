/** Compares both servers over sockets. */
import { createFakeRedis } from "@effect-simba/fake-redis"
import type { Connection } from "./resp.ts"
import { open } from "./resp.ts"
import type { Outcome } from "./runner.ts"
import { run, socketFake } from "./runner.ts"
import { openTrackers } from "./trackers.ts"

/** How late the fake receives a batch, in milliseconds: after the real server has replied to it. */
const behind = 1000

/** `path`: where the real server listens. */
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
