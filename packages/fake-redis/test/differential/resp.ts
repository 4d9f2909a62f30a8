/**
 * A minimal RESP2 client: pipelines of commands, and their replies in order.
 */
import { connect } from "node:net"

export class Refusal {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Result = string | number | null | Refusal | ReadonlyArray<Result>

export interface Connection {
  readonly send: (commands: ReadonlyArray<ReadonlyArray<string>>) => Promise<ReadonlyArray<Result>>
  readonly close: () => void
}

const INCOMPLETE = Symbol("incomplete")

const parse = (data: Buffer, from: number): readonly [Result, number] | typeof INCOMPLETE => {
  const end = data.indexOf("\r\n", from)
  if (end < 0) return INCOMPLETE
  const line = data.toString("utf8", from + 1, end)
  switch (data[from]) {
    case 43:
      return [line, end + 2]
    case 45:
      return [new Refusal(line), end + 2]
    case 58:
      return [Number(line), end + 2]
    case 36: {
      const size = Number(line)
      if (size < 0) return [null, end + 2]
      if (data.length < end + 2 + size + 2) return INCOMPLETE
      return [data.toString("utf8", end + 2, end + 2 + size), end + 2 + size + 2]
    }
    default: {
      const size = Number(line)
      if (size < 0) return [null, end + 2]
      const items: Array<Result> = []
      let at = end + 2
      for (let i = 0; i < size; i++) {
        const item = parse(data, at)
        if (item === INCOMPLETE) return INCOMPLETE
        items.push(item[0])
        at = item[1]
      }
      return [items, at]
    }
  }
}

const encode = (args: ReadonlyArray<string>): string =>
  `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`

/** Connects to a port on this machine, or to a Unix socket. */
export const open = (at: number | string): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const socket = typeof at === "number" ? connect(at, "127.0.0.1") : connect(at)
    let buffer = Buffer.alloc(0)
    let results: Array<Result> = []
    let wanted = 0
    let done: (results: ReadonlyArray<Result>) => void = () => {}
    socket.setNoDelay(true)
    socket.on("error", reject)
    socket.on("data", (chunk) => {
      buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk])
      let at = 0
      while (at < buffer.length) {
        const item = parse(buffer, at)
        if (item === INCOMPLETE) break
        results.push(item[0])
        at = item[1]
      }
      buffer = buffer.subarray(at)
      if (wanted > 0 && results.length >= wanted) {
        wanted = 0
        done(results)
      }
    })
    socket.on("connect", () =>
      resolve({
        send: (commands) =>
          commands.length === 0 ?
            Promise.resolve([]) :
            new Promise((finish) => {
              results = []
              wanted = commands.length
              done = finish
              socket.write(commands.map(encode).join(""))
            }),
        close: () => socket.destroy()
      }))
  })
