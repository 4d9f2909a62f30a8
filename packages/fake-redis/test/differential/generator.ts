/**
 * Generates random command sequences from a seed.
 */
import { anyCommand } from "./anyCommand.ts"
import { choices } from "./choices.ts"
import type { Draw } from "./draw.ts"
import { scripts } from "./scripts.ts"
import { blocking, fillings, groupBeginning, groupSteps, templates } from "./templates.ts"

const pick = <A>(draw: Draw, items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!

/** The placeholder for keys of each type. */
const TYPES: ReadonlyArray<string> = ["s", "h", "l", "z", "t", "x"]
const KEYS: ReadonlyArray<string> = TYPES.flatMap((type) => choices[type]!)

const placeholder = (name: string, draw: Draw): string => {
  if (name === "newid") return `${Math.floor(draw() * 40)}-${Math.floor(draw() * 3)}`
  if (name === "k" || (TYPES.includes(name) && draw() < 0.04)) {
    return pick(draw, choices[pick(draw, TYPES)]!)
  }
  return pick(draw, choices[name]!)
}

const weighted: ReadonlyArray<string> = templates.flatMap((line) => {
  const match = /^(.*)\|([0-9])$/.exec(line)
  return match === null ? [line] : Array.from({ length: Number(match[2]) }, () => match[1]!)
})

const fill = (template: string, draw: Draw): Array<string> =>
  template.replace(/<([^<>]*)>/g, (_, alternatives: string) => pick(draw, alternatives.split("|")))
    .split(" ").filter((word) => word !== "")
    .map((word) => {
      const name = /^\{([a-z]+)\}$/.exec(word)?.[1]
      return name === undefined ? word : placeholder(name, draw)
    })

/** Returns the next commands: one, or several that belong together. */
export const generate = (draw: Draw): ReadonlyArray<ReadonlyArray<string>> => {
  const roll = draw()
  if (roll < 0.14) {
    const source = pick(draw, scripts)
    const name = draw() < 0.05 ? "EVAL_RO" : "EVAL"
    return [[name, source, "1", placeholder("k", draw), placeholder(draw() < 0.5 ? "v" : "int", draw)]]
  }
  if (roll < 0.17) {
    const [before, after] = pick(draw, blocking)
    const first = fill(before, draw)
    const second = fill(after, draw)
    // Make sure that the reader finds an element or a wrong type, so that it never blocks.
    if (/^B[LR]POP$/.test(second[0]!)) second[1] = first[1]!
    return [["DISCARD"], ["SELECT", "0"], ["DEL", first[1]!], first, second]
  }
  // Test whether a command counts as a change to a watched key.
  if (roll < 0.19) {
    return [["DISCARD"], ["WATCH", ...KEYS], ...withEncoding(fill(pick(draw, weighted), draw)), ["MULTI"], ["EXEC"]]
  }
  if (roll < 0.2) {
    const steps = Array.from({ length: 8 }, () => pick(draw, groupSteps))
    return [...groupBeginning, ...steps, "XINFO STREAM x1 FULL"].map((template) => fill(template, draw))
  }
  if (roll < 0.26) return [anyCommand(draw)]
  if (roll < 0.28) {
    const [template, related] = pick(draw, fillings)
    const filling = fill(template, draw)
    const remove = ["DEL", filling[1]!]
    const steps = weighted.filter((template) => related.test(template))
    const tried = Array.from({ length: 6 }, () => withEncoding(fill(pick(draw, steps), draw))).flat()
    return [["DISCARD"], remove, filling, ...tried, remove]
  }
  const args = fill(pick(draw, weighted), draw)
  // Leave out commands that could wait forever, return random replies, or change settings beyond this seed.
  if (draw() < 0.02 && !/^(?:WAIT|SPOP|SRANDMEMBER|CONFIG)$/.test(args[0]!)) {
    const how = draw()
    if (how < 0.4 && args.length > 1) args.pop()
    else if (how < 0.7) args.push(placeholder("v", draw))
    else if (args.length > 1 && !/^(?:P?EXPIRE|P?SETEX|GETEX|SET)$/.test(args[0]!)) {
      args[1 + Math.floor(draw() * (args.length - 1))] = placeholder(args[0]!.startsWith("X") ? "i" : "int", draw)
    }
  }
  return withEncoding(args)
}

/** Reads the key's encoding before a scan, because the encoding decides whether the scan is paged. */
const withEncoding = (args: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  /^[HSZ]SCAN$/.test(args[0]!) && args.length > 1 ? [["OBJECT", "ENCODING", args[1]!], args] : [args]
