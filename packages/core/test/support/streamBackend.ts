/**
 * An in-memory `StreamStore` for one service. Each client connects through a separate link, on which a test can delay
 * calls, make them fail, or lose their replies.
 */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import * as SimbaError from "@effect-simba/core/SimbaError"
import * as StreamName from "@effect-simba/core/streams/StreamName"
import type * as StreamState from "@effect-simba/core/streams/StreamState"
import * as StreamStore from "@effect-simba/core/streams/StreamStore"
import { type Clock, Duration, Effect, Latch, Layer, Option, Queue } from "effect"

type Service = StreamStore.Service

interface Row {
  readonly entry: StreamName.EntryId
  readonly content: StreamStore.Entry
  owner: string | undefined
  delivered: number
  deliveries: number
}

interface Lease {
  readonly value: string
  readonly expires: number
  readonly epoch: string
}

const id = (n: number) => StreamName.EntryId.make(`${n}-0`)
const num = (entry: string) => Number(entry.split("-")[0])
const valueOf = (held: { readonly consumer: string; readonly epoch: string }) => `${held.consumer}@@${held.epoch}`

export const outage = new SimbaError.BackendError({ operation: "test", isRetryable: true, cause: new Error("outage") })
export const refusal = new SimbaError.BackendError({
  operation: "test",
  isRetryable: false,
  cause: new Error("NOPERM")
})

/** `hang`: the call never arrives. `lost`: the call arrives, but its reply is lost. */
export type Mode = "work" | "fail" | "refuse" | "hang" | "lost"

export class Backend {
  private readonly clock: Clock.Clock
  rows: Array<Row> = []
  readonly entryLeases = new Map<string, Lease>()
  readonly streamLeases = new Map<string, Lease & { readonly token: number; readonly entry: string }>()
  readonly failures = new Map<string, number>()
  /** When the first of an entry's consecutive failures happened, in milliseconds, by entry id. */
  private readonly failingSince = new Map<string, number>()
  readonly running = new Map<string, string>()
  readonly checkpoints = new Map<string, StreamName.EntryId>()
  readonly dead: Array<StreamState.DeadLetter> = []
  readonly members = new Map<string, StreamStore.Member & { readonly until: number }>()
  /** The announcement of each data stream that has been read to its end, by data stream. */
  readonly ended = new Map<string, string>()
  /** The consumers that `pending` reports as Go consumers. */
  readonly goConsumers = new Set<string>()
  readonly done: Array<string> = []
  /** The data streams that were passed to `keepCheckpoints`, in order. */
  readonly kept: Array<string> = []
  /** When `reap` was called, and with which idle time, both in milliseconds. */
  readonly tidied: Array<{ readonly at: number; readonly idle: number }> = []
  /** The counts that the next call to `reap` returns and resets to zero. */
  rubbish = { consumers: 0, entries: 0 }
  private readonly hintQueues = new Set<Queue.Queue<StreamStore.Signal>>()
  private readonly expiryQueues = new Set<Queue.Queue<StreamStore.Expiry>>()
  private arrived = Latch.makeUnsafe(false)
  private read = 0
  private count = 0
  private token = 0
  private handOvers = 0
  isPaused = false
  /** The data streams that are paused individually. */
  pausedStreams: ReadonlyArray<StreamName.StreamName> = []
  publishesExpiries = false

  constructor(clock: Clock.Clock) {
    this.clock = clock
  }

  now = () => Number(this.clock.monotonicTimeNanosUnsafe()) / 1e6

  lease<A extends Lease>(leases: Map<string, A>, key: string): A | undefined {
    const lease = leases.get(key)
    return lease !== undefined && lease.expires > this.now() ? lease : undefined
  }

  private isMine(held: StreamStore.Ownership): boolean {
    return this.lease(this.entryLeases, held.entry)?.value === valueOf(held) &&
      this.lease(this.streamLeases, held.stream)?.value === valueOf(held)
  }

