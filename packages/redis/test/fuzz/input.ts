/** Random inputs for the fuzzer: arbitrary values, and mutations of valid ones. */

export type Draw = () => number

export const pick = <A>(draw: Draw, items: ReadonlyArray<A>): A => items[Math.floor(draw() * items.length)]!

/** The random number generator mulberry32. */
export const makeDraw = (seed: number): Draw => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/**
 * The random numbers for one case. They depend only on the seed and the case's number, so a case can be repeated alone.
 */
export const drawOf = (seed: number, number: number) => makeDraw(seed * 1_000_003 + number)

const characters = [
  "a",
  "Z",
  "0",
  "9",
  "-",
  "@",
  "@@",
  ":",
  "{",
  "}",
  "|",
  "\"",
  "\\",
  "\n",
  "\0",
  " ",
  "é",
  "\ud800",
  "\udc00",
  "🦁",
  "%",
  "*"
]

export const anyText = (draw: Draw): string =>
  pick(draw, [
    () => "",
    () => Array.from({ length: Math.floor(draw() * 12) }, () => pick(draw, characters)).join(""),
    () => pick(draw, characters).repeat(Math.floor(draw() * 2000)),
    () => String((draw() - 0.5) * 10 ** Math.floor(draw() * 30)),
    () =>
      pick(draw, [
        "NaN",
        "Infinity",
        "-0",
        "1e999",
        "null",
        "undefined",
        "true",
        "{}",
        "[]",
        "__proto__",
        "constructor",
        "toString"
      ]),
    () => String(Math.floor(draw() * 1e16)),
    () => `${Math.floor(draw() * 1e13)}-${Math.floor(draw() * 10)}`
  ])()

const anyScalar = (draw: Draw): unknown =>
  pick(draw, [
    anyText,
    anyText,
    anyText,
    () => null,
    () => undefined,
    () => NaN,
    () => -0,
    () => Infinity,
    () => Math.floor((draw() - 0.5) * 2 ** 54),
    () => draw(),
    () => BigInt(Math.floor(draw() * 1e15)),
    () => true,
    () => false,
    () => Symbol("a reply"),
    () => new Error("a reply"),
    () => new Date(NaN),
    () => Buffer.from(anyText(draw)),
    () => new Map([[anyText(draw), anyText(draw)]]),
    () => new Set([anyText(draw)]),
    () => () => anyText(draw)
  ])(draw)

/**
 * A random value: usually a scalar or a small nested one. Rarely, it is nested deeper than a call stack, or a megabyte
 * long.
 */
export const anyValue = (draw: Draw, depth = 0): unknown => {
  const way = draw()
  if (depth > 3 || way < 0.5) return anyScalar(draw)
  if (way < 0.8) return Array.from({ length: Math.floor(draw() * 7) }, () => anyValue(draw, depth + 1))
  if (way < 0.95) {
    return Object.fromEntries(
      Array.from({ length: Math.floor(draw() * 4) }, () => [anyText(draw), anyValue(draw, depth + 1)])
    )
  }
  if (way < 0.955) {
    let deep: unknown = []
    for (let i = 0; i < 20_000; i++) deep = [deep]
    return deep
  }
  if (way < 0.96) return "x".repeat(1_000_000)
  return Object.create(null)
}

/** Returns a valid input with a random change, and sometimes without one. */
export const mutated = (draw: Draw, valid: unknown): unknown => {
  if (draw() < 0.15) return anyValue(draw)
  if (typeof valid === "string") {
    const at = Math.floor(draw() * (valid.length + 1))
    const way = draw()
    if (way < 0.3) return valid
    if (way < 0.5) return valid.slice(0, at)
    if (way < 0.8) return valid.slice(0, at) + pick(draw, characters) + valid.slice(at + Math.floor(draw() * 2))
    return valid.replaceAll("@@", pick(draw, characters))
  }
  if (Array.isArray(valid)) {
    const items: Array<unknown> = valid.map((item) => draw() < 0.7 ? item : mutated(draw, item))
    const way = draw()
    if (way < 0.1) items.pop()
    else if (way < 0.2) items.push(anyValue(draw))
    else if (way < 0.25) items.splice(Math.floor(draw() * items.length), 1)
    return items
  }
  return draw() < 0.5 ? valid : anyValue(draw)
}

export const show = (input: unknown): string => {
  try {
    return (JSON.stringify(input) ?? String(input)).slice(0, 300)
  } catch {
    return Object.prototype.toString.call(input)
  }
}
