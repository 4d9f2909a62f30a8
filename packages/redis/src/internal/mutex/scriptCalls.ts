/** Reads the operations of one call of `acquireAndRelease.lua`, and the reply to each: for simulations. */

export interface Call {
  readonly kind: "acquire" | "confirm" | "release"
  readonly ownerKey: string
  readonly id: string
  readonly mode: string
  readonly unfair: boolean
  /** The id that a release queues, or the empty text. */
  readonly requeue: string
  readonly reply: unknown
}

const widths: Record<string, number> = { t: 1, w: 1, a: 6, c: 3, r: 1, q: 2, d: 6, i: 1 }

/** Of any command; none if it is not that script. */
export const callsOf = (args: ReadonlyArray<string>, reply: unknown): ReadonlyArray<Call> => {
  if (args[0] !== "EVALSHA" && args[0] !== "EVAL") return []
  const keys = Number(args[2])
  const codes = args[3 + keys] ?? ""
  if (!/^[twacrqdi]+$/i.test(codes) || keys !== 4 * codes.replace(/[A-Z]/g, "").length) return []
  let at = 3 + keys + 4
  let key = -1
  return [...codes].flatMap((letter, index) => {
    const code = letter.toLowerCase()
    // A capital letter: the mutex of the operation before
    if (letter === code) key += 4
    const own = args.slice(at, at += widths[code]!)
    return code === "i" ? [] : [{
      kind: "twa".includes(code) ? "acquire" : code === "c" ? "confirm" : "release",
      ownerKey: args[key]!,
      id: own[0]!,
      mode: code === "a" ? own[1]! : code === "w" ? "wait" : "try",
      unfair: code === "a" ? own[5] === "1" : code === "d" && own[3] === "1",
      requeue: code === "d" ? own[4]! : code === "q" ? own[1]! : "",
      reply: Array.isArray(reply) ? reply[index] : reply
    }]
  })
}
