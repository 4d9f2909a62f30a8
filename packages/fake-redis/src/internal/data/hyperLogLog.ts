/**
 * Encodes and decodes HyperLogLogs as Redis stores them in strings: a header, then registers in the sparse or the dense
 * encoding.
 */

const registerCount = 16_384
const header = 16
const DENSE = 0
const SPARSE = 1
/** Limits of the sparse encoding: the largest register, and the longest runs of zeros and of values. */
const sparseLargest = 32
const longestZeros = 16_384
const longestZeroByte = 64
const longestRun = 4
const largestRank = 51

const M = 0xc6a4a7935bd1e995n
const seed = 0xadc83b19n
const mask = (1n << 64n) - 1n

/** The MurmurHash64A hash of a binary string. */
const hash = (text: string): bigint => {
  const { length } = text
  let h = seed ^ (BigInt(length) * M & mask)
  const byte = (at: number) => BigInt(text.charCodeAt(at))
  const whole = length - length % 8
  for (let at = 0; at < whole; at += 8) {
    let k = 0n
    for (let index = 7; index >= 0; index--) k = k << 8n | byte(at + index)
    k = k * M & mask
    k ^= k >> 47n
    k = k * M & mask
    h = (h ^ k) * M & mask
  }
  if (whole < length) {
    let tail = 0n
    for (let at = length - 1; at >= whole; at--) tail = tail << 8n | byte(at)
    h = (h ^ tail) * M & mask
  }
  h ^= h >> 47n
  h = h * M & mask
  return h ^ h >> 47n
}

/** Returns an element's register and its rank: one more than the number of trailing zeros in the rest of the hash. */
const place = (element: string): readonly [register: number, rank: number] => {
  const bits = hash(element)
  let rest = bits >> 14n | 1n << 50n
  let rank = 1
  while ((rest & 1n) === 0n) {
    rest >>= 1n
    rank++
  }
  return [Number(bits & 16_383n), rank]
}

export interface HyperLogLog {
  encoding: number
  /** The cardinality when it was last computed. */
  cardinality: number
  /** Whether the cardinality is still current, because no register has changed. */
  isCounted: boolean
  readonly registers: Uint8Array
}

export const emptyHyperLogLog = (): HyperLogLog => ({
  encoding: SPARSE,
  cardinality: 0,
  isCounted: false,
  registers: new Uint8Array(registerCount)
})

const denseSize = header + registerCount * 6 / 8

/** Returns `undefined` for a string that is not a HyperLogLog, and `corrupt` if its registers do not add up. */
export const decodeHyperLogLog = (text: string): HyperLogLog | "corrupt" | undefined => {
  if (text.length < header || !text.startsWith("HYLL") || text.charCodeAt(4) > SPARSE) return undefined
  const encoding = text.charCodeAt(4)
  if (encoding === DENSE && text.length !== denseSize) return undefined
  const registers = new Uint8Array(registerCount)
  if (!(encoding === DENSE ? readDense : readSparse)(text, registers)) return "corrupt"
  let cardinality = text.charCodeAt(15) & 127
  for (let at = 14; at >= 8; at--) cardinality = cardinality * 256 + text.charCodeAt(at)
  return { encoding, cardinality, isCounted: text.charCodeAt(15) < 128, registers }
}

const readDense = (text: string, registers: Uint8Array): boolean => {
  for (let register = 0; register < registerCount; register++) {
    const bit = register * 6
    const at = header + (bit >> 3)
    const pair = text.charCodeAt(at) | (at + 1 < text.length ? text.charCodeAt(at + 1) : 0) << 8
    registers[register] = pair >> bit % 8 & 63
  }
  return true
}

const readSparse = (text: string, registers: Uint8Array): boolean => {
  let register = 0
  for (let at = header; at < text.length; at++) {
    const code = text.charCodeAt(at)
    let run = (code & 63) + 1
    let value = 0
    if (code >= 128) {
      run = (code & 3) + 1
      value = (code >> 2 & 31) + 1
    } else if (code >= 64) {
      if (at + 1 >= text.length) return false
      run = ((code & 63) << 8 | text.charCodeAt(++at)) + 1
    }
    if (register + run > registerCount) return false
    registers.fill(value, register, register + run)
    register += run
  }
  return register === registerCount
}

