/**
 * Records the commands that each server executes, with MONITOR. After a fault that interrupts MONITOR, it reads the
 * server's keys again.
 */
import { Effect, Schedule } from "effect"
import { connect, type Socket } from "node:net"
import type { Server } from "../support/redisServer.ts"
import { type Observed, parseMonitor } from "./history.ts"
import type { Text } from "./keyspace.ts"

/** The values of keys, read one after another between `since` and `at`. */
export interface Snapshot {
  readonly at: number
  /** When the first key was read. Later writes may be missing. */
  readonly since: number
  readonly strings: ReadonlyMap<string, Readonly<Text> | undefined>
  readonly streams: ReadonlyMap<string, ReadonlyArray<readonly [id: string, fields: ReadonlyArray<string>]>>
}

export interface Keys {
  readonly strings: ReadonlyArray<string>
  readonly streams: ReadonlyArray<string>
  /** The servers' ports. Commands from these ports are replication, not requests from clients. */
  readonly ports: ReadonlyArray<number>
}

export const makeObserver = (now: () => number, keys: Keys) => {
  const sockets = new Map<string, Socket>()
  const observed: Array<Observed> = []
  const snapshots: Array<Snapshot> = []
  const replicated = new Set(keys.ports.map((port) => `127.0.0.1:${port}`))
  /**
   * Measures the wall clock minus the monotonic clock to the microsecond, by sampling when `Date.now` changes. A delay
   * can only make a sample too small, so the largest one counts.
   */
  const measure = () => {
    let offset = -Infinity
    for (let wall = Date.now(), sample = 0; sample < 10;) {
      const next = Date.now()
      if (next === wall) continue
      offset = Math.max(offset, next - now())
      wall = next
      sample += 1
    }
    return offset
  }
  let wallEpoch = measure()
  const unreadable: Array<string> = []
  /** When a server closed the MONITOR connection. The commands that it executed afterwards are unknown. */
  const gaps: Array<number> = []

  const listen = (node: string, server: Server) =>
    Effect.callback<void>((resume) => {
      sockets.get(node)?.removeAllListeners("close").destroy()
      const socket = connect(server.port, "127.0.0.1", () => socket.write("MONITOR\r\n"))
      sockets.set(node, socket)
      let rest = ""
      socket.setEncoding("latin1")
      socket.on("error", () => {})
      socket.on("close", () => gaps.push(now()))
      socket.on("data", (chunk: string) => {
        const lines = (rest + chunk).split("\r\n")
        rest = lines.pop()!
        for (const line of lines) {
          if (line === "+OK") resume(Effect.void)
          else {
            const found = parseMonitor(node, line, wallEpoch)
            if (found === undefined) unreadable.push(line.slice(0, 200))
            else if (!replicated.has(found.source)) observed.push(found)
          }
        }
      })
    })

  /** Takes a snapshot of one server's keys. Skips keys that it refuses because another Cluster node has them. */
  const read = (server: Server) =>
    Effect.gen(function*() {
      const since = now()
      const strings = new Map<string, Readonly<Text> | undefined>()
      const streams = new Map<string, ReadonlyArray<readonly [string, ReadonlyArray<string>]>>()
      for (const key of keys.strings) {
        const value = yield* Effect.result(server.send("GET", key))
        if (value._tag === "Failure") continue
        const at = now()
        const left = Number(yield* server.send("PTTL", key))
        // The key may have expired between the two commands
        const isGone = value.success === null || left === -2
        const millis = left < 0 ? Infinity : left
        strings.set(
          key,
          isGone ? undefined : { value: String(value.success), earliest: at + millis, until: now() + millis }
        )
      }
      for (const key of keys.streams) {
        const entries = yield* Effect.result(server.send("XRANGE", key, "-", "+"))
        if (entries._tag === "Success") streams.set(key, entries.success as never)
      }
      snapshots.push({ at: now(), since, strings, streams })
    })

  return {
    observed,
    snapshots,
    unreadable,
    gaps,
    listen,
    read,
    /** Repeats the measurement, because the wall clock may be corrected during the run. */
    follow: Effect.sync(() => {
      const next = measure()
      // A slightly smaller offset means a delay on a busy machine. A much smaller one means that a clock was set back.
      if (next > wallEpoch || next < wallEpoch - 100) wallEpoch = next
    }).pipe(Effect.repeat(Schedule.spaced("5 seconds"))),
    close: Effect.sync(() => sockets.forEach((socket) => socket.removeAllListeners("close").destroy()))
  }
}
export type Observer = ReturnType<typeof makeObserver>
