/** The SHA-256 of a binary string, in hex. Passwords are stored in this form. */
import { paddedWords } from "./shaBlocks.ts"

const fraction = (value: number): number => Math.floor((value - Math.floor(value)) * 2 ** 32) | 0

const primes: Array<number> = []
for (let candidate = 2; primes.length < 64; candidate++) {
  if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate)
}

/** The first bits of the fractional parts of roots of primes, as the standard defines them. */
const constants = primes.map((prime) => fraction(Math.cbrt(prime)))
const initial = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))

const rotate = (value: number, bits: number): number => (value >>> bits) | (value << (32 - bits))

const expand = (words: Int32Array, block: number): Int32Array => {
  const w = new Int32Array(64)
  for (let i = 0; i < 64; i++) {
    if (i < 16) {
      w[i] = words[block * 16 + i]!
      continue
    }
    const [a, b] = [w[i - 15]!, w[i - 2]!]
    const s0 = rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)
    const s1 = rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10)
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0
  }
  return w
}

export const sha256 = (bytes: string): string => {
  const words = paddedWords(bytes)
  const blocks = words.length / 16
  const state = initial.slice()
  for (let block = 0; block < blocks; block++) {
    const w = expand(words, block)
    let [a, b, c, d, e, f, g, h] = state as [number, number, number, number, number, number, number, number]
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
      const first = (h + s1 + ((e & f) ^ (~e & g)) + constants[i]! + w[i]!) | 0
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
      const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + first) | 0
      d = c
      c = b
      b = a
      a = (first + second) | 0
    }
    const next = [a, b, c, d, e, f, g, h]
    for (let i = 0; i < 8; i++) state[i] = (state[i]! + next[i]!) | 0
  }
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("")
}
