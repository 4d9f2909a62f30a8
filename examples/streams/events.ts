/** What the processes say over their standard output, one line of JSON each. */
import { Effect, Schema } from "effect"

export const Event = Schema.TaggedUnion({
  /** A consumer is about to take part. */
  Joins: { who: Schema.String },
  Announced: { who: Schema.String, stream: Schema.String },
  /** A consumer owns the stream now. */
  Taken: { who: Schema.String, stream: Schema.String, token: Schema.Int },
  Processed: { who: Schema.String, stream: Schema.String, n: Schema.Int, token: Schema.Int },
  Done: { who: Schema.String, stream: Schema.String },
  /** Asked to end, it gives this one back. */
  GivenBack: { who: Schema.String, stream: Schema.String }
})

export type Event = typeof Event.Type

const Line = Schema.fromJsonString(Event)
const encode = Schema.encodeEffect(Line)
const decode = Schema.decodeUnknownEffect(Line)

export const report = (event: Event): Effect.Effect<void> =>
  Effect.flatMap(Effect.orDie(encode(event)), (line) => Effect.sync(() => void process.stdout.write(`${line}\n`)))

/** None where the line is something else. */
export const read = (line: string) => Effect.option(decode(line))
