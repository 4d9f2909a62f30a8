/** Seeded random numbers (sfc32) in independent streams. Drawing from one stream does not affect the others. */

const hash = (text: string): [number, number, number, number] => {
  let a = 1779033703
  let b = 3144134277
  let c = 1013904242
  let d = 2773480762
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = b ^ Math.imul(a ^ code, 597399067)
    b = c ^ Math.imul(b ^ code, 2869860233)
    c = d ^ Math.imul(c ^ code, 951274213)
    d = a ^ Math.imul(d ^ code, 2716044179)
  }
  return [a | 0, b | 0, c | 0, d | 0]
}

export type Range = readonly [minimum: number, maximum: number]

export class Prng {
  readonly seed: string
  private a: number
  private b: number
  private c: number
  private d: number

  constructor(seed: string) {
    this.seed = seed
    const [a, b, c, d] = hash(seed)
    this.a = a
    this.b = b
    this.c = c
    this.d = d
    for (let i = 0; i < 12; i++) this.next()
  }

  /** A uniform number in [0, 1). */
  readonly next = (): number => {
    const sum = (this.a + this.b | 0) + this.d | 0
    this.d = this.d + 1 | 0
    this.a = this.b ^ this.b >>> 9
    this.b = this.c + (this.c << 3) | 0
    this.c = (this.c << 21 | this.c >>> 11) + sum | 0
    return (sum >>> 0) / 4294967296
  }

  /** A uniform number in [minimum, maximum). Draws nothing if the range contains a single value. */
  between([minimum, maximum]: Range): number {
    return maximum <= minimum ? minimum : minimum + (maximum - minimum) * this.next()
  }

  /** A uniform integer in [0, below). */
  int(below: number): number {
    return Math.floor(this.next() * below)
  }

  /** True with this probability. Draws nothing if the probability is zero. */
  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability
  }

  pick<A>(items: ReadonlyArray<A>): A {
    return items[this.int(items.length)]!
  }

  /** Returns the stream with this name. It does not depend on earlier draws. */
  stream(name: string): Prng {
    return new Prng(`${this.seed}/${name}`)
  }
}
