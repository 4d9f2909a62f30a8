/** Checks that no message is skipped, no announcement is forgotten, and no checkpoint moves back. */
import type { Checker, View } from "../../../internal/simulation/setup.ts"
import {
  beginning,
  checker,
  checkpointOf,
  compareIds,
  deadMessages,
  field,
  isFinished,
  messagesBetween,
  named,
  positions,
  soughtBy,
  type StreamModel,
  streamsOf,
  touches
} from "./model.ts"

/**
 * Whether a data stream is read from the beginning again. That happens if the server has lost the data stream's end,
 * but not the commit there.
 */
const isReread = (view: View, checkpoint: string | undefined) => checkpoint === beginning && view.lossAt() >= 0

export const checkpointsGrow = (model: StreamModel): Checker =>
  checker("checkpoints advance only past processed messages", (view) => {
    const last = new Map<string, { readonly id: string; readonly at: number }>()
    const highest = new Map<string, string>()
    const processed = new Map<string, Set<string>>()
    const committed = streamsOf(model, model.checkpoint)
    /** Checks a checkpoint. `kept` is a position stored in an external system, which may be ahead of the checkpoint. */
    const check = (stream: string, at: number, kept?: string) => {
      const id = kept ?? checkpointOf(view, model, stream)
      const place = kept === undefined ? stream : `${stream} outside`
      const before = last.get(place)
      if (id === undefined || id === before?.id) return
      last.set(place, { id, at })
      // The next owner may still know about a commit that the server has lost
      const from = highest.get(stream) ?? beginning
      if (compareIds(id, from) > 0) highest.set(stream, id)
      if (view.lossAt() >= (before?.at ?? 0) || isReread(view, id)) return
      if (before !== undefined && compareIds(id, before.id) < 0) {
        return view.violated(`the checkpoint of ${stream} went from ${before.id} back to ${id}`)
      }
      const dead = deadMessages(view, model, stream)
      const passed = messagesBetween(view, stream, from, id).find((message) =>
        processed.get(stream)?.has(message) !== true && !dead.has(message)
      )
      if (passed !== undefined) view.violated(`${stream} is committed up to ${id}, and ${passed} was not processed`)
    }
    /** When an operator moves the checkpoint, messages after the new position no longer count as processed. */
    const moved = (stream: string, at: number) => {
      const id = checkpointOf(view, model, stream) ?? beginning
      last.set(stream, { id, at })
      highest.set(stream, id)
      for (const message of processed.get(stream) ?? []) {
        if (compareIds(message, id) > 0) processed.get(stream)!.delete(message)
      }
    }
    return {
      onEvent: (event) => {
        const sought = soughtBy(model, event)
        if (sought !== undefined) moved(sought, event.at)
        for (const stream of committed(event)) check(stream, event.at)
        const note = named(event, "processed", "kept")
        if (note === undefined) return
        const [stream, message] = [field(note.fields, "resource"), field(note.fields, "message")]
        if (note.kind === "kept") return check(stream, event.at, message)
        processed.set(stream, (processed.get(stream) ?? new Set()).add(message))
      }
    }
  })

export const messagesInOrder = (model: StreamModel): Checker =>
  checker("messages come in order", (view) => {
    const runs = new Map<
      string,
      {
        readonly at: number
        readonly stream: string
        from: string
        last: string | undefined
        /** The last message for each key. With concurrency, each key has its own order. */
        readonly byKey: Map<string, string>
      }
    >()
    const soughtAt = new Map<string, number>()
    const position = positions(view, model)
    const committed = streamsOf(model, model.checkpoint)
    return {
      onEvent: (event) => {
        position.onEvent(event)
        const sought = soughtBy(model, event)
        if (sought !== undefined) soughtAt.set(sought, event.at)
        for (const stream of committed(event)) {
          if (!isReread(view, checkpointOf(view, model, stream))) continue
          for (const run of runs.values()) {
            if (run.stream !== stream) continue
            Object.assign(run, { from: beginning, last: undefined })
            run.byKey.clear()
          }
        }
        const note = named(event, "begin", "processed")
        if (note === undefined) return
        const id = field(note.fields, "id")
        const stream = field(note.fields, "resource")
        const checkpoint = position.of(stream) ?? beginning
        if (note.kind === "begin") {
          runs.set(id, { at: note.at, stream, from: checkpoint, last: undefined, byKey: new Map() })
          return
        }
        const message = field(note.fields, "message")
        const run = runs.get(id)
        if (run === undefined) return view.violated(`${id} processed ${message} before it started`)
        const key = "key" in note.fields ? field(note.fields, "key") : undefined
        const last = key === undefined ? run.last : run.byKey.get(key)
        const first = last === undefined
        const from = last ?? run.from
        run.last = message
        if (key !== undefined) run.byKey.set(key, message)
        if (view.lossAt() >= run.at || (soughtAt.get(stream) ?? -1) >= run.at) return
        if (compareIds(message, from) <= 0) {
          return view.violated(`${id} processed ${message} again, after ${from}`)
        }
        const dead = deadMessages(view, model, stream)
        const skipped = messagesBetween(view, stream, from, message).find((other) =>
          other !== message && !dead.has(other) && !(first && compareIds(other, checkpoint) <= 0) &&
          (key === undefined || model.keyOf?.(other) === key)
        )
        if (skipped !== undefined) view.violated(`${id} processed ${message}, and skipped ${skipped}`)
      }
    }
  })

