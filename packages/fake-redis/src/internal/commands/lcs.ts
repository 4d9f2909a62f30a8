/** LCS: returns the longest common subsequence of two strings, its length, or its positions. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"

/** `table[i][j]` is the length of the longest common subsequence of the first i and the first j characters. */
const tableOf = (a: string, b: string): Array<Uint32Array> => {
  const table = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      table[i]![j] = a[i - 1] === b[j - 1]
        ? table[i - 1]![j - 1]! + 1
        : Math.max(table[i - 1]![j]!, table[i]![j - 1]!)
    }
  }
  return table
}

const lcs: Handler = (context, args) => {
  const [a = "", b = ""] = [args[1]!, args[2]!].map((key): string => {
    const entry = context.db.read(key)
    if (entry !== undefined && entry.type !== "string") return fail("ERR The specified keys must contain string values")
    return entry === undefined ? "" : entry.value as string
  })
  let length = false
  let index = false
  let withLength = false
  let shortest = 0
  for (let at = 3; at < args.length; at++) {
    const option = args[at]!.toLowerCase()
    if (option === "idx") index = true
    else if (option === "len") length = true
    else if (option === "withmatchlen") withLength = true
    else if (option === "minmatchlen" && at + 1 < args.length) shortest = Math.max(0, integer(args[++at]!))
    else return syntaxError()
  }
  if (index && length) return fail("ERR If you want both the length and indexes, please just use IDX.")
  if ((a.length + 1) * (b.length + 1) > 2 ** 28) {
    return fail("ERR Insufficient memory, failed allocating transient memory for LCS")
  }
  const table = tableOf(a, b)
  const total = table[a.length]![b.length]!
  if (length) return total
  let text = ""
  const matches: Array<Value> = []
  let i = a.length
  let j = b.length
  // The length of the current match, which grows while the characters are equal.
  let run = 0
  const close = () => {
    if (run >= Math.max(1, shortest)) {
      const where: Array<Value> = [[i, i + run - 1], [j, j + run - 1]]
      matches.push(withLength ? [...where, run] : where)
    }
    run = 0
  }
  while (i > 0 && j > 0) {
    if (a[i - 1] === b[j - 1]) {
      text = a[i - 1] + text
      run++
      i--
      j--
      continue
    }
    close()
    if (table[i - 1]![j]! > table[i]![j - 1]!) i--
    else j--
  }
  close()
  return index ? ["matches", matches, "len", total] : text
}

export const lcsCommands: ReadonlyArray<Command> = [define("lcs", lcs)]
