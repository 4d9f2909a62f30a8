/**
 * The choices in one exploration run. By default each choice point takes the normal alternative, in which nothing goes
 * wrong. A schedule lists a run's deviations, which is enough to replay it.
 */

/** A place where a process may deviate: one of its messages, something that arrives, or a runnable fiber. */
export interface Place {
  /** The process, such as `c1`. */
  readonly client: string
  readonly at: "request" | "reply" | "message" | "arrival" | "fiber"
  /** The command in the request, or the command that the reply belongs to. */
  readonly args: ReadonlyArray<string>
}

/** How schedules may deviate from the normal schedule, in which nothing goes wrong. Times are in milliseconds. */
export interface Deviations {
  /**
   * The possible delays of a request, a reply or a published message. A delay also holds back everything behind it on
   * the same connection.
   */
  readonly delays: ReadonlyArray<number>
  /** Whether a request or a reply may be lost. */
  readonly losses: boolean
  /** Whether a connection may break before a request, a reply or a published message arrives. */
  readonly cuts: boolean
  /** How long a process may be cut off when it sends a request. Meanwhile no messages to or from it arrive. */
  readonly partitions: ReadonlyArray<number>
  /** How long a process may be paused when data arrives or a timer fires. */
  readonly pauses: ReadonlyArray<number>
  /**
   * How long a process's machine may be suspended when data arrives or a timer fires. The monotonic clock stops too.
   */
  readonly suspensions: ReadonlyArray<number>
  /** The rates at which a process's clocks may run once the exploration starts. At 0.96 they lose four percent. */
  readonly rates: ReadonlyArray<number>
  /**
   * Whether a process may be killed when something arrives. Its successor starts 50 to 150 ms later, at a multiple of
   * 100 ms.
   */
  readonly kills: boolean
  /** Whether work under `Client.interruptible` may be interrupted when something arrives at its process. */
  readonly interruptions: boolean
  /** The possible delays of a runnable fiber while all others continue. */
  readonly setAside: ReadonlyArray<number>
  /** The possible steps of the server's wall clock after a command. */
  readonly serverSteps: ReadonlyArray<number>
  /** Whether a replica that is missing the last write may take over after a command. */
  readonly failovers: boolean
  /** The places where processes may deviate. Default: everywhere. */
  readonly where?: ((place: Place) => boolean) | undefined
}

/** The default deviations: short delays, losses, broken connections, kills and interruptions. */
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

/** A deviation: the number of a choice point, and the alternative taken there. */
export interface Deviation {
  readonly point: number
  readonly choice: string
}

/** Formats a schedule, such as `4 c1 request lost, 17 c1 paused for 600 ms`. The empty schedule is the normal one. */
export const format = (schedule: ReadonlyArray<Deviation>): string =>
  schedule.map(({ choice, point }) => `${point} ${choice}`).join(", ")

export const parse = (text: string): ReadonlyArray<Deviation> =>
  text.split(",").map((piece) => piece.trim()).filter((piece) => piece !== "").map((piece) => {
    const space = piece.indexOf(" ")
    return { point: Number(piece.slice(0, space)), choice: piece.slice(space + 1) }
  })

/** Thrown if a schedule does not match its run, because the program or its options have changed. */
export class NoSuchChoice extends RangeError {
  constructor({ choice, point }: Deviation, alternatives: ReadonlyArray<string>) {
    super(
      `the schedule asks for "${choice}" at point ${point}; there is: ${alternatives.join(", ") || "no such point"}`
    )
  }
}

export class Choices {
  readonly schedule: ReadonlyArray<Deviation>
  /** The alternatives at each choice point after the last deviation. */
  readonly open: Array<ReadonlyArray<string>> = []
  /** Whether the exploration is in progress. Only then are there choice points. */
  isOpen = false
  /**
   * The number of alternatives that were left out after the last deviation, because an earlier alternative has the same
   * outcome.
   */
  skipped = 0
  private taken = 0
  /** The alternatives at a point where the schedule names an alternative that does not exist. */
  private refused: ReadonlyArray<string> | undefined
  private count = 0

  constructor(schedule: ReadonlyArray<Deviation>) {
    this.schedule = schedule
  }

  /** The number of the first choice point in `open`. */
  get from(): number {
    return this.count - this.open.length
  }

  /** Leaves out an alternative that has the same outcome as one at an earlier point. */
  skip(): void {
    if (this.isOpen && this.taken === this.schedule.length) this.skipped++
  }

  /** Returns the alternative that the schedule takes here; `undefined` for the normal one. */
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

  /** Throws if a deviation in the schedule did not occur. */
  check(): void {
    const next = this.schedule[this.taken]
    if (next !== undefined) throw new NoSuchChoice(next, this.refused ?? [])
  }
}
