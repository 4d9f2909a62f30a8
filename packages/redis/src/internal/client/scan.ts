/**
 * Scans the keys on all servers, page by page. Used by `store` to list mutexes, and by `RedisDoctor` to list jobs and
 * pauses.
 */
import type { BackendError } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { RedisTopology } from "../../RedisTopology.ts"
import type { Redis } from "./effectRedis.ts"
import { fromRedis } from "./errors.ts"

/**
 * Reads pages of about 500 keys to avoid blocking the server for long. `filter` is passed to `SCAN` as arguments. A key
 * may be returned twice.
 */
export const scan = (
  operation: string,
  { send }: Redis["Service"],
  topology: RedisTopology,
  ...filter: ReadonlyArray<string>
): Stream.Stream<string, BackendError> => {
  const keysOf = (send: Redis["Service"]["send"]) =>
    Stream.paginate(
      "0",
      (cursor) =>
        send<[next: string, keys: ReadonlyArray<string>]>("SCAN", cursor, "COUNT", "500", ...filter).pipe(
          Effect.mapError(fromRedis(operation)),
          Effect.map(([next, keys]) => [keys, next === "0" ? Option.none() : Option.some(next)] as const)
        )
    )
  return topology._tag === "Single"
    ? keysOf(send)
    : Stream.flatMap(Stream.fromIterableEffect(topology.primaries), keysOf)
}
