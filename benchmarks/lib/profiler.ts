/**
 * Measures where this process spends its CPU time. Groups samples from the V8 profiler by part, and times writes to
 * sockets.
 */
import { Session } from "node:inspector/promises"
import { Socket } from "node:net"

/** The result of one profile. */
export interface Profiled {
  readonly writes: number
  readonly writeMicros: number
  /** Microseconds by part. Node's native work, such as reading from sockets, belongs to no part. */
  readonly parts: Readonly<Record<string, number>>
}

/** The interval between samples. It is long because each sample stops the thread for a moment. */
const intervalMicros = 400

/** The parts, by the path of the code. A sample belongs to the first part that matches. */
const partsByPath: ReadonlyArray<readonly [part: string, path: RegExp]> = [
  ["ioredis", /\/node_modules\/(?:ioredis|redis-parser|denque|cluster-key-slot|standard-as-callback|@ioredis)\//],
  ["Effect", /\/node_modules\/effect\//],
  ["our core", /\/packages\/core\//],
  ["our redis package", /\/packages\/redis\//],
  ["benchmark", /\/benchmarks\//],
  ["socket", /^node:(?:net|dgram|internal\/(?:stream_base_commons|streams\/|js_stream_socket))/],
  ["timers, tasks of Node", /^node:/]
]

interface Node {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string }
  readonly children?: ReadonlyArray<number> | undefined
}

const partOf = ({ callFrame: { functionName, url } }: Node, parent: string): string => {
  if (functionName === "(garbage collector)") return "garbage collector"
  if (functionName === "(idle)") return "idle"
  if (functionName === "(program)" || functionName === "(root)") return "native code"
  // V8 and libuv functions count towards their callers, except for functions that write
  if (url === "") return /^(?:write|writev|writeBuffer|write\w+String)$/.test(functionName) ? "socket" : parent
  return partsByPath.find(([, path]) => path.test(url))?.[0] ?? "benchmark"
}

/** Adds up the samples by part. All samples have the same weight, because a busy machine delays some of them. */
const grouped = (nodes: ReadonlyArray<Node>, samples: ReadonlyArray<number>, micros: number) => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const partById = new Map<number, string>()
  const visit = (node: Node, parent: string) => {
    const part = partOf(node, parent)
    partById.set(node.id, part)
    for (const child of node.children ?? []) visit(byId.get(child)!, part)
  }
  visit(nodes[0]!, "native code")
  const parts: Record<string, number> = {}
  for (const id of samples) {
    const part = partById.get(id)!
    if (part !== "idle") parts[part] = (parts[part] ?? 0) + micros / samples.length
  }
  return parts
}

type Write = (...args: ReadonlyArray<unknown>) => void

/** Counts the writes to sockets, and measures how long it takes to pass their data to the system. */
const countWrites = () => {
  const counted = { writes: 0, micros: 0 }
  const prototype = Socket.prototype as unknown as Record<"_write" | "_writev", Write>
  const restore = (["_write", "_writev"] as const).map((method) => {
    const original = prototype[method]
    prototype[method] = function(this: unknown, ...args) {
      const before = performance.now()
      original.apply(this, [...args])
      counted.writes++
      counted.micros += 1000 * (performance.now() - before)
    }
    return () => {
      prototype[method] = original
    }
  })
  return () => {
    restore.forEach((undo) => undo())
    return counted
  }
}

/** Starts a profile, and returns a function that ends it. */
export const start = async (): Promise<() => Promise<Profiled>> => {
  const session = new Session()
  session.connect()
  await session.post("Profiler.enable")
  await session.post("Profiler.setSamplingInterval", { interval: intervalMicros })
  const counted = countWrites()
  await session.post("Profiler.start")
  return async () => {
    const { profile } = await session.post("Profiler.stop")
    session.disconnect()
    const { micros, writes } = counted()
    const { endTime, nodes, samples = [], startTime } = profile
    return {
      writes,
      writeMicros: micros,
      parts: grouped(nodes, samples, endTime - startTime)
    }
  }
}
