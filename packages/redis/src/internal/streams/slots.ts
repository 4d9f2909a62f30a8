/** Where a Cluster keeps a key. */

const utf8 = (text: string): ReadonlyArray<number> =>
  Array.from(
    encodeURIComponent(text.toWellFormed()).matchAll(/%([0-9A-F]{2})|[^]/g),
    ([all, hex]) => hex === undefined ? all.charCodeAt(0) : Number.parseInt(hex, 16)
  )

/** CRC16 as of XMODEM: polynomial 0x1021, from 0. */
const crc16 = (bytes: ReadonlyArray<number>): number => {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? (crc << 1) & 0xffff : ((crc << 1) ^ 0x1021) & 0xffff
  }
  return crc
}

/** What is between the first brace and the next one that closes, if it is anything. */
export const hashTag = (key: string): string | undefined => {
  const from = key.indexOf("{")
  const to = from === -1 ? -1 : key.indexOf("}", from)
  return to > from + 1 ? key.slice(from + 1, to) : undefined
}

export const slot = (key: string): number => crc16(utf8(hashTag(key) ?? key)) % 16384
