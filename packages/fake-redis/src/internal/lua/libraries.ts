/**
 * The pure functions behind the Lua libraries: formatting of 64-bit integers, the `bit` library, seeded random numbers,
 * and the error text for `redis.error_reply`.
 */
const wide = (value: number): bigint => {
  if (Number.isNaN(value) || value >= 9223372036854775808 || value < -9223372036854775808) return -(2n ** 63n)
  return BigInt(Math.trunc(value))
}

/** Formats a 64-bit integer like `%<spec><kind>` in C. */
export const formatInteger = (spec: string, kind: string, value: number): string => {
  const match = /^([-+ #0]*)([0-9]*)(?:\.([0-9]*))?$/.exec(spec)
  const flags = match?.[1] ?? ""
  const width = Number(match?.[2] ?? 0)
  const precision = match?.[3]
  const signed = kind === "d" || kind === "i"
  const number = wide(value)
  const size = signed ? (number < 0n ? -number : number) : BigInt.asUintN(64, number)
  let digits = kind === "o" ? size.toString(8) : kind === "x" || kind === "X" ? size.toString(16) : size.toString(10)
  if (kind === "X") digits = digits.toUpperCase()
  if (precision !== undefined) digits = digits.padStart(Number(precision), "0")
  let prefix = signed ? (number < 0n ? "-" : flags.includes("+") ? "+" : flags.includes(" ") ? " " : "") : ""
  if (flags.includes("#") && size !== 0n) {
    prefix = kind === "x"
      ? "0x"
      : kind === "X"
      ? "0X"
      : kind === "o"
      ? "0"
      : prefix
  }
  const room = width - prefix.length
  if (flags.includes("-")) return prefix + digits + " ".repeat(Math.max(0, room - digits.length))
  if (flags.includes("0") && precision === undefined) return prefix + digits.padStart(room, "0")
  return (prefix + digits).padStart(width, " ")
}

const MAX_UINT64 = 2n ** 64n - 1n

/** Parses a whole string like C's `strtoul` with 64 bits: a larger number becomes the largest one. */
export const parseDigits = (text: string, base: number): number | undefined => {
  const prefix = base === 16 ? "(?:0x(?=[0-9a-f]))?" : ""
  const match = new RegExp(`^[ \\t-\\r]*([+-]?)${prefix}([0-9a-z]+)[ \\t-\\r]*(?:\\0|$)`, "i").exec(text)
  if (match === null) return undefined
  let value = 0n
  for (const char of match[2]!) {
    const digit = parseInt(char, base)
    if (Number.isNaN(digit)) return undefined
    if (value <= MAX_UINT64) value = value * BigInt(base) + BigInt(digit)
  }
  if (value > MAX_UINT64) return Number(MAX_UINT64)
  return Number(match[1] === "-" ? BigInt.asUintN(64, -value) : value)
}

const double = new DataView(new ArrayBuffer(8))

/** Converts a number as the C library does. Beyond 2^51, the lowest bits of the sum are not those of the number. */
const toBit = (value: number): number => {
  double.setFloat64(0, value + (2 ** 52 + 2 ** 51))
  return double.getInt32(4)
}

export const bitwise = (name: string, a: number, b: number): number => {
  const x = toBit(a)
  const y = toBit(b)
  const bits = y & 31
  switch (name) {
    case "band":
      return x & y
    case "bor":
      return x | y
    case "bxor":
      return x ^ y
    case "bnot":
      return ~x
    case "lshift":
      return x << bits
    case "rshift":
      return (x >>> bits) | 0
    case "arshift":
      return x >> bits
    case "rol":
      return (x << bits) | (x >>> (32 - bits) % 32 & (bits === 0 ? 0 : -1))
    case "ror":
      return bits === 0 ? x : (x >>> bits) | (x << (32 - bits))
    case "bswap":
      return (x >>> 24) | ((x >>> 8) & 0xff00) | ((x << 8) & 0xff0000) | (x << 24)
    default:
      return x
  }
}

export const toHex = (value: number, digits: number): string => {
  const count = Math.min(8, Math.abs(toBit(digits)))
  const text = (toBit(value) >>> 0).toString(16).padStart(8, "0").slice(8 - count)
  return digits < 0 ? text.toUpperCase() : text
}

/** The random number generator behind `math.random` in Redis. */
export class Lrand48 {
  private state: bigint

  constructor(seed: number) {
    this.state = (BigInt.asUintN(32, wide(seed)) << 16n) | 0x330en
  }

  next(): number {
    this.state = (this.state * 0x5deece66dn + 0xbn) & 0xffffffffffffn
    return (Number(this.state >> 17n) % 2147483647) / 2147483647
  }
}

/** Converts an error table's message to an error reply: adds a code if it has none, and removes a leading dash. */
export const errorText = (text: string): string => {
  const plain = (text.startsWith("-") ? text.slice(1) : text).replace(/[\r\n]+$/, "")
  return plain.includes(" ") ? plain : `ERR ${plain}`
}
