/** Checks dead messages, gaps, paused data streams and trimming. */
import type { Checker } from "../../../internal/simulation/setup.ts"
import {
  beginning,
  checker,
  checkpointOf,
  compareIds,
  field,
  isPaused,
  named,
  positions,
  soughtBy,
  type StreamModel,
  touches
} from "./model.ts"

export const deadMessagesAreEarned = (model: StreamModel, attempts: number): Checker =>
  checker("dead messages are justified", (view) => {
    /** The number of attempts by owner and message. */
    const tried = new Map<string, number>()
    const most = new Map<string, number>()
    const letters = new Map<string, Set<string>>()
    const streams = new Map(model.streams.map((stream) => [model.deadMessages(stream), stream]))
    const follows = new Map(model.streams.map((stream) => [stream, view.follow(model.deadMessages(stream))]))
    const check = (stream: string) => {
      const known = letters.get(stream) ?? new Set()
      letters.set(stream, known)
      for (const [, fields] of follows.get(stream)!().added) {
        const id = model.deadId(fields) ?? ""
        const isTwice = known.has(id)
        known.add(id)
        if (view.lossAt() >= 0 || model.isDraft?.(id) === true) continue
        if (isTwice) view.violated(`${id} in ${stream} became a dead letter twice`)
        const count = most.get(`${stream} ${id}`) ?? 0
        if (model.isUndecodable?.(fields) === true || count >= attempts) continue
        view.violated(`${id} in ${stream} is a dead letter after only ${count} of ${attempts} attempts`)
      }
    }
    return {
      onEvent: (event) => {
        if (event._tag === "Command") {
          for (const arg of event.command.args) {
            const stream = streams.get(arg)
            if (stream !== undefined) check(stream)
          }
        }
        const note = named(event, "tried")
        if (note === undefined) return
        const [stream, message] = [field(note.fields, "resource"), field(note.fields, "message")]
        const run = `${field(note.fields, "id")} ${message}`
        const count = (tried.get(run) ?? 0) + 1
        tried.set(run, count)
        most.set(`${stream} ${message}`, Math.max(count, most.get(`${stream} ${message}`) ?? 0))
      }
    }
  })

