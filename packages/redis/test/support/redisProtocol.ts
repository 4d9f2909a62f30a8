/**
 * A minimal Redis client that sends one command over a new connection. Tests use it to inspect and disturb servers
 * without a client library.
 */
import { Effect, Schema } from "effect"
import { connect } from "node:net"

export class RedisServerError extends Schema.TaggedError<RedisServerError>()("RedisServerError", {
  message: Schema.String
}) {}

export type Reply = string | number | null | ReadonlyArray<Reply> | RedisServerError

/** Parses one reply. Returns `undefined` if it is incomplete. */
const parse = (data: Buffer, start: number): readonly [reply: Reply, end: number] | undefined => {
  const eol = data.indexOf("\r\n", start)
  if (eol === -1) return undefined
  const line = data.toString("utf8", start + 1, eol)
  const end = eol + 2
  switch (String.fromCharCode(data[start]!)) {
    case "+":
      return [line, end]
    case "-":
      return [new RedisServerError({ message: line }), end]
    case ":":
      return [Number(line), end]
    case "$": {
      const length = Number(line)
      if (length < 0) return [null, end]
      return data.length < end + length + 2
        ? undefined
        : [data.toString("utf8", end, end + length), end + length + 2]
    }
    case "*": {
      const count = Number(line)
      if (count < 0) return [null, end]
      const items: Array<Reply> = []
      let at = end
      while (items.length < count) {
        const item = parse(data, at)
        if (item === undefined) return undefined
        items.push(item[0])
        at = item[1]
      }
      return [items, at]
    }
    default:
      return [new RedisServerError({ message: `not a reply: ${line}` }), end]
  }
}

const encode = (args: ReadonlyArray<string>): string =>
  `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`

/** Sends one command to a local server. Fails if the reply is an error or takes longer than two seconds. */
export const send = (port: number, ...args: ReadonlyArray<string>): Effect.Effect<Reply, RedisServerError> =>
  Effect.callback((resume) => {
    const fail = (message: string) => resume(Effect.fail(new RedisServerError({ message })))
    const socket = connect(port, "127.0.0.1")
    let data: Buffer = Buffer.alloc(0)
    socket.setTimeout(2000, () => {
      fail(`${args[0]}: no reply from port ${port}`)
      socket.destroy()
    })
    socket.on("connect", () => socket.write(encode(args)))
    socket.on("error", (error) => fail(`${args[0]}: ${error.message}`))
    socket.on("close", () => fail(`${args[0]}: port ${port} closed the connection`))
    socket.on("data", (chunk) => {
      data = Buffer.concat([data, chunk])
      const reply = parse(data, 0)
      if (reply === undefined) return
      resume(reply[0] instanceof RedisServerError ? Effect.fail(reply[0]) : Effect.succeed(reply[0]))
      socket.destroy()
    })
    return Effect.sync(() => socket.destroy())
  })