  /** Drops all leases, like a failover that loses writes. */
  forgetLeases(): void {
    this.entryLeases.clear()
    this.streamLeases.clear()
  }

  row = (entry: string) => this.rows.find((row) => row.entry === entry)

  /** Adds an entry without the checks in `announce`. It may be malformed, or a second entry for its data stream. */
  add(
    content: { readonly stream: string; readonly info?: StreamStore.Announcement["info"] } | {
      readonly problem: string
    }
  ): StreamName.EntryId {
    const entry = id(++this.count)
    this.rows.push({
      entry,
      content: "stream" in content
        ? { _tag: "Announced", entry, stream: StreamName.StreamName.make(content.stream), info: content.info ?? {} }
        : { _tag: "Malformed", entry, problem: content.problem },
      owner: undefined,
      delivered: 0,
      deliveries: 0
    })
    this.arrived.openUnsafe()
    return entry
  }

  private drop(entry: string) {
    this.rows = this.rows.filter((row) => row.entry !== entry)
    this.failures.delete(entry)
    this.running.delete(entry)
  }

  private unlock(held: StreamStore.Ownership) {
    this.entryLeases.delete(held.entry)
    this.streamLeases.delete(held.stream)
    this.running.delete(held.entry)
  }

  private lock(held: StreamStore.Ownership, lease: Duration.Duration) {
    const expires = this.now() + Duration.toMillis(lease)
    const value = valueOf(held)
    this.entryLeases.set(held.entry, { value, expires, epoch: held.epoch })
    this.streamLeases.set(held.stream, { value, expires, epoch: held.epoch, token: held.token, entry: held.entry })
    const row = this.row(held.entry)!
    row.owner = held.consumer
    row.delivered = this.now()
  }

  hint(hint: StreamStore.Signal) {
    for (const queue of this.hintQueues) Queue.offerUnsafe(queue, hint)
  }

  expiry(expiry: StreamStore.Expiry) {
    for (const queue of this.expiryQueues) Queue.offerUnsafe(queue, expiry)
  }

  /** Publishes expired leases until it is interrupted. */
  readonly expiring: Effect.Effect<never> = Effect.forever(Effect.gen({ self: this }, function*() {
    yield* Effect.sleep("10 millis")
    for (const [entry, { expires }] of this.entryLeases) {
      const row = this.row(entry)
      if (expires > this.now()) continue
      this.entryLeases.delete(entry)
      if (row?.content._tag === "Announced") {
        this.expiry({ _tag: "Expired", stream: row.content.stream, entry: row.entry })
      }
    }
  }))

  private takeOne(request: StreamStore.TakeRequest): StreamStore.TakeResult {
    const { entry, stream } = request
    const value = valueOf(request)
    const held = this.lease(this.streamLeases, stream)
    const locked = this.lease(this.entryLeases, entry)
    if (held?.value === value && locked?.value === value) {
      this.lock({ ...request, token: held.token as FencingToken }, request.lease)
      return { _tag: "Taken", token: held.token as FencingToken, failures: this.failures.get(entry) ?? 0 }
    }
    const other = held ?? locked
    if (other !== undefined) {
      return { _tag: "Occupied", owner: other.value, timeLeft: Duration.millis(other.expires - this.now()) }
    }
    const row = this.row(entry)
    if (row === undefined) return { _tag: "Gone" }
    if (row.owner === undefined) return { _tag: "Undelivered" }
    if (row.owner !== request.consumer && this.now() - row.delivered < Duration.toMillis(request.minIdle)) {
      return { _tag: "NotIdle" }
    }
    if (this.running.has(entry)) {
      this.failures.set(entry, (this.failures.get(entry) ?? 0) + 1)
      if (this.failures.get(entry) === 1) this.failingSince.set(entry, this.now())
    }
    const failures = this.failures.get(entry) ?? 0
    const period = this.now() - (this.failingSince.get(entry) ?? this.now())
    const least = Duration.toMillis(request.deadLetterAfter ?? Duration.zero)
    if (failures >= request.maxFailures && period >= least) {
      this.deadLetter(row, "ran out")
      return { _tag: "DeadLettered", failures }
    }
    this.running.set(entry, value)
    const token = ++this.token as FencingToken
    row.deliveries++
    this.lock({ ...request, token }, request.lease)
    return { _tag: "Taken", token, failures }
  }

