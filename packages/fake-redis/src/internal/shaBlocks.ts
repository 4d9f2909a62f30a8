/** Pads a message for SHA-1 or SHA-256 with a one bit, zeros and its length. Returns blocks of 16 words. */
export const paddedWords = (bytes: string): Int32Array => {
  const { length } = bytes
  const blocks = ((length + 8) >> 6) + 1
  const words = new Int32Array(blocks * 16)
  for (let i = 0; i < length; i++) words[i >> 2]! |= bytes.charCodeAt(i) << (24 - (i & 3) * 8)
  words[length >> 2]! |= 0x80 << (24 - (length & 3) * 8)
  words[blocks * 16 - 2] = Math.floor(length / 0x20000000)
  words[blocks * 16 - 1] = length << 3
  return words
}
