/** Keyspace notifications: parses and prints the flags of `notify-keyspace-events`. */
const FLAGS: Readonly<Record<string, number>> = {
  K: 1,
  E: 2,
  g: 4,
  $: 8,
  l: 16,
  s: 32,
  h: 64,
  z: 128,
  x: 256,
  e: 512,
  t: 1024,
  m: 2048,
  d: 8192,
  n: 16384
}

const ALL = 4 | 8 | 16 | 32 | 64 | 128 | 256 | 512 | 1024 | 8192

export type EventClass = "g" | "$" | "l" | "s" | "h" | "z" | "x" | "e" | "t" | "m" | "n"

export const parseFlags = (text: string): number | undefined => {
  let flags = 0
  for (const char of text) {
    const flag = char === "A" ? ALL : FLAGS[char]
    if (flag === undefined) return undefined
    flags |= flag
  }
  return flags
}

export const printFlags = (flags: number): string => {
  let text = ""
  if ((flags & ALL) === ALL) text = "A"
  else {
    for (const char of "g$lshzxetdn") {
      if (flags & FLAGS[char]!) text += char
    }
  }
  for (const char of "KEm") {
    if (flags & FLAGS[char]!) text += char
  }
  return text
}

export const wants = (flags: number, kind: EventClass): boolean => (flags & FLAGS[kind]!) !== 0

export const wantsKeyspace = (flags: number): boolean => (flags & 1) !== 0

export const wantsKeyevent = (flags: number): boolean => (flags & 2) !== 0
