/**
 * How operations are encoded in a call. With the usual durations, which are sent once per call, an operation is a
 * letter and an id.
 */
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import type { AcquireRequest, ReleaseRequest, Ticket } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration } from "effect"
import type { CommandSink } from "../../src/internal/client/commandSink.ts"
import { largestToken, operands } from "../../src/internal/mutex/keys.ts"
import * as operationBatch from "../../src/internal/mutex/operationBatch.ts"

const [m, n] = [MutexName.make("m"), MutexName.make("n")]
const times = { lease: Duration.millis(9000), confirm: Duration.millis(1500) }
const id = (name: string) => name as LeaseId

const acquire = (mutex: MutexName, name: string, rest: Partial<AcquireRequest> = {}): AcquireRequest => ({
  mutex,
  id: id(name),
  mode: "wait",
  ...times,
  ...rest
})

const release = (mutex: MutexName, name: string, rest: Partial<ReleaseRequest> = {}): ReleaseRequest => ({
  mutex,
  id: id(name),
  ...times,
  ...rest
})

/** Returns the arguments of the calls for operations requested in one event-loop turn. `ask` gets the calls so far. */
const sent = (
  ask: (batch: operationBatch.OperationBatch, calls: ReadonlyArray<ReadonlyArray<string>>) => void,
  options: { readonly perSlot: boolean; readonly skipDead: operationBatch.SkipDead } = {
    perSlot: false,
    skipDead: "1"
  }
) => {
  const calls: Array<ReadonlyArray<string>> = []
  const tasks: Array<() => void> = []
  const sink = {
    isReady: () => true,
    afterCurrentTask: (task: () => void) => void tasks.push(task),
    send: (_command: string, args: ReadonlyArray<string>) => void calls.push(args)
  } as unknown as CommandSink["Service"]
  ask(operationBatch.make(sink, { lua: "lua", sha: "sha" }, options), calls)
  for (const task of tasks) task()
  return calls
}

const none = () => undefined

describe("a call", () => {
  it("contains keys and usual durations once for consecutive operations on one mutex", () => {
    const calls = sent(({ acquire: ask, inspect, release: end }) => {
      ask(acquire(m, "a", { mode: "try" }), none)
      ask(acquire(m, "b"), none)
      end(release(m, "a"), none)
      end(release(m, "b", { requeue: { id: id("c"), lease: times.lease } }), none)
      inspect(n, 7, none)
      ask(acquire(m, "d"), none)
    })
    assert.deepStrictEqual(calls, [[
      ...["sha", "12", ...operands(m), ...operands(n), ...operands(m)],
      ...["tWRQiw 1 9000 1500", "a", "b", "a", "b", "c", "7", "d"]
    ]])
  })

  it("contains the durations for each operation with unusual durations", () => {
    const other = { lease: Duration.millis(8000), confirm: Duration.millis(1400) }
    const calls = sent(({ acquire: ask, release: end }) => {
      ask(acquire(m, "a"), none)
      ask(acquire(m, "b", { lease: other.lease }), none)
      ask(acquire(m, "c", { confirm: other.confirm }), none)
      ask(acquire(m, "d", { mode: "try", ticket: "1.000001" as Ticket }), none)
      end(release(m, "a", other), none)
      end(release(m, "b", { requeue: { id: id("e"), lease: other.lease } }), none)
      end(release(m, "c"), none)
    })
    assert.deepStrictEqual(calls, [[
      ...["sha", "4", ...operands(m), "wAAADDR 1 9000 1500", "a"],
      ...["b", "wait", "8000", "1500", "", "c", "wait", "9000", "1400", "", "d", "try", "9000", "1500", "1.000001"],
      ...["a", "1400", "8000", "", "0", "b", "1500", "9000", "e", "8000", "c"]
    ]])
  })

  it("contains at most 64 operations, on a Cluster only those for one slot", () => {
    const many = sent(({ release: end }) => {
      for (let i = 0; i < 130; i++) end(release(m, `a${i}`), none)
    })
    assert.deepStrictEqual(many.map((args) => args.at(-1)), ["a63", "a127", "a129"])
    const perSlot = sent(
      ({ release: end }) => {
        for (const mutex of [m, n, m]) end(release(mutex, "a"), none)
      },
      { perSlot: true, skipDead: "0" }
    )
    const bySlot = [...perSlot].sort((a, b) => a[2]! < b[2]! ? -1 : 1)
    assert.deepStrictEqual(bySlot.map((args) => args.slice(1, 3)), [["4", operands(m)[0]], ["4", operands(n)[0]]])
    assert.deepStrictEqual(bySlot.map((args) => args[6]), ["rR 0 9000 1500", "r 0 9000 1500"])
  })
})

describe("a release of a contended mutex", () => {
  it("is sent before the caller continues, and later operations in the same turn share a call", () => {
    const calls = sent(({ acquire: ask, release: end }, calls) => {
      end(release(m, "a"), none, true)
      assert.deepStrictEqual(calls.map((args) => args.at(-1)), ["a"])
      end(release(m, "b"), none, true)
      ask(acquire(m, "c"), none)
    })
    assert.deepStrictEqual(calls.map((args) => args.slice(6)), [["r 1 9000 1500", "a"], ["rW 1 9000 1500", "b", "c"]])
  })

  it("does not overtake operations from the same turn", () => {
    const calls = sent(({ acquire: ask, release: end }) => {
      ask(acquire(m, "a"), none)
      end(release(m, "b"), none, true)
    })
    assert.deepStrictEqual(calls.map((args) => args.slice(6)), [["wR 1 9000 1500", "a", "b"]])
  })
})

it("the key for a resource's largest token is in the same slot as the resource", () => {
  assert.strictEqual(largestToken("orders"), "{orders}:simba-token")
  assert.strictEqual(largestToken("a{b}c"), "a{b}c:simba-token")
  for (const name of ["{}a{b}", "a{b", "a}b"]) assert.strictEqual(largestToken(name), `{${name}}:simba-token`)
})
