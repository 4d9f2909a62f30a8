/** The SHA-1 of a binary string, in hex. It identifies scripts, and is the result of `redis.sha1hex`. */
import { paddedWords } from "./shaBlocks.ts"

const rotate = (value: number, bits: number): number => (value << bits) | (value >>> (32 - bits))

export const sha1 = (bytes: string): string => {
  const words = paddedWords(bytes)
  const blocks = words.length / 16
  const w = new Int32Array(80)
  let [h0, h1, h2, h3, h4] = [0x67452301, 0xefcdab89 | 0, 0x98badcfe | 0, 0x10325476, 0xc3d2e1f0 | 0]
  for (let block = 0; block < blocks; block++) {
    let [a, b, c, d, e] = [h0, h1, h2, h3, h4]
    for (let i = 0; i < 80; i++) {
      w[i] = i < 16 ? words[block * 16 + i]! : rotate(w[i - 3]! ^ w[i - 8]! ^ w[i - 14]! ^ w[i - 16]!, 1)
      const f = i < 20
        ? ((b & c) | (~b & d)) + 0x5a827999
        : i < 40
        ? (b ^ c ^ d) + 0x6ed9eba1
        : i < 60
        ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
        : (b ^ c ^ d) + 0xca62c1d6
      const next = (rotate(a, 5) + f + e + w[i]!) | 0
      e = d
      d = c
      c = rotate(b, 30)
      b = a
      a = next
    }
    h0 = (h0 + a) | 0
    h1 = (h1 + b) | 0
    h2 = (h2 + c) | 0
    h3 = (h3 + d) | 0
    h4 = (h4 + e) | 0
  }
  return [h0, h1, h2, h3, h4].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("")
}