  private deadLetter(row: Row, reason: string) {
    const stream = row.content._tag === "Announced" ? row.content.stream : undefined
    this.dead.push({ id: id(this.dead.length + 1), entry: row.entry, stream, reason, fields: [] })
    this.drop(row.entry)
  }

  service(through: <A>(name: string, call: () => A) => Effect.Effect<A, SimbaError.BackendError>): Service {
    const subscribe = <A>(queues: Set<Queue.Queue<A>>) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.tap(Queue.unbounded<A>(), (queue) => Effect.sync(() => queues.add(queue))),
          (queue) => Effect.sync(() => queues.delete(queue))
        ),
        (queue) => ({ next: Queue.take(queue), bound: undefined })
      )
    const commit = (held: StreamStore.Ownership, to: StreamName.EntryId, isLast = false) => {
      if (this.lease(this.streamLeases, held.stream)?.value !== valueOf(held)) return "NotOwner"
      const last = this.checkpoints.get(held.stream)
      if (last !== undefined && StreamStore.compareEntryIds(to, last) <= 0) return "Behind"
      this.checkpoints.set(held.stream, to)
      this.failures.set(held.entry, 0)
      if (isLast) this.ended.set(held.stream, held.entry)
      else this.ended.delete(held.stream)
      return "Committed"
    }
    return {
      prepare: through("prepare", () => false),
      announce: (announcements) =>
        through("announce", () =>
          announcements.map(({ info, stream }) => {
            const present = this.rows.find(({ content }) => content._tag === "Announced" && content.stream === stream)
            if (present !== undefined) return { entry: present.entry, isNew: false }
            return { entry: this.add({ stream, info }), isNew: true }
          })),
      read: ({ block, consumer, count }) => {
        const read = through("read", () => {
          const rows = this.rows.filter((row) => num(row.entry) > this.read).slice(0, count)
          for (const row of rows) {
            this.read = num(row.entry)
            row.owner = consumer
            row.delivered = this.now()
            row.deliveries++
          }
          this.arrived.closeUnsafe()
          return rows.map(({ content }) => content)
        })
        return Effect.filterOrElse(
          read,
          (entries) => entries.length > 0,
          () => Effect.andThen(Effect.timeoutOption(this.arrived.await, block), read)
        )
      },
      pending: ({ after, consumer, count, minIdle }) =>
        through("pending", () => {
          const found = this.rows.filter((row) =>
            row.owner !== undefined && (consumer === undefined || row.owner === consumer) &&
            (after === undefined || StreamStore.compareEntryIds(row.entry, after) > 0) &&
            this.now() - row.delivered >= Duration.toMillis(minIdle)
          )
          const page = found.slice(0, count)
          return {
            entries: page.map((row) => ({
              consumer: row.owner as StreamStore.ConsumerName,
              idle: Duration.millis(this.now() - row.delivered),
              deliveries: row.deliveries,
              goConsumer: this.goConsumers.has(row.owner!)
                ? { lease: this.lease(this.entryLeases, row.entry)?.value }
                : undefined,
              content: row.content
            })),
            next: found.length > count ? page[page.length - 1]!.entry : undefined
          }
        }),
      find: (stream) =>
        through("find", () => {
          const row = this.rows.find(({ content }) => content._tag === "Announced" && content.stream === stream)
          return row?.content._tag === "Announced" ? Option.some(row.content) : Option.none()
        }),
      take: (requests) => through("take", () => requests.map((request) => this.takeOne(request))),
      renew: (holdings, lease) =>
        through("renew", () =>
          holdings.map((held): StreamStore.RenewResult => {
            if (this.isMine(held) && this.row(held.entry) !== undefined) {
              this.lock(held, lease)
              if (held.isBusy === true) this.running.set(held.entry, valueOf(held))
              if (held.isBusy === false) this.running.delete(held.entry)
              if (held.hasProgressed === true) this.failures.set(held.entry, 0)
              return { _tag: "Renewed" }
            }
            const other = this.lease(this.streamLeases, held.stream) ?? this.lease(this.entryLeases, held.entry)
            return { _tag: "Lost", reason: other === undefined ? "Vanished" : "TakenOver" }
          })),
      done: (held) =>
        through("done", () => {
          if (this.row(held.entry) === undefined) return "AlreadyDone"
          if (!this.isMine(held)) return "NotOwner"
          this.unlock(held)
          this.drop(held.entry)
          this.done.push(held.stream)
          if (this.checkpoints.has(held.stream)) this.ended.set(held.stream, held.entry)
          return "Done"
        }),
      release: (held) =>
        through("release", () => {
          if (!this.isMine(held)) return "NotOwner"
          this.unlock(held)
          this.row(held.entry)!.delivered = this.now() - 60_000
          this.hint({ _tag: "Released", stream: held.stream, entry: held.entry })
          if (this.publishesExpiries) this.expiry({ _tag: "Expired", stream: held.stream, entry: held.entry })
          return "Released"
        }),
      fail: (held, options) =>
        through("fail", () => {
          if (!this.isMine(held)) return "NotOwner"
          const count = (options?.hasProgressed === true ? 0 : this.failures.get(held.entry) ?? 0) + 1
          this.failures.set(held.entry, count)
          if (count === 1) this.failingSince.set(held.entry, this.now())
          return { count, period: Duration.millis(this.now() - this.failingSince.get(held.entry)!) }
        }),
      deadLetter: (held, reason) =>
        through("deadLetter", () => {
          if (!this.isMine(held)) return "NotOwner"
          this.unlock(held)
          this.deadLetter(this.row(held.entry)!, reason)
          return "DeadLettered"
        }),
      deadLetterMalformed: (entry, consumer, reason) =>
        through("deadLetterMalformed", () => {
          const row = this.row(entry)
          if (row?.owner !== consumer) return false
          this.deadLetter(row, reason)
          return true
        }),
      commit: (held, to, isLast) => through("commit", () => commit(held, to, isLast)),
      deadLetterMessage: (held) => through("deadLetterMessage", () => this.isMine(held) ? "DeadLettered" : "NotOwner"),
      checkpoint: (stream) =>
        through(
          "checkpoint",
          () => Option.map(Option.fromNullishOr(this.checkpoints.get(stream)), (id) => ({ id, offset: undefined }))
        ),
      seek: (stream, to) => through("seek", () => (this.checkpoints.set(stream, to.id), "Moved")),
      end: ({ entry, stream }) =>
        through("end", () => {
          const ended = this.ended.get(stream)
          return ended === undefined ? "Open" : ended === entry ? "Ended" : "Reopened"
        }),
      keepCheckpoints: (streams) => through("keepCheckpoints", () => void this.kept.push(...streams)),
      messages: () => through("messages", () => []),
      lag: () => through("lag", () => ({ messages: 0, isCounted: true, age: Duration.zero, first: undefined })),
      trim: () => through("trim", () => 0),
      extent: () => through("extent", () => Option.none()),
      count: () => through("count", () => Option.none()),
      awaitMessages: () => Effect.andThen(through("awaitMessages", () => []), Effect.never),
      handOver: (held, to, confirm) =>
        through("handOver", () => {
          if (!this.isMine(held)) return "NotOwner"
          const epoch = StreamStore.Epoch.make(`${to.session}.h${++this.handOvers}`)
          const next = { ...held, consumer: to.consumer, epoch, token: ++this.token as FencingToken }
          this.lock(next, confirm)
          this.running.set(held.entry, valueOf(next))
          this.hint({ _tag: "HandedOver", session: to.session })
          return "HandedOver"
        }),
      handedOver: (consumer, session, isAdopted = () => false) =>
        through("handedOver", () =>
          this.rows.flatMap((row) => {
            const { content } = row
            if (content._tag !== "Announced" || row.owner !== consumer || isAdopted(row.entry)) return []
            const lease = this.lease(this.streamLeases, content.stream)
            if (lease === undefined || !lease.epoch.startsWith(`${session}.h`) || lease.entry !== row.entry) return []
            const { entry, info, stream } = content
            const epoch = lease.epoch as StreamStore.Epoch
            const failures = this.failures.get(entry) ?? 0
            return [{ stream, entry, info, failures, consumer, epoch, token: lease.token as FencingToken }]
          })),
      heartbeat: (member, expiry) =>
        through("heartbeat", () => {
          this.members.set(member.consumer, { ...member, until: this.now() + Duration.toMillis(expiry) })
          for (const [name, { until }] of this.members) if (until <= this.now()) this.members.delete(name)
          return [...this.members.values()].map(({ capacity, consumer, owned, session }) => ({
            capacity,
            consumer,
            owned,
            session
          }))
        }),
      leave: ({ consumer }) => through("leave", () => void this.members.delete(consumer)),
      removeConsumer: (consumer) => through("removeConsumer", () => !this.rows.some(({ owner }) => owner === consumer)),
      reap: (idle) =>
        through("reap", () => {
          this.tidied.push({ at: this.now(), idle: Duration.toMillis(idle) })
          const found = this.rubbish
          this.rubbish = { consumers: 0, entries: 0 }
          return found
        }),
      signals: subscribe(this.hintQueues),
      expiries: Effect.suspend(() =>
        this.publishesExpiries ? Effect.asSome(subscribe(this.expiryQueues)) : Effect.succeedNone
      ),
      setPaused: () => Effect.die("unused"),
      paused: Effect.suspend(() => through("paused", () => ({ service: this.isPaused, streams: this.pausedStreams }))),
      inspect: Effect.die("unused"),
      deadLetters: () => through("deadLetters", () => this.dead),
      redrive: () => through("redrive", () => false),
      deadMessages: () => Effect.die("unused"),
      redriveMessage: () => Effect.die("unused")
    }
  }
}

