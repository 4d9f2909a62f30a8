/** Computes a key's Cluster slot. */

/** CRC16 (XMODEM, polynomial 0x1021), one byte at a time. */
const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021
  return crc
})

const encoder = new TextEncoder()

/** Returns the text between the first `{` and the next `}`; undefined if it is empty or missing. */
export const hashTag = (key: string): string | undefined => {
  const from = key.indexOf("{")
  const to = from === -1 ? -1 : key.indexOf("}", from)
  return to > from + 1 ? key.slice(from + 1, to) : undefined
}

export const slot = (key: string): number => {
  let crc = 0
  for (const byte of encoder.encode(hashTag(key) ?? key)) crc = (crc << 8 & 0xffff) ^ table[crc >> 8 ^ byte]!
  return crc % 16384
}
