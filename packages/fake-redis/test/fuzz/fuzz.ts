/**
 * Sends bad input to the server: garbage, huge lengths, partial frames, mutated commands and broken connections. After
 * each batch, another client must still be served.
 */
import { createFakeRedis } from "@effect-simba/fake-redis"
import { makeDraw } from "../differential/draw.ts"
import { generate } from "../differential/generator.ts"
import { openRaw, type RawSocket } from "../rawSocket.ts"

export interface FuzzOptions {
  readonly seed: number
  readonly cases: number
}

export interface FuzzOutcome {
  readonly cases: number
  /** The number of connections that the server closed. */
  readonly closed: number
  /** The number of bytes that the server sent. */
  readonly replied: number
}

const BATCH = 20

const encode = (args: ReadonlyArray<string>): string =>
  `*${args.length}\r\n${
    args.map((arg) => Buffer.from(arg, "utf8").toString("latin1")).map((arg) => `$${arg.length}\r\n${arg}\r\n`).join("")
  }`

const sizes = [
  "-1",
  "-2",
  "0",
  "1",
  "7",
  "2147483647",
  "2147483648",
  "536870912",
  "536870913",
  "1e3",
  "",
  "9".repeat(30)
]

type Draw = () => number

const pick = <A>(draw: Draw, items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!

const garbage = (draw: Draw, length: number): string =>
  Array.from({ length }, () => String.fromCharCode(Math.floor(draw() * 256))).join("")

const marks = "*$+-:_,#!=(%~>|\r\n\"'\\\0"

/** Excludes commands that may never reply or that stop the server. */
const isFair = (args: ReadonlyArray<string>): boolean => !/^(?:WAIT|CLIENT|SHUTDOWN)$/i.test(args[0]!)

const commands = (draw: Draw): ReadonlyArray<string> => generate(draw).filter(isFair).map(encode)

const mutate = (draw: Draw, text: string): string => {
  const at = Math.floor(draw() * text.length)
  const how = draw()
  if (how < 0.3) return text.slice(0, at)
  if (how < 0.5) return text.slice(0, at) + garbage(draw, 1 + Math.floor(draw() * 4)) + text.slice(at + 1)
  if (how < 0.7) return text.slice(0, at) + text.slice(at + 1 + Math.floor(draw() * 5))
  if (how < 0.9) return text.replace(/([*$])[0-9]+/, (_, mark: string) => mark + pick(draw, sizes))
  return text + text.slice(at)
}

const input = (draw: Draw): string => {
  const how = draw()
  if (how < 0.15) return garbage(draw, Math.floor(draw() * 200))
  if (how < 0.25) return Array.from({ length: 30 }, () => pick(draw, [...marks])).join("")
  if (how < 0.35) return `${pick(draw, ["*", "$"])}${pick(draw, sizes)}\r\n${garbage(draw, 10)}`
  if (how < 0.4) return `*${pick(draw, sizes)}\r\n$${pick(draw, sizes)}\r\n${pick(draw, ["", "PING\r\n"])}`
  if (how < 0.42) return garbage(draw, 70_000).replace(/[\r\n]/g, "x")
  if (how < 0.7) return commands(draw).map((text) => mutate(draw, text)).join("")
  return commands(draw).join("")
}

/**
 * Sends the input in pieces, and disconnects early or late. Returns the output, and whether the server closed first.
 */
const attack = async (draw: Draw, port: number): Promise<readonly [text: string, closed: boolean]> => {
  const client = await openRaw({ port })
  client.socket.on("error", () => undefined)
  let text = input(draw)
  let isClosed = false
  client.socket.on("end", () => isClosed = true)
  while (text !== "") {
    const size = draw() < 0.5 ? text.length : 1 + Math.floor(draw() * text.length)
    client.write(text.slice(0, size))
    text = text.slice(size)
    if (draw() < 0.1) await new Promise((resolve) => setImmediate(resolve))
  }
  if (draw() < 0.3) {
    client.socket.destroy()
    return ["", false]
  }
  client.socket.end()
  const result = await client.rest()
  client.socket.destroy()
  return [result, isClosed]
}

const serves = async (witness: RawSocket, batch: number): Promise<void> => {
  const wanted = `$${String(batch).length}\r\n${batch}\r\n`
  witness.write(`ECHO ${batch}\r\n`)
  const text = await witness.until((text) => text.endsWith(wanted))
  if (!text.endsWith(wanted)) throw new Error(`the server stopped serving the witness connection in batch ${batch}`)
}

export const fuzz = async ({ cases, seed }: FuzzOptions): Promise<FuzzOutcome> => {
  const server = await createFakeRedis({ undoDepth: 0 })
  const { port } = server
  const draw = makeDraw(seed)
  const witness = await openRaw({ port })
  let closed = 0
  let replied = 0
  let done = 0
  for (let batch = 0; done < cases; batch++) {
    const size = Math.min(BATCH, cases - done)
    const results = await Promise.all(Array.from({ length: size }, () => attack(draw, port)))
    for (const [text, isClosed] of results) {
      replied += text.length
      if (isClosed) closed++
    }
    done += size
    await serves(witness, batch)
  }
  witness.socket.destroy()
  await server.close()
  return { cases: done, closed, replied }
}
