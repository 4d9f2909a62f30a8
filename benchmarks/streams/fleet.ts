/** Starts consumers as processes, and announces data streams on the server that they share. */
import { StreamClient } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Effect, Layer, type Scope } from "effect"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { Server } from "../../packages/redis/test/support/redisServer.ts"
import { now, type Question, type Said, type Setup, type Tally, type Usage } from "./consumer.ts"

const file = fileURLToPath(new URL("./consumer.ts", import.meta.url))

export interface Consumer {
  readonly said: ReadonlyArray<Said>
  /** Waits until the consumer has reported something that satisfies the predicate, and returns it. */
  readonly until: (what: string, is: (said: Said) => boolean) => Effect.Effect<Said>
  readonly usage: Effect.Effect<Usage>
  readonly tally: Effect.Effect<Tally>
  /** Closes the consumer cleanly. Returns how long that took, in milliseconds. */
  readonly close: Effect.Effect<number>
  /** Kills the process. Returns the instant just before the kill. */
  readonly kill: Effect.Effect<number>
}

export const start = (setup: Setup): Effect.Effect<Consumer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const child = spawn(process.execPath, ["--expose-gc", file], {
          env: { ...process.env, SIMBA_BENCH_STREAMS: JSON.stringify(setup) },
          stdio: ["ignore", "ignore", "inherit", "ipc"]
        })
        const said: Array<Said> = []
        let check = () => {}
        child.on("message", (message) => {
          said.push(message as Said)
          check()
        })
        return {
          child,
          said,
          onSaid: (listener: () => void) => {
            check = listener
          }
        }
      }),
      ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
    ),
    ({ child, onSaid, said }) => {
      const until: Consumer["until"] = (what, is) =>
        Effect.callback<Said>((resume) => {
          let observed = 0
          const check = () => {
            while (observed < said.length) {
              const next = said[observed++]!
              if (next._tag === "Failed") return resume(Effect.die(new Error(next.problem)))
              if (is(next)) return resume(Effect.succeed(next))
            }
          }
          onSaid(check)
          check()
        }).pipe(
          Effect.timeoutOrElse({
            duration: "90 seconds",
            orElse: () => Effect.die(new Error(`timed out after 90 seconds: ${what}`))
          })
        )
      const ask = <Tag extends Said["_tag"]>(question: Question, tag: Tag) =>
        Effect.suspend(() => {
          const before = said.length
          child.send(question)
          return until(`the reply to ${question}`, (one) => one._tag === tag && said.indexOf(one) >= before)
        }) as Effect.Effect<Extract<Said, { readonly _tag: Tag }>>
      return {
        said,
        until,
        usage: Effect.map(ask("usage", "Usage"), ({ usage }) => usage),
        tally: Effect.map(ask("tally", "Tally"), ({ tally }) => tally),
        close: Effect.suspend(() => {
          const before = now()
          return Effect.map(ask("close", "Closed"), ({ at }) => at - before)
        }),
        kill: Effect.sync(() => {
          const at = now()
          child.kill("SIGKILL")
          return at
        })
      }
    }
  )

/** Announces a number of data streams for a service. */
export const announce = (server: Server, service: string, count: number) =>
  StreamClient.announceAll(Array.from({ length: count }, (_, index) => ({ stream: `${service} ${index}` }))).pipe(
    Effect.provide(
      RedisStreams.layerRedis({ service }).pipe(
        Layer.provide(IoRedis.layer({ url: server.url, commandTimeout: "30 seconds" }))
      )
    )
  )

let services = 0

/** Returns a name that no other measurement uses. */
export const freshService = (label: string): string => `${label}-${++services}`

export const setup = (
  server: Server,
  service: string,
  work: Setup["work"],
  options: Omit<StreamClient.Options, "service">
): Setup => ({ url: server.url, work, options: { ...options, service } })
