/**
 * The commands that `Redis.send` refuses because they would break the shared connection. `IoRedis.layer` refuses the
 * same commands.
 */
import * as Effect from "effect/Effect"
import * as Redis from "./effectRedis.ts"

const refusals: ReadonlyArray<readonly [commands: RegExp, problem: string]> = [
  [/^[PS]?(UN)?SUBSCRIBE\b/, "use Redis.subscribe, or Subscriber"],
  [
    /^(QUIT|MONITOR|RESET|HELLO|AUTH|SELECT|READONLY|READWRITE|ASKING)\b/,
    "all callers share the connection: set it in the layer's options"
  ],
  [/^(SYNC|PSYNC|REPLCONF)\b/, "the server would treat this connection as a replica's"],
  [
    /^(MULTI|EXEC|DISCARD|WATCH|UNWATCH)\b/,
    "other callers' commands would end up in the transaction: use Redis.reserve, or a script"
  ],
  [
    /^(BLPOP|BRPOP|BLMOVE|BLMPOP|BRPOPLPUSH|BZPOPMIN|BZPOPMAX|BZMPOP|WAIT|WAITAOF|XREAD(GROUP)?( NOACK| COUNT \S*| GROUP \S* \S*)* BLOCK)( |$)/,
    "it would block all other callers: use Redis.reserve"
  ],
  [/^CLIENT (REPLY|TRACKING|CACHING)( |$)/, "all callers share the connection: use Redis.reserve"]
]

type Send = Redis.Redis["Service"]["send"]

export const refusing =
  (send: Send): Send => <A>(command: string, ...args: ReadonlyArray<string>): Effect.Effect<A, Redis.RedisError> => {
    const line = [command, ...args.map((arg) => String(arg).replace(/\s/g, "_"))].join(" ").toUpperCase()
    const problem = refusals.find(([commands]) => commands.test(line))?.[1]
    return problem === undefined ? send<A>(command, ...args) : Effect.fail(
      new Redis.RedisError({ cause: new Error(`Redis.send refuses ${command.toUpperCase()}: ${problem}`) })
    )
  }