export const nothingIsForgotten = (model: StreamModel): Checker =>
  checker("nothing is forgotten", (view) => {
    const known = new Map<string, { readonly stream: string | undefined; readonly at: number }>()
    /** Each data stream's final messages, in order. A data stream may end several times. */
    const ends = new Map<string, Array<string>>()
    const announced = new Set<string>()
    const finished = new Set<string>()
    /** Entries that Go consumers have acknowledged. Unless it dies first, the consumer deletes the entry next. */
    const acknowledged = new Set<string>()
    const highest = new Map<string, string>()
    const begun = new Map<string, number>()
    const committed = streamsOf(model, model.checkpoint)
    const changes = view.follow(model.input)
    const letters = view.follow(model.deadLetters)
    const dead = new Set<string>()
    const position = positions(view, model)
    const reaches = (stream: string, checkpoint: string | undefined) => {
      const end = ends.get(stream)?.at(-1)
      return end !== undefined && compareIds(checkpoint ?? beginning, end) >= 0
    }
    const isAtItsEnd = (stream: string) => reaches(stream, position.of(stream))
    /**
     * If a data stream was reopened after its end, it may be deleted before anybody reads it. It then has a new
     * checkpoint.
     */
    const wasDeletedAfterItsEnd = (stream: string) =>
      view.stream(stream) === undefined && reaches(stream, highest.get(stream))
    const isAtAnEnd = (stream: string) => ends.get(stream)?.includes(position.of(stream) ?? "") === true
    /** A handler that started before the data loss and has processed everything may report the end again. */
    const wasAtItsEnd = (stream: string, entry: string) =>
      view.lossAt() >= (begun.get(entry) ?? Infinity) && reaches(stream, highest.get(stream))
    const isDead = (entry: string) => {
      const { added, removed } = letters()
      for (const [, fields] of removed) dead.delete(model.deadId(fields) ?? "")
      for (const [, fields] of added) dead.add(model.deadId(fields) ?? "")
      return dead.has(entry)
    }
    const check = (at: number, client: string) => {
      const { added, removed } = changes()
      for (const [entry, fields] of added) known.set(entry, { stream: model.announcement(fields), at })
      for (const [entry] of removed) {
        const { at: since, stream } = known.get(entry)!
        known.delete(entry)
        const isLost = view.lossAt() >= since
        const dead = isDead(entry)
        const isGoConsumer = model.isGoConsumer(client) || acknowledged.has(entry)
        if (
          stream !== undefined &&
          (dead || isGoConsumer || !isLost && (isAtItsEnd(stream) || wasDeletedAfterItsEnd(stream)))
        ) {
          finished.add(stream)
        }
        if (isLost || dead || isGoConsumer) continue
        if (stream === undefined) view.violated(`${entry} cannot be read and is gone, but is not in the dead letters`)
        else if (
          !isAtAnEnd(stream) && !isAtItsEnd(stream) && !wasDeletedAfterItsEnd(stream) && !wasAtItsEnd(stream, entry)
        ) {
          const checkpoint = position.of(stream) ?? "its beginning"
          view.violated(`${entry} (${stream}) is gone, but was only committed up to ${checkpoint}`)
        }
      }
    }
    const missing = () =>
      [...ends.keys()].filter((stream) => !announced.has(stream) || !(finished.has(stream) || isAtItsEnd(stream)))
    return {
      onEvent: (event) => {
        position.onEvent(event)
        for (const stream of committed(event)) {
          const id = checkpointOf(view, model, stream) ?? beginning
          if (compareIds(id, highest.get(stream) ?? beginning) > 0) highest.set(stream, id)
        }
        if (event._tag === "Command" && touches(event, model.input)) {
          const { args, client } = event.command
          if (args[0] === "XACK" && model.isGoConsumer(client)) acknowledged.add(args[3]!)
          check(event.at, client)
        }
        const note = named(event, "announced", "expects", "begin")
        if (note === undefined) return
        if (note.kind === "begin") {
          if ("entry" in note.fields) begun.set(field(note.fields, "entry"), note.at)
          return
        }
        const stream = field(note.fields, "resource")
        if (note.kind === "announced") announced.add(stream)
        else ends.set(stream, [...ends.get(stream) ?? [], field(note.fields, "message")].sort(compareIds))
      },
      isConverged: () => [...known.keys()].every((entry) => isFinished(view, model, entry)) && missing().length === 0,
      onConverged: () => {
        for (const [entry, { stream }] of known) {
          if (isFinished(view, model, entry)) continue
          view.violated(`${entry} (${stream ?? "unreadable"}) is not finished`)
        }
        for (const stream of missing()) view.violated(`${stream} was never finished`)
      }
    }
  })