const writeDense = (registers: Uint8Array): string => {
  const bytes = new Uint8Array(denseSize - header + 1)
  registers.forEach((value, register) => {
    const bit = register * 6
    const at = bit >> 3
    const shifted = value << bit % 8
    bytes[at]! |= shifted & 255
    bytes[at + 1]! |= shifted >> 8
  })
  return String.fromCharCode(...bytes.subarray(0, 6144)) +
    String.fromCharCode(...bytes.subarray(6144, denseSize - header))
}

const writeSparse = (registers: Uint8Array): string => {
  let text = ""
  for (let from = 0; from < registerCount;) {
    const value = registers[from]!
    const longest = value === 0 ? longestZeros : longestRun
    let to = from + 1
    while (to < registerCount && to - from < longest && registers[to] === value) to++
    const run = to - from
    if (value > 0) text += String.fromCharCode(128 | value - 1 << 2 | run - 1)
    else if (run <= longestZeroByte) text += String.fromCharCode(run - 1)
    else text += String.fromCharCode(64 | run - 1 >> 8, run - 1 & 255)
    from = to
  }
  return text
}

/** Encodes a HyperLogLog. A sparse encoding becomes dense if it is too long or a rank is too large. */
export const encodeHyperLogLog = (log: HyperLogLog, sparseMaxBytes: number): string => {
  let body: string | undefined
  if (log.encoding === SPARSE && log.registers.every((value) => value <= sparseLargest)) {
    body = writeSparse(log.registers)
    if (body.length + header > sparseMaxBytes + header) body = undefined
  }
  if (body === undefined) {
    log.encoding = DENSE
    body = writeDense(log.registers)
  }
  let cached = ""
  let rest = log.cardinality
  for (let at = 0; at < 8; at++) {
    cached += String.fromCharCode(rest % 256 | (at === 7 && !log.isCounted ? 128 : 0))
    rest = Math.floor(rest / 256)
  }
  return `HYLL${String.fromCharCode(log.encoding, 0, 0, 0)}${cached}${body}`
}

/** Adds an element. Returns whether a register has grown. */
export const addElement = (log: HyperLogLog, element: string): boolean => {
  const [register, rank] = place(element)
  if (log.registers[register]! >= rank) return false
  log.registers[register] = rank
  log.isCounted = false
  return true
}

export const mergeInto = (target: HyperLogLog, source: HyperLogLog): void => {
  source.registers.forEach((value, at) => {
    if (value > target.registers[at]!) target.registers[at] = value
  })
  if (source.encoding === DENSE) target.encoding = DENSE
  target.isCounted = false
}

const tau = (start: number): number => {
  if (start === 0 || start === 1) return 0
  let x = start
  let y = 1
  let z = 1 - x
  for (;;) {
    x = Math.sqrt(x)
    const before = z
    y *= 0.5
    z -= (1 - x) ** 2 * y
    if (before === z) return z / 3
  }
}

const sigma = (start: number): number => {
  if (start === 1) return Infinity
  let x = start
  let y = 1
  let z = x
  for (;;) {
    x *= x
    const before = z
    z += x * y
    y += y
    if (before === z) return z
  }
}

/** Estimates the cardinality as in Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017. */
export const estimate = ({ registers }: HyperLogLog): number => {
  const counts = Array.from({ length: 64 }, () => 0)
  for (const value of registers) counts[value]!++
  let z = registerCount * tau((registerCount - counts[largestRank]!) / registerCount)
  for (let rank = largestRank - 1; rank >= 1; rank--) z = (z + counts[rank]!) * 0.5
  z += registerCount * sigma(counts[0]! / registerCount)
  return Math.round(0.7213475204444817 * registerCount * registerCount / z)
}
