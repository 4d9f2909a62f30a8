/** Checks the report of the data stream demo against a recorded run and modified copies of it. */
import { assert, describe, it } from "@effect/vitest"
import type { Event } from "../streams/events.ts"
import type { History } from "../streams/history.ts"
import * as plan from "../streams/plan.ts"
import { checks, summary } from "../streams/report.ts"

type Ending = "Done" | "Yielded"

/**
 * One consumer's tenure of a stream: the second in which it begins, and the first and last message that it processes.
 */
type Part = readonly [who: string, from: number, first: number, last: number, ending?: Ending]

/**
 * A recorded run on a busy machine: `cleo` is killed after it yielded `quinn-3`, while it owns `quinn-1` and `quinn-2`.
 */
const recorded: Readonly<Record<string, ReadonlyArray<Part>>> = {
  "pia-1": [["ada", 11.9, 1, 60, "Done"]],
  "pia-2": [["ada", 11.9, 1, 60, "Done"]],
  "pia-3": [["ada", 12.0, 1, 4, "Yielded"], ["ben", 12.6, 5, 60, "Done"]],
  "pia-4": [["ben", 11.8, 1, 60, "Done"]],
  "quinn-1": [["cleo", 10.8, 1, 19], ["ben", 17.3, 20, 60, "Done"]],
  "quinn-2": [["cleo", 10.8, 1, 19], ["ada", 17.5, 19, 60, "Done"]],
  "quinn-3": [["cleo", 10.8, 1, 10, "Yielded"], ["ada", 12.1, 11, 60, "Done"]],
  "quinn-4": [["ben", 10.8, 1, 60, "Done"]]
}

const killedAt = 13_000

const eventsOf = (stream: string, [who, from, first, last, ending]: Part, token: number): ReadonlyArray<Event> => {
  const at = (messages: number) => from * 1000 + 100 * messages
  return [
    { _tag: "Taken", who, at: at(0), stream, token },
    ...Array.from(
      { length: last - first + 1 },
      (_, index): Event => ({ _tag: "Processed", who, at: at(index + 1), stream, token, n: first + index })
    ),
    ...ending === undefined ? [] : [{ _tag: ending, who, at: at(last - first + 1) + 1, stream, token } as const]
  ]
}

/** The events of a run, ordered by time. */
const historyOf = (run: typeof recorded): History =>
  [
    ...Object.entries(run).flatMap(([stream, parts]): ReadonlyArray<Event> => [
      { _tag: "Announced", who: stream.split("-")[0]!, at: 10_700, stream },
      ...parts.flatMap((part, index) => eventsOf(stream, part, index + 1))
    ]),
    { _tag: "Killed", who: "cleo", at: killedAt } as const
  ].sort((a, b) => a.at - b.at)

const failing = (history: History) => checks(history).filter(([, holds]) => !holds).map(([claim]) => claim)

const claims = {
  done: "8 streams were announced, and all are done",
  messages: "every message was processed, in the order of its stream",
  tokens: "each stream's token grew with every owner",
  takenOver: (streams: number) => `cleo was killed while it owned ${streams} streams, and each was taken over`,
  failed: "no process failed"
}

describe("the data stream demo", () => {
  it("does not require a new owner for a stream that the killed consumer had yielded", () => {
    const history = historyOf(recorded)
    assert.deepStrictEqual(failing(history), [])
    assert.include(checks(history).map(([claim]) => claim), claims.takenOver(2))
    assert.include(summary(history), "  quinn-2: cleo from 0.1 s (19), ada from 6.8 s (42)")
    assert.strictEqual(summary(history).at(-1), "Crash: others took over 2 of cleo's streams, 4.3 s to 4.5 s later")
  })

  it("does not require a new owner for a stream that finished between the record of the kill and the kill", () => {
    const history = historyOf({ ...recorded, "quinn-1": [["cleo", 7.1, 1, 60, "Done"]] })
    assert.isAbove(history.find(({ _tag, who }) => _tag === "Done" && who === "cleo")!.at, killedAt)
    assert.deepStrictEqual(failing(history), [])
  })

  it("orders events by their timestamps, not by when they were read", () => {
    for (const late of [...plan.consumers, ...plan.producers]) {
      const history = historyOf(recorded)
      const read = [...history.filter(({ who }) => who !== late), ...history.filter(({ who }) => who === late)]
      assert.deepStrictEqual(failing(read), [], late)
    }
  })

  it("detects a stream that nobody took over", () => {
    const history = historyOf({ ...recorded, "quinn-1": [["cleo", 10.8, 1, 19]] })
    assert.deepStrictEqual(failing(history), [
      claims.done,
      claims.messages,
      claims.takenOver(2)
    ])
  })

  it("detects that the killed consumer owned no streams", () => {
    const history = historyOf({
      ...recorded,
      "quinn-1": [["ben", 10.8, 1, 60, "Done"]],
      "quinn-2": [["ada", 10.8, 1, 60, "Done"]]
    })
    assert.deepStrictEqual(failing(history), [claims.takenOver(0)])
  })

  it("detects a skipped message, and a message that was processed too early", () => {
    const history = historyOf({ ...recorded, "quinn-3": [["cleo", 10.8, 1, 10], ["ada", 12.1, 12, 60, "Done"]] })
    assert.deepStrictEqual(failing(history), [claims.messages])
    const early = historyOf({ ...recorded, "pia-3": [["ada", 12.0, 1, 4, "Yielded"], ["ben", 12.1, 5, 60, "Done"]] })
    assert.deepStrictEqual(failing(early), [claims.messages, claims.tokens])
  })

  it("detects an owner that continues after its successor has started", () => {
    const history = historyOf({ ...recorded, "pia-3": [["ada", 12.0, 1, 9], ["ben", 12.6, 5, 60, "Done"]] })
    assert.deepStrictEqual(failing(history), [claims.tokens])
  })

  it("detects a token that two owners share", () => {
    const history = historyOf(recorded).map((event) => "token" in event ? { ...event, token: 1 } : event)
    assert.include(failing(history), claims.tokens)
  })

  it("detects a stream that is not done", () => {
    const history = historyOf(recorded).filter((event) => !(event._tag === "Done" && event.stream === "pia-1"))
    assert.deepStrictEqual(failing(history), [claims.done])
  })

  it("fails every claim if no stream was announced", () => {
    const failed: Event = { _tag: "Failed", who: "pia", at: 0, problem: "exited with code 1" }
    assert.deepStrictEqual(failing([failed]), Object.values({ ...claims, takenOver: claims.takenOver(0) }))
  })

  it("detects a failed process", () => {
    const failed: Event = { _tag: "Failed", who: "ada", at: 15_000, problem: "exited with code 1" }
    assert.deepStrictEqual(failing([...historyOf(recorded), failed]), [claims.failed])
  })
})
