/** The history of one process: spans, marks, and the number of data streams that it owned. */

export interface Span {
  readonly kind: "waiting" | "leading" | "down" | "paused" | "cut" | "slow"
  readonly from: number
  /** The end of the span. Undefined while the span lasts. */
  to: number | undefined
  readonly id: string
  readonly resource: string
  readonly token: number | undefined
  /** The row in the lane. Overlapping spans are stacked. */
  readonly row: number
  /** How the span ended. */
  end: "released" | "lost" | "served" | "gave up" | "killed" | undefined
}

export interface Mark {
  readonly kind:
    | "confirmed"
    | "renewal"
    | "wrote"
    | "refused"
    | "lost"
    | "crash"
    | "start"
    | "skew"
    | "hand-off"
    | "server"
    | "failed"
    | "fault"
  readonly at: number
  readonly text: string
}

/** A period of ownership, according to the server. */
export interface Tenure {
  readonly resource: string
  readonly id: string
  readonly client: string | undefined
  readonly token: number | undefined
  readonly from: number
  to: number | undefined
  end: "handed over" | "released" | "expired" | undefined
}

/** The number of data streams that a process owned from this instant on. */
export interface Count {
  readonly at: number
  readonly count: number
}

export class Lane {
  readonly name: string
  readonly spans: Array<Span> = []
  readonly marks: Array<Mark> = []
  readonly counts: Array<Count> = []
  readonly streams = new Set<string>()
  generation = 1
  rows = 1
  activity: "idle" | "waiting" | "leading" | "lost" = "idle"
  token: number | undefined
  private readonly open = new Set<Span>()

  constructor(name: string) {
    this.name = name
  }

  get owned(): number {
    return this.streams.size
  }

  begin(kind: Span["kind"], from: number, fields: Partial<Pick<Span, "id" | "resource" | "token">> = {}): Span {
    const isWork = kind === "waiting" || kind === "leading"
    const taken = new Set([...this.open].filter((span) => isWork && isWorkSpan(span)).map(({ row }) => row))
    let row = 0
    while (taken.has(row)) row++
    this.rows = Math.max(this.rows, row + 1)
    const span: Span = {
      kind,
      from,
      to: undefined,
      id: fields.id ?? "",
      resource: fields.resource ?? "",
      token: fields.token,
      row,
      end: undefined
    }
    this.spans.push(span)
    this.open.add(span)
    return span
  }

  /** Ends the open spans of a kind, or only the span with this id. Returns whether it ended any. */
  end(kind: Span["kind"], at: number, end?: Span["end"], id?: string): boolean {
    let found = false
    for (const span of this.open) {
      if (span.kind !== kind || (id !== undefined && span.id !== id)) continue
      span.to = at
      span.end = end
      this.open.delete(span)
      found = true
    }
    return found
  }

  has(kind: Span["kind"], id?: string): boolean {
    for (const span of this.open) if (span.kind === kind && (id === undefined || span.id === id)) return true
    return false
  }

  mark(kind: Mark["kind"], at: number, text: string): void {
    this.marks.push({ kind, at, text })
  }

  count(at: number): void {
    const last = this.counts.at(-1)
    if (last?.at === at) this.counts.pop()
    this.counts.push({ at, count: this.streams.size })
  }
}

const isWorkSpan = ({ kind }: Span) => kind === "waiting" || kind === "leading"