export const gapsAreReported = (model: StreamModel): Checker =>
  checker("gaps are reported", (view) => {
    const position = positions(view, model)
    const follows = new Map(model.streams.map((stream) => [stream, view.follow(stream)]))
    /** Messages that were deleted before they were read and have not been reported in a gap yet. */
    const missing = new Map(model.streams.map((stream) => [stream, new Set<string>()]))
    const processed = new Map(model.streams.map((stream) => [stream, new Set<string>()]))
    const letters = new Map(model.streams.map((stream) => [stream, view.follow(model.deadMessages(stream))]))
    const deleted = new Map<string, number>()
    const check = (stream: string) => {
      const read = position.of(stream)
      // A dead message has been read, although it has not been processed
      for (const [, fields] of letters.get(stream)!().added) {
        const id = model.deadId(fields) ?? ""
        processed.get(stream)!.add(id)
        missing.get(stream)!.delete(id)
      }
      for (const [message] of follows.get(stream)!().removed) {
        if (model.isDraft?.(message) === true) continue
        deleted.set(stream, (deleted.get(stream) ?? 0) + 1)
        const isRead = read !== undefined && compareIds(message, read) <= 0 || processed.get(stream)!.has(message)
        if (!isRead) missing.get(stream)!.add(message)
      }
    }
    const drop = (stream: string, isOver: (message: string) => boolean) => {
      for (const message of missing.get(stream)!) if (isOver(message)) missing.get(stream)!.delete(message)
    }
    return {
      onEvent: (event) => {
        position.onEvent(event)
        if (event._tag === "Command") {
          for (const stream of model.streams) if (touches(event, stream)) check(stream)
          const sought = soughtBy(model, event)
          const to = sought === undefined ? undefined : checkpointOf(view, model, sought)
          if (sought !== undefined && to !== undefined) {
            // A reader that starts at the first remaining message does not miss messages that were deleted earlier
            const first = view.stream(sought)?.entries[0]?.[0]
            drop(sought, (message) =>
              compareIds(message, to) <= 0 || first === undefined || compareIds(message, first) < 0)
          }
          const trimmed = model.trimmed?.(event.command.args)
          // Trimming is checked separately
          if (trimmed !== undefined) {
            drop(trimmed, (message) =>
              compareIds(message, position.of(trimmed) ?? beginning) <= 0)
          }
        }
        const note = named(event, "gap", "processed")
        if (note === undefined) return
        const stream = field(note.fields, "resource")
        if (note.kind === "processed") {
          missing.get(stream)?.delete(field(note.fields, "message"))
          processed.get(stream)?.add(field(note.fields, "message"))
          return
        }
        if (note.fields["reason"] !== "Deleted") return
        const [after, until] = [field(note.fields, "after"), field(note.fields, "until")]
        const [missed, all] = [Number(note.fields["missed"]), deleted.get(stream) ?? 0]
        const before = missing.get(stream)!.size
        drop(stream, (message) => compareIds(after, message) < 0 && compareIds(message, until) <= 0)
        // The other messages were passed by an earlier owner, which did not have time to report them
        let others = missed - (before - missing.get(stream)!.size)
        drop(stream, (message) => compareIds(message, after) <= 0 && others-- > 0)
        if (missed > all && view.lossAt() < 0) {
          view.violated(`${missed} messages in ${stream} are reported as missing, but ${all} were deleted`)
        }
      },
      onConverged: () => {
        if (view.lossAt() >= 0) return
        for (const [stream, messages] of missing) {
          check(stream)
          const read = position.of(stream) ?? beginning
          for (const message of messages) {
            // Once an announcement is dead-lettered, its data stream is not read further
            if (compareIds(message, read) > 0) continue
            view.violated(`${message} in ${stream} was deleted before it was read, but no gap is reported`)
          }
        }
      }
    }
  })

export const pausedRest = (model: StreamModel, bound: number): Checker =>
  checker("paused data streams stay paused", (view) => {
    const pausedAt = new Map<string, number>()
    return {
      onEvent: (event) => {
        if (model.paused === undefined) return
        if (event._tag === "Fault" || touches(event, model.paused)) {
          for (const stream of model.streams) {
            if (!isPaused(view, model, stream)) pausedAt.delete(stream)
            else if (!pausedAt.has(stream)) pausedAt.set(stream, event.at)
          }
        }
        const note = named(event, "begin")
        if (note === undefined) return
        const stream = field(note.fields, "resource")
        const since = Math.max(pausedAt.get(stream) ?? Infinity, view.disturbedAt(note.client))
        if (note.at - since <= bound) return
        view.violated(`${field(note.fields, "id")} started although ${stream} is paused`)
      }
    }
  })

export const onlyReadIsTrimmed = (model: StreamModel): Checker =>
  checker("only what is read is trimmed", (view) => {
    const follows = new Map(model.streams.map((stream) => [stream, view.follow(stream)]))
    return {
      onEvent: (event) => {
        if (event._tag !== "Command" || model.trimmed === undefined) return
        const trimmed = model.trimmed(event.command.args)
        for (const stream of model.streams) {
          if (!touches(event, stream)) continue
          const { removed } = follows.get(stream)!()
          if (stream !== trimmed) continue
          const checkpoint = checkpointOf(view, model, stream)
          const undelivered = removed.find(([message]) =>
            model.isDraft?.(message) !== true && (checkpoint === undefined || compareIds(message, checkpoint) > 0)
          )
          if (undelivered === undefined) continue
          view.violated(
            `${undelivered[0]} in ${stream} was trimmed, but ${stream} is only committed up to ${
              checkpoint ?? "its beginning"
            }`
          )
        }
      }
    }
  })
