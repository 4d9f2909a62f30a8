/**
 * The choices of one run of an exploration. Without deviations, each point takes the first choice, in which nothing
 * goes wrong. A schedule lists the deviations of a run, so that it can be replayed.
 */

/** A place at which a process may deviate: one of its messages, an arrival, or a runnable fiber. */
export interface Place {
  /** The process, such as `c1`. */
  readonly client: string
  readonly at: "request" | "reply" | "message" | "arrival" | "fiber"
  /** The command of a request or of a reply. */
  readonly args: ReadonlyArray<string>
}

/** How a schedule may deviate from the one in which nothing goes wrong. Times are in milliseconds. */
export interface Deviations {
  /** How much later a request, a reply or a published message arrives, and everything behind it on its connection. */
  readonly delays: ReadonlyArray<number>
  /** Whether a request or a reply may get lost. */
  readonly losses: boolean
  /** Whether a connection may break before a request, a reply or a published message arrives. */
  readonly cuts: boolean
  /**
   * How long a process may be cut off before it sends a request: nothing reaches it, and nothing that it sends arrives.
   */
  readonly partitions: ReadonlyArray<number>
  /** How long a process may be paused when data arrive or a timer fires. */
  readonly pauses: ReadonlyArray<number>
  /** The same for a suspended machine, whose monotonic clock stands still. */
  readonly suspensions: ReadonlyArray<number>
  /** How fast a process's clocks may run from the start of the exploration: 0.96 loses four percent. */
  readonly rates: ReadonlyArray<number>
  /** Whether a process may be killed when something arrives. Its successor starts 50 to 150 ms later, at a multiple of 100 ms. */
  readonly kills: boolean
  /** Whether the work of `Client.interruptible` may be interrupted when something arrives at its process. */
  readonly interruptions: boolean
  /** How much later a runnable fiber may continue, while all others do. */
  readonly setAside: ReadonlyArray<number>
  /** By how much the server's wall clock may step after a command. */
  readonly serverSteps: ReadonlyArray<number>
  /** Whether a replica may take over after a command, without the last write. */
  readonly failovers: boolean
  /** Where processes may deviate. Default: everywhere. */
  readonly where?: ((place: Place) => boolean) | undefined
}

/** Everything that can happen to processes and to the network. */
export const usual: Deviations = {
  delays: [1],
  losses: true,
  cuts: true,
  partitions: [],
  pauses: [],
  suspensions: [],
  rates: [],
  kills: true,
  interruptions: true,
  setAside: [1],
  serverSteps: [],
  failovers: false
}

/** One deviation: the point of the run, and the choice by number or by name. */
export interface Deviation {
  readonly point: number
  readonly choice: string
}

/** For example `4 request lost, 17 pause 600 ms`. In the empty schedule nothing goes wrong. */
export const format = (schedule: ReadonlyArray<Deviation>): string =>
  schedule.map(({ choice, point }) => `${point} ${choice}`).join(", ")

export const parse = (text: string): ReadonlyArray<Deviation> =>
  text.split(",").map((piece) => piece.trim()).filter((piece) => piece !== "").map((piece) => {
    const space = piece.indexOf(" ")
    return { point: Number(piece.slice(0, space)), choice: piece.slice(space + 1) }
  })

/** A schedule does not fit its run: the program or its options have changed. */
export class NoSuchChoice extends RangeError {
  constructor({ choice, point }: Deviation, alternatives: ReadonlyArray<string>) {
    super(
      `the schedule asks for "${choice}" at point ${point}; there is: ${alternatives.join(", ") || "no such point"}`
    )
  }
}

export class Choices {
  readonly schedule: ReadonlyArray<Deviation>
  /** What could be chosen at each point after the last deviation. */
  readonly open: Array<ReadonlyArray<string>> = []
  /** Whether the exploration has begun and not ended, so that points occur. */
  isOpen = false
  /** The number of choices after the last deviation that have the same outcome as an earlier one. */
  skipped = 0
  private taken = 0
  /** The available choices, instead of the one that the schedule names. */
  private refused: ReadonlyArray<string> | undefined
  private count = 0

  constructor(schedule: ReadonlyArray<Deviation>) {
    this.schedule = schedule
  }

  /** The point at which `open` begins. */
  get from(): number {
    return this.count - this.open.length
  }

  /** Leaves out a choice with the same outcome as one at an earlier point. */
  skip(): void {
    if (this.isOpen && this.taken === this.schedule.length) this.skipped++
  }

  /** Takes one of these alternatives, or the choice in which nothing goes wrong. */
  choose(alternatives: ReadonlyArray<string>): string | undefined {
    if (!this.isOpen || alternatives.length === 0) return undefined
    const point = this.count++
    const next = this.schedule[this.taken]
    if (next === undefined) this.open.push(alternatives)
    if (next?.point !== point) return undefined
    if (!alternatives.includes(next.choice)) {
      this.refused ??= alternatives
      return undefined
    }
    this.taken++
    return next.choice
  }

  /** Fails if a deviation did not occur. */
  check(): void {
    const next = this.schedule[this.taken]
    if (next !== undefined) throw new NoSuchChoice(next, this.refused ?? [])
  }
}
