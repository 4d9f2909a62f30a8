/** A data stream's lease in memory. A test can add messages, revoke or lose the lease, and make its backend fail. */
import { SimbaError } from "@effect-simba/core"
import { FencingToken } from "@effect-simba/core/FencingToken"
import { StreamYielded } from "@effect-simba/core/streams/StreamError"
import { StreamLease } from "@effect-simba/core/streams/StreamLease"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamState"
import { compareEntryIds, type StreamEnd } from "@effect-simba/core/streams/StreamStore"
import { Deferred, Duration, Effect, Inspectable, Latch, Layer, Option, Pipeable } from "effect"

const outage = new SimbaError.BackendError({ operation: "test", isRetryable: true, cause: new Error("no connection") })

export const message = (id: string, fields: Record<string, string>): RawMessage => ({
  id: EntryId.make(id),
  fields: Object.entries(fields)
})

export class ScriptedLease {
  readonly stream: Array<RawMessage> = []
  /** The requests that can fail, progress reports and yields, in order. */
  readonly calls: Array<string> = []
  readonly dead: Array<readonly [id: string, reason: string]> = []
  checkpoint: EntryId | undefined
  /** The checkpoint's offset. */
  offset: number | undefined
  end: StreamEnd = "Open"
  /** The number of messages ever added. Undefined simulates a server that does not count them. */
  added: number | undefined = 0
  private lastAdded: EntryId | undefined
  /** How many of the next operations fail. Later ones succeed. */
  outages = 0
  /** Whether operations hang. */
  isSilent = false
  /** Whether counts hang. */
  isCountSilent = false
  private readonly arrival = Latch.makeUnsafe(false)
  private readonly asked = Latch.makeUnsafe(false)
  private readonly lost = Deferred.makeUnsafe<SimbaError.LeaseLost>()
  private loss: SimbaError.LeaseLost | undefined
  private readonly token = FencingToken.make(1)
  private readonly name = StreamName.make("orders")
  private readonly entry = EntryId.make("1-0")

  add(...messages: ReadonlyArray<RawMessage>): void {
    this.burst(Infinity, ...messages)
  }

  /** Adds messages, and deletes all but the last `left` messages before a reader can read them. */
  burst(left: number, ...messages: ReadonlyArray<RawMessage>): void {
    this.stream.push(...messages)
    this.lastAdded = messages.at(-1)?.id ?? this.lastAdded
    if (this.added !== undefined) this.added += messages.length
    this.trim(left)
    this.arrival.openUnsafe()
  }

  /** Deletes all but the last `left` messages. */
  trim(left: number): void {
    this.stream.splice(0, Math.max(0, this.stream.length - left))
  }

  /** Deletes and recreates the data stream. */
  rewrite(...messages: ReadonlyArray<RawMessage>): void {
    this.stream.length = 0
    if (this.added !== undefined) this.added = 0
    this.add(...messages)
  }

  askBack(): void {
    this.asked.openUnsafe()
  }

  lose(): void {
    this.loss = new SimbaError.LeaseLost({
      kind: "stream",
      resource: this.name,
      id: this.entry,
      token: this.token,
      reason: { _tag: "TakenOver" }
    })
    Deferred.doneUnsafe(this.lost, Effect.succeed(this.loss))
  }

  private guarded<A>(name: string, run: () => A) {
    return Effect.suspend((): Effect.Effect<A, SimbaError.LeaseLost | SimbaError.BackendError> => {
      this.calls.push(name)
      if (this.isSilent) return Effect.never
      if (this.loss !== undefined) return Effect.fail(this.loss)
      if (this.outages > 0) {
        this.outages--
        return Effect.fail(outage)
      }
      return Effect.sync(run)
    })
  }

  get extent() {
    return Option.map(Option.fromNullishOr(this.lastAdded), (last) => ({
      length: this.stream.length,
      last,
      first: this.stream[0]?.id,
      added: this.added,
      lastDeleted: this.added === undefined ? undefined : EntryId.make("0-0")
    }))
  }

  private counted(after: EntryId, last: EntryId): number | undefined {
    if (this.added === undefined) return undefined
    return this.stream.filter(({ id }) => compareEntryIds(id, after) > 0 && compareEntryIds(id, last) <= 0).length
  }

  private move(id: EntryId, offset: number | undefined): void {
    if (this.checkpoint !== undefined && compareEntryIds(id, this.checkpoint) <= 0) return
    if (this.lastAdded !== undefined && compareEntryIds(id, this.lastAdded) > 0) return
    this.checkpoint = id
    this.offset = offset
  }

  readonly layer = Layer.sync(StreamLease, () => ({
    ...Inspectable.BaseProto,
    ...Pipeable.Prototype,
    stream: this.name,
    entry: this.entry,
    info: {},
    token: this.token,
    failures: 0,
    isHeld: Effect.sync(() => this.loss === undefined),
    ensure: Effect.suspend(() => this.loss === undefined ? Effect.void : Effect.fail(this.loss)),
    timeLeft: Effect.sync(() => this.loss === undefined ? Duration.seconds(2) : Duration.zero),
    lost: Deferred.await(this.lost),
    revoked: this.asked.await,
    isRevoked: Effect.sync(() => this.asked.isOpen()),
    yield: Effect.suspend(() => {
      this.calls.push("handBack")
      return Effect.fail(new StreamYielded({ stream: this.name }))
    }),
    done: Effect.die("unused"),
    release: Effect.die("unused"),
    protect: () => Effect.die("unused"),
    progress: Effect.sync(() => void this.calls.push("progress")),
    checkpoint: Effect.catchTag(
      this.guarded(
        "checkpoint",
        () => Option.map(Option.fromNullishOr(this.checkpoint), (id) => ({ id, offset: this.offset }))
      ),
      "LeaseLost",
      (loss) => Effect.die(loss)
    ),
    end: Effect.sync(() => this.end),
    checkpointRetention: Duration.days(7),
    extent: Effect.sync(() => this.extent),
    count: (after, last) =>
      Effect.suspend(() =>
        this.isCountSilent ? Effect.never : Effect.succeed(
          Option.map(this.extent, (extent) => ({ ...extent, counted: this.counted(after, last ?? extent.last) }))
        )
      ),
    seek: ({ id, offset }) =>
      this.guarded(`seek ${id}`, () => {
        this.checkpoint = id
        this.offset = offset
        if (this.end === "Ended") this.end = "Open"
      }),
    commit: (id, options) =>
      this.guarded(`commit ${id}`, () => {
        this.move(id, options?.offset)
        if (options?.isLast === true) this.end = "Ended"
      }),
    deadLetter: (raw, reason) =>
      this.guarded(`dead-letter ${raw.id}`, () => {
        this.dead.push([raw.id, reason])
      }),
    messagesAfter: (after, count) =>
      Effect.gen({ self: this }, function*() {
        for (;;) {
          this.arrival.closeUnsafe()
          const found = yield* this.guarded(
            `read ${after}`,
            () => this.stream.filter(({ id }) => compareEntryIds(id, after) > 0).slice(0, count)
          )
          if (found.length > 0) return found
          yield* this.arrival.await
        }
      })
  }))
}
