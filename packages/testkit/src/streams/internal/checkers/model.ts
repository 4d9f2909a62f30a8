/** The model of stream ownership on the server, and helpers shared by the stream checkers. */
import { fallen } from "../../../internal/checkers/fallen.ts"
import { field } from "../../../internal/checkers/fields.ts"
import type { Event } from "../../../internal/simulation/history.ts"
import type { Checker, View } from "../../../internal/simulation/setup.ts"

export interface StreamModel {
  readonly streams: ReadonlyArray<string>
  readonly input: string
  readonly group: string
  readonly deadLetters: string
  readonly failures: string
  readonly members: string
  readonly checkpoint: (stream: string) => string
  readonly deadMessages: (stream: string) => string
  readonly entryLease: (stream: string, entry: string) => string
  readonly announcement: (fields: ReadonlyArray<string>) => string | undefined
  readonly deadId: (fields: ReadonlyArray<string>) => string | undefined
  readonly holder: (value: string) => string | undefined
  readonly isGoConsumer: (client: string) => boolean
  readonly isMark: (consumer: string) => boolean
  readonly paused?: string | undefined
  readonly isDraft?: ((message: string) => boolean) | undefined
  readonly keyOf?: ((message: string) => string) | undefined
  readonly sought?: ((args: ReadonlyArray<string>, reply: unknown) => string | undefined) | undefined
  readonly trimmed?: ((args: ReadonlyArray<string>) => string | undefined) | undefined
  readonly isUndecodable?: ((fields: ReadonlyArray<string>) => boolean) | undefined
}

export type Parts = ReturnType<Checker["start"]>

/** Compares the ids of entries or messages. Returns a negative number if `a` comes first. */
export const compareIds = (a: string, b: string): number => {
  const [aMillis, aSequence] = a.split("-").map(Number) as [number, number]
  const [bMillis, bSequence] = b.split("-").map(Number) as [number, number]
  return aMillis - bMillis || aSequence - bSequence
}

/** The smallest id. */
export const beginning = "0-0"

/** The last committed message. A checkpoint at a draft is ignored, because the draft's data stream was deleted. */
export const checkpointOf = (view: View, model: StreamModel, stream: string): string | undefined => {
  const id = view.read(model.checkpoint(stream))?.split("@@")[0]
  return id !== undefined && model.isDraft?.(id) === true ? beginning : id
}

/** The data stream, if any, whose checkpoint an operator moves with this command. */
export const soughtBy = (model: StreamModel, event: Event): string | undefined =>
  event._tag === "Command" ? model.sought?.(event.command.args, event.command.reply) : undefined

/** Whether operators have paused a data stream. */
export const isPaused = (view: View, { paused }: StreamModel, stream: string): boolean =>
  paused !== undefined && (view.field(paused, "") !== undefined || view.field(paused, stream) !== undefined)

/**
 * Tracks how far data streams have been processed: up to the checkpoint, or up to the position in an external system.
 */
export const positions = (view: View, model: StreamModel) => {
  const kept = new Map<string, string>()
  return {
    onEvent: (event: Event) => {
      const note = named(event, "kept")
      if (note !== undefined) kept.set(field(note.fields, "resource"), field(note.fields, "message"))
    },
    of: (stream: string): string | undefined => {
      const [checkpoint, outside] = [checkpointOf(view, model, stream), kept.get(stream)]
      if (checkpoint === undefined || outside === undefined) return checkpoint ?? outside
      return compareIds(checkpoint, outside) < 0 ? outside : checkpoint
    }
  }
}

export const checker = (name: string, start: (view: View) => Parts): Checker => ({ name, start })

export const named = (event: Event, ...kinds: ReadonlyArray<string>) =>
  event._tag === "Note" && kinds.includes(event.kind) ? event : undefined

export const touches = (event: Event, key: string): boolean =>
  event._tag === "Command" && event.command.args.includes(key)

/** Finds the data streams whose key, as returned by `keyOf`, occurs in a command. */
export const streamsOf = (model: StreamModel, keyOf: (stream: string) => string) => {
  const streams = new Map(model.streams.map((stream) => [keyOf(stream), stream]))
  return (event: Event): ReadonlyArray<string> =>
    event._tag === "Command" ? event.command.args.flatMap((arg) => streams.get(arg) ?? []) : []
}

/** Whether an entry has been acknowledged. It may still exist if its owner died before deleting it. */
export const isFinished = (view: View, model: StreamModel, entry: string): boolean => {
  const group = view.stream(model.input)?.group(model.group)
  return group !== undefined && group.delivery(entry) === undefined && compareIds(entry, group.lastDelivered) <= 0
}

/** A data stream's dead-lettered messages. */
export const deadMessages = (view: View, model: StreamModel, stream: string): ReadonlySet<string> =>
  new Set(
    view.stream(model.deadMessages(stream))?.entries.flatMap(([, fields]) => model.deadId(fields) ?? [])
  )

/** A data stream's messages after one id and up to another. */
export const messagesBetween = (
  view: View,
  stream: string,
  after: string,
  upTo: string
): ReadonlyArray<string> => {
  const entries = view.stream(stream)?.entries ?? []
  /** The index of the first message after an id. */
  const behind = (id: string) => {
    let [low, high] = [0, entries.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if (compareIds(entries[middle]![0], id) > 0) high = middle
      else low = middle + 1
    }
    return low
  }
  return entries.slice(behind(after), behind(upTo)).map(([id]) => id)
}

export { fallen, field }
