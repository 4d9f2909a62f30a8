/**
 * Parses and prints numbers as Redis does: 64-bit integers, doubles with 17 digits, and the 80-bit arithmetic of
 * INCRBYFLOAT.
 */
import { fail, NOT_FLOAT, NOT_INTEGER } from "./reply.ts"

export const MAX_INT64 = 9223372036854775807n
export const MIN_INT64 = -9223372036854775808n

const INTEGER = /^(?:0|-?[1-9][0-9]*)$/

export const parseBigInt = (text: string): bigint | undefined => {
  if (text.length > 20 || !INTEGER.test(text)) return undefined
  const value = BigInt(text)
  return value > MAX_INT64 || value < MIN_INT64 ? undefined : value
}

/** Parses a 64-bit integer. Beyond 2^53, the result is the nearest double. */
export const parseInteger = (text: string): number | undefined => {
  if (text.length < 16) return INTEGER.test(text) ? Number(text) : undefined
  const value = parseBigInt(text)
  return value === undefined ? undefined : Number(value)
}

export const integer = (text: string, message = NOT_INTEGER): number => parseInteger(text) ?? fail(message)

/** The maximum number of draws with repetition. More would make the reply too large. */
const MOST_DRAWS = 2 ** 24

/** Parses the number of random members to draw. Negative numbers allow a member to be drawn repeatedly. */
export const drawCount = (text: string, pairs: boolean): number => {
  const value = bigInteger(text)
  if (value === MIN_INT64) {
    return fail("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
  }
  const limit = MAX_INT64 / 2n
  if ((pairs && (value < -limit || value > limit)) || value < -MOST_DRAWS) {
    return fail("ERR value is out of range")
  }
  return Number(value)
}

/** Parses a C `int`. */
export const smallInteger = (text: string, message?: string): number => {
  const value = integer(text, message)
  return value < -2147483648 || value > 2147483647
    ? fail(message ?? "ERR value is out of range, value must between -2147483648 and 2147483647")
    : value
}

export const bigInteger = (text: string, message = NOT_INTEGER): bigint => parseBigInt(text) ?? fail(message)

const DECIMAL = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/
const HEX = /^([+-]?)0[xX]([0-9a-fA-F]+)\.?([0-9a-fA-F]*)(?:[pP]([+-]?[0-9]+))?$/

/**
 * Parses a whole string like C's `strtod`: leading space is skipped, a zero byte ends the string, and an empty string
 * is zero.
 */
export const strtod = (text: string): number | undefined => {
  const [visible = ""] = text.split("\0", 1)
  return visible === "" ? 0 : parseDouble(visible.replace(/^[ \t-\r]+/, ""))
}

/** The numbers that `strtod` accepts, without surrounding space and without nan. */
export const parseDouble = (text: string): number | undefined => {
  if (DECIMAL.test(text)) return Number(text)
  const hex = HEX.exec(text)
  if (hex !== null) {
    const digits = Number(`0x${hex[2]}${hex[3]}`)
    return (hex[1] === "-" ? -1 : 1) * digits * 2 ** (Number(hex[4] ?? 0) - 4 * hex[3]!.length)
  }
  switch (text.toLowerCase()) {
    case "inf":
    case "+inf":
    case "infinity":
    case "+infinity":
      return Infinity
    case "-inf":
    case "-infinity":
      return -Infinity
    default:
      return undefined
  }
}

export const double = (text: string, message = NOT_FLOAT): number => parseDouble(text) ?? fail(message)

/** Formats a number like `%.<digits>g` in C. */
export const formatG = (value: number, digits: number): string => {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0"
  if (Number.isNaN(value)) return "nan"
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf"
  if (Number.isInteger(value) && Math.abs(value) < 10 ** Math.min(digits, 14)) return String(value)
  const scientific = value.toExponential(digits - 1)
  const at = scientific.indexOf("e")
  const exponent = Number(scientific.slice(at + 1))
  if (exponent < -4 || exponent >= digits) {
    let mantissa = scientific.slice(0, at)
    if (mantissa.includes(".")) mantissa = mantissa.replace(/\.?0+$/, "")
    const size = Math.abs(exponent)
    return `${mantissa}e${exponent < 0 ? "-" : "+"}${size < 10 ? "0" : ""}${size}`
  }
  const fixed = value.toFixed(digits - 1 - exponent)
  return fixed.includes(".") ? fixed.replace(/\.?0+$/, "") : fixed
}

export const formatDouble = (value: number): string => formatG(value, 17)

/** An 80-bit float: `sign * mantissa * 2^exponent`, with a mantissa below 2^64. */
interface Extended {
  readonly mantissa: bigint
  readonly exponent: number
}

const ZERO: Extended = { mantissa: 0n, exponent: 0 }

const bitLength = (value: bigint): number => value === 0n ? 0 : value.toString(2).length

const round64 = (numerator: bigint, denominator: bigint): Extended => {
  if (numerator === 0n) return ZERO
  const negative = numerator < 0n
  let n = negative ? -numerator : numerator
  let d = denominator
  let shift = bitLength(n) - bitLength(d) - 64
  const scale = (bits: number) => {
    if (bits > 0) d <<= BigInt(bits)
    else n <<= BigInt(-bits)
  }
  scale(shift)
  let quotient = n / d
  if (bitLength(quotient) > 64) {
    d <<= 1n
    shift++
    quotient = n / d
  }
  const twice = (n % d) * 2n
  if (twice > d || (twice === d && (quotient & 1n) === 1n)) quotient += 1n
  return { mantissa: negative ? -quotient : quotient, exponent: shift }
}

const extended = (digits: bigint, base: bigint, power: number): Extended =>
  power >= 0 ? round64(digits * base ** BigInt(power), 1n) : round64(digits, base ** BigInt(-power))

const parseExtended = (text: string): Extended | "inf" | "-inf" | undefined => {
  const hex = HEX.exec(text)
  if (hex !== null) {
    const power = Number(hex[4] ?? 0) - 4 * hex[3]!.length
    if (power > 16400) return undefined
    if (power < -16600) return ZERO
    return extended(BigInt(`0x${hex[2]}${hex[3]}`) * (hex[1] === "-" ? -1n : 1n), 2n, power)
  }
  if (!DECIMAL.test(text)) {
    const value = parseDouble(text)
    return value === undefined ? undefined : value > 0 ? "inf" : "-inf"
  }
  const [, sign, whole, fraction, exponent] = /^([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?$/.exec(text)!
  const power = Number(exponent ?? "0") - fraction!.length
  if (power > 4900) return undefined
  if (power < -5000) return ZERO
  return extended(BigInt(`${whole}${fraction}` || "0") * (sign === "-" ? -1n : 1n), 10n, power)
}

const addExtended = (a: Extended, b: Extended): Extended => {
  const exponent = Math.min(a.exponent, b.exponent)
  const sum = (a.mantissa << BigInt(a.exponent - exponent)) + (b.mantissa << BigInt(b.exponent - exponent))
  return exponent >= 0 ? round64(sum << BigInt(exponent), 1n) : round64(sum, 1n << BigInt(-exponent))
}

/** Formats an 80-bit float like `%.17Lf` in C, without trailing zeros. */
const printExtended = (value: Extended): string => {
  const negative = value.mantissa < 0n
  const mantissa = negative ? -value.mantissa : value.mantissa
  const scaled = mantissa * 10n ** 17n
  let units: bigint
  if (value.exponent >= 0) units = scaled << BigInt(value.exponent)
  else {
    const shift = BigInt(-value.exponent)
    const rest = scaled & ((1n << shift) - 1n)
    const half = 1n << (shift - 1n)
    units = scaled >> shift
    if (rest > half || (rest === half && (units & 1n) === 1n)) units += 1n
  }
  const digits = units.toString().padStart(18, "0")
  const fraction = digits.slice(-17).replace(/0+$/, "")
  const text = fraction === "" ? digits.slice(0, -17) : `${digits.slice(0, -17)}.${fraction}`
  return negative && text !== "0" ? `-${text}` : negative ? "-0" : text
}

/** Adds two numbers as INCRBYFLOAT does, and returns the text that it stores. */
export const addFloats = (current: string, increment: string, messages: readonly [string, string]): string => {
  const a = parseExtended(current) ?? fail(messages[0])
  const b = parseExtended(increment) ?? fail(messages[1])
  if (typeof a === "string" || typeof b === "string") return fail("ERR increment would produce NaN or Infinity")
  const text = printExtended(addExtended(a, b))
  return text === "-0" ? "0" : text
}