export interface Link {
  mode: Mode
  /** Modes of individual operations, which take precedence over the link's `mode`. */
  readonly modes: Partial<Record<keyof Service, Mode>>
  /** The delay before a call reaches the backend, in milliseconds, by operation. */
  readonly delays: Partial<Record<keyof Service, number>>
  /** How long the backend works on a call, in milliseconds, by operation. It works on one call per link at a time. */
  readonly busy: Partial<Record<keyof Service, number>>
  readonly calls: Array<string>
}

/** Connects a client to the backend. The client uses `layer`, and the test causes faults through `link`. */
export const connect = (
  backend: Backend
): { readonly link: Link; readonly layer: Layer.Layer<StreamStore.StreamStore> } => {
  const link: Link = { mode: "work", modes: {}, delays: {}, busy: {}, calls: [] }
  let busyUntil = 0
  const service = backend.service((name, call) =>
    Effect.suspend(() => {
      link.calls.push(name)
      const mode = link.modes[name as keyof Service] ?? link.mode
      let delay = link.delays[name as keyof Service] ?? 0
      const busy = link.busy[name as keyof Service] ?? 0
      if (busy > 0) {
        busyUntil = Math.max(busyUntil, backend.now()) + busy
        delay += busyUntil - backend.now()
      }
      switch (mode) {
        case "work":
          return delay === 0 ? Effect.sync(call) : Effect.delay(Effect.sync(call), delay)
        case "fail":
          return Effect.fail(outage)
        case "refuse":
          return Effect.fail(refusal)
        case "hang":
          return Effect.never
        case "lost":
          return Effect.andThen(Effect.sync(call), Effect.never)
      }
    })
  )
  return { link, layer: Layer.succeed(StreamStore.StreamStore, { open: () => Effect.succeed(service) }) }
}
