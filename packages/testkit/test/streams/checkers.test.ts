/** Tests that each stream ownership checker finds its violation in a tailored history, and none in a correct one. */
import type { Simulation } from "@effect-simba/testkit"
import { describe, it } from "@effect/vitest"
import { Duration, Effect, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as fleet from "../../src/streams/internal/checkers/fleet.ts"
import * as ownership from "../../src/streams/internal/checkers/ownership.ts"
import * as progress from "../../src/streams/internal/checkers/progress.ts"
import { accepts, type Client, commit, finds, message, model, type Program, send } from "../support/streamHistory.ts"

const announce = (entry: string) => send("XADD", "input", entry, "stream", "s")
const prepare = send("XGROUP", "CREATE", "input", "group", "0", "MKSTREAM")
const read = (consumer: string) => send("XREADGROUP", "GROUP", "group", consumer, "STREAMS", "input", ">")
const remove = (entry: string) => Effect.andThen(send("XACK", "input", "group", entry), send("XDEL", "input", entry))

describe("checkpointsGrow", () => {
  const checker = progress.checkpointsGrow(model)
  const processed = ({ note }: Client, id: string) => note("processed", { resource: "s", id: "s#1", message: id })

  it.effect("finds a checkpoint that skips a message", () =>
    finds(checker, /^s is committed up to 2-0, and 1-0 was not processed/, (client) =>
      Effect.gen(function*() {
        yield* message("1-0")
        yield* message("2-0")
        processed(client, "2-0")
        yield* commit("2-0")
      })))

  it.effect("finds a checkpoint that moves back", () =>
    finds(checker, /^the checkpoint of s went from 2-0 back to 1-0/, (client) =>
      Effect.gen(function*() {
        yield* message("1-0")
        yield* message("2-0")
        processed(client, "1-0")
        processed(client, "2-0")
        yield* commit("2-0")
        yield* commit("1-0")
      })))

  it.effect("finds an external offset that skips a message or moves back", () =>
    Effect.gen(function*() {
      const kept = (...ids: ReadonlyArray<string>) => (client: Client) =>
        Effect.gen(function*() {
          yield* message("1-0")
          yield* message("2-0")
          processed(client, "2-0")
          for (const id of ids) client.note("kept", { resource: "s", message: id })
        })
      yield* finds(checker, /^s is committed up to 2-0, and 1-0 was not processed/, kept("2-0"))
      yield* finds(checker, /the checkpoint of s went from 2-0 back to 1-0/, kept("2-0", "1-0"))
    }))

  it.effect("accepts messages that were processed or are dead letters", () =>
    accepts(checker, (client) =>
      Effect.gen(function*() {
        yield* message("1-0")
        yield* message("2-0")
        processed(client, "1-0")
        yield* send("XADD", "dead:s", "*", "id", "2-0")
        yield* commit("2-0")
      })))
})

describe("messagesInOrder", () => {
  const checker = progress.messagesInOrder(model)
  const run = (...ids: ReadonlyArray<string>) => ({ note }: Client) =>
    Effect.gen(function*() {
      for (const id of ["1-0", "2-0", "3-0"]) yield* message(id)
      yield* commit("1-0")
      note("begin", { resource: "s", id: "s#1" })
      for (const id of ids) note("processed", { resource: "s", id: "s#1", message: id })
    })

  it.effect("finds a skipped message", () => finds(checker, /^s#1 processed 3-0, and skipped 2-0/, run("3-0")))

  it.effect("finds messages that are processed after they were committed", () =>
    finds(checker, /^s#1 processed 1-0 again/, run("1-0")))

  it.effect("finds messages that are processed twice", () =>
    finds(checker, /^s#1 processed 2-0 again/, run("2-0", "2-0")))

  it.effect("accepts messages that are processed in order", () => accepts(checker, run("2-0", "3-0")))

  it.effect("finds messages that are processed although an external offset has passed them", () =>
    finds(checker, /^s#1 processed 2-0 again/, (client) => {
      client.note("kept", { resource: "s", message: "2-0" })
      return run("2-0")(client)
    }))
})

describe("nothingIsForgotten", () => {
  const checker = progress.nothingIsForgotten(model)
  const announced = ({ note }: Client) =>
    Effect.gen(function*() {
      yield* prepare
      yield* announce("1-0")
      note("expects", { resource: "s", message: "2-0" })
      note("announced", { resource: "s" })
      yield* read("a")
    })

  it.effect("finds an announcement that disappears before its data stream ends", () =>
    finds(checker, /^1-0 \(s\) is gone, but was only committed up to 1-0/, (client) =>
      Effect.gen(function*() {
        yield* announced(client)
        yield* commit("1-0")
        yield* remove("1-0")
      })))

  it.effect("finds an announcement that is never finished", () =>
    finds(checker, /^1-0 \(s\) is not finished,s was never finished/, announced))

  it.effect("finds a lost announcement", () =>
    finds(
      checker,
      /^s was never finished/,
      ({ note }) => Effect.sync(() => note("expects", { resource: "s", message: "2-0" }))
    ))

  it.effect("finds malformed entries that disappear without a dead letter", () =>
    finds(checker, /^1-0 cannot be read and is gone/, () =>
      Effect.gen(function*() {
        yield* prepare
        yield* send("XADD", "input", "1-0", "rubbish", "1")
        yield* remove("1-0")
      })))

  describe("after the server has lost the end and its announcement", () => {
    const faults: Simulation.Faults = { failover: { every: 20_000, lose: [3, 3] } }
    const present = Redis.use((redis) => redis.send("XLEN", "input")).pipe(
      Effect.orElseSucceed(() => 0),
      Effect.repeat({ schedule: Schedule.spaced("10 millis"), until: (length) => Number(length) === 1 })
    )
    const twice = (afterwards: (client: Client) => void) => (client: Client) =>
      Effect.gen(function*() {
        yield* send("XADD", "s", "2-0", "field", "value")
        yield* announced(client)
        client.note("begin", { resource: "s", id: "s#1", entry: "1-0" })
        yield* commit("2-0")
        yield* remove("1-0")
        yield* present
        afterwards(client)
        return yield* Effect.forever(Effect.andThen(Effect.ignore(remove("1-0")), present))
      })

    it.effect("accepts the same handler removing the announcement again", () =>
      accepts(checker, twice(() => undefined), {}, faults))

    it.effect("finds a handler that starts after the loss and removes the announcement", () =>
      finds(
        checker,
        /^1-0 \(s\) is gone, but was only committed up to its beginning/,
        twice(({ note }) => note("begin", { resource: "s", id: "s#2", entry: "1-0" })),
        {},
        faults
      ))
  })

  it.effect("accepts an end stored only in an external system", () =>
    accepts(checker, (client) =>
      Effect.gen(function*() {
        yield* announced(client)
        client.note("kept", { resource: "s", message: "2-0" })
        yield* remove("1-0")
      })))

  it.effect("accepts an announcement that was finished or dead-lettered", () =>
    accepts(checker, (client) =>
      Effect.gen(function*() {
        yield* announced(client)
        yield* commit("2-0")
        yield* remove("1-0")
        yield* announce("3-0")
        yield* send("XADD", "dead", "*", "id", "3-0")
        yield* remove("3-0")
      })))
})

describe("noOrphans", () => {
  const checker = ownership.noOrphans(model, { own: 5000, go: 5000 }, 1000)
  const joined = ({ note }: Client, capacity: number) => note("joined", { consumer: "a", capacity })

  it.effect("finds an announcement that no consumer takes", () =>
    finds(
      checker,
      /^1-0 \(s\) has had no owner since .*, but c1 is not full/,
      (client) => Effect.andThen(announce("1-0"), Effect.sync(() => joined(client, 1)))
    ))

  it.effect("finds an announcement whose owner has died", () =>
    finds(checker, /^1-0 \(s\) has had no owner since 1[0-9]\./, (client) =>
      Effect.gen(function*() {
        joined(client, 2)
        yield* send("SET", "owner:s", "a", "PX", "10000")
        yield* announce("1-0")
      })))

  it.effect("accepts owned and finished streams, and consumers that are full or have left", () =>
    accepts(checker, (client) =>
      Effect.gen(function*() {
        yield* prepare
        joined(client, 2)
        yield* send("SET", "owner:s", "a", "PX", "30000")
        yield* announce("1-0")
        yield* read("a")
        yield* send("XACK", "input", "group", "1-0")
        yield* Effect.sleep("40 seconds")
        client.note("left")
        yield* announce("2-0")
      })))

  it.effect("does not expect a full consumer to take a data stream", () =>
    accepts(
      ownership.noOrphans({ ...model, streams: ["s", "t"] }, { own: 5000, go: 5000 }, 1000),
      (client) =>
        Effect.gen(function*() {
          joined(client, 1)
          yield* send("SET", "owner:t", "a")
          yield* announce("1-0")
        })
    ))
})

describe("noPingPong", () => {
  const checker = ownership.noPingPong({ ...model, streams: ["s", "t"] }, 1000, 10_000)
  const join = (name: string) => send("HSET", "members", name, "8|0")
  const handOver = (from: string, to: string) =>
    send("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "owner:s", to, from)
  const also: Partial<Simulation.LockModel> = {
    resources: ["s", "t"],
    released: (args) => args[0] === "EVAL" ? { resource: "s", id: `s#${args[5]}` } : undefined
  }
  /** `before` runs three seconds before the first hand-over, and `between` before the second one. */
  const moves = (between: Program, before: Program = Effect.void) => () =>
    Effect.gen(function*() {
      yield* join("a")
      yield* send("SET", "owner:s", "1")
      yield* Effect.sleep("5 seconds")
      yield* before
      yield* Effect.sleep("3 seconds")
      yield* handOver("1", "2")
      yield* between
      yield* handOver("2", "3")
    })
  const stays = Effect.sleep("20 seconds")
  const taken = send("SET", "owner:t", "1")

  it.effect("finds a data stream that is handed over again immediately, even if a share has changed", () =>
    Effect.gen(function*() {
      const what = /^s was handed over at 8\..*, and again, although no member joined or left$/
      yield* finds(checker, what, moves(Effect.void), also)
      yield* finds(checker, what, moves(taken), also)
      yield* finds(checker, what, moves(Effect.void, taken), also)
    }))

  it.effect("finds a data stream that is handed over again later even though nothing has changed", () =>
    Effect.gen(function*() {
      const what = /^s was handed over at 8\..*, and again later, although nothing had changed$/
      yield* finds(checker, what, moves(stays), also)
      yield* finds(checker, what, moves(stays, taken), also)
    }))

  it.effect("accepts a second hand-over after a member has joined, or later if a share has changed", () =>
    Effect.gen(function*() {
      yield* accepts(checker, moves(join("b")), also)
      yield* accepts(checker, moves(Effect.andThen(taken, stays)), also)
      yield* accepts(checker, moves(Effect.andThen(stays, taken)), also)
    }))
})

describe("liveGoConsumersAreLeftAlone", () => {
  const checker = ownership.liveGoConsumersAreLeftAlone(model)
  const stolen = (after: "1 second" | "3 seconds") => () =>
    Effect.gen(function*() {
      yield* announce("1-0")
      yield* send("SET", "entry:s:1-0", "stock-a", "PX", "2000")
      yield* Effect.sleep(after)
      yield* send("SET", "entry:s:1-0", "b", "PX", "2000")
    })

  it.effect("finds a Go consumer's lease that is taken before it expires", () =>
    finds(checker, /^c1 took entry:s:1-0 from stock-a, \d\.\d+ s before it expired/, stolen("1 second")))

  it.effect("accepts a takeover of an expired lease", () => accepts(checker, stolen("3 seconds")))

  it.effect("finds work under another consumer's lease", () =>
    finds(checker, /^s#1 works under entry:s:1-0, which belongs to stock-a/, ({ note }) =>
      Effect.gen(function*() {
        yield* announce("1-0")
        yield* send("SET", "entry:s:1-0", "stock-a", "PX", "2000")
        yield* Effect.sleep("10 millis")
        note("step", { resource: "s", id: "s#1", entry: "1-0" })
      })))
})

describe("goConsumersHaveTime", () => {
  const checker = ownership.goConsumersHaveTime(model)
  const passed = Effect.gen(function*() {
    yield* prepare
    yield* announce("1-0")
    yield* read("stock-a")
  })
  const lockedBy = (value: string) => send("SET", "entry:s:1-0", value, "NX", "PX", "2000")

  const untouched = (pause: "39 seconds" | "41 seconds") => () =>
    Effect.gen(function*() {
      yield* passed
      yield* Effect.sleep(pause)
      yield* lockedBy("ours")
    })

  it.effect("finds an entry that is taken before its first lock", () =>
    finds(checker, /^c1 took 1-0 \(s\) from stock-a, which had not locked it in 39\.\d+ s/, untouched("39 seconds")))

  it.effect("accepts taking an entry that no consumer has locked for a long time", () =>
    accepts(checker, untouched("41 seconds")))

  it.effect("accepts taking an entry whose lock has expired", () =>
    accepts(checker, () =>
      Effect.gen(function*() {
        yield* passed
        yield* lockedBy("stock-a")
        yield* Effect.sleep("3 seconds")
        yield* lockedBy("ours")
      })))

  it.effect("finds an entry that is taken before a second Go consumer locks it", () =>
    finds(checker, /^c1 took 1-0 \(s\) from stock-b, which had not locked it/, () =>
      Effect.gen(function*() {
        yield* passed
        yield* lockedBy("stock-a")
        yield* Effect.sleep("3 seconds")
        yield* send("XCLAIM", "input", "group", "stock-b", "2000", "1-0")
        yield* lockedBy("ours")
      })))

  it.effect("accepts taking an entry that a Go consumer claimed but did not lock within the duration of a lease", () =>
    accepts(checker, () =>
      Effect.gen(function*() {
        yield* passed
        yield* lockedBy("stock-a")
        yield* Effect.sleep("3 seconds")
        yield* send("XCLAIM", "input", "group", "stock-b", "2000", "1-0")
        yield* Effect.sleep("2 seconds")
        yield* lockedBy("ours")
      })))

  const unlocked = (pause: "150 millis" | "250 millis") => () =>
    Effect.gen(function*() {
      yield* passed
      yield* lockedBy("stock-a")
      yield* Effect.sleep("1 second")
      yield* send("DEL", "entry:s:1-0")
      yield* Effect.sleep(pause)
      yield* lockedBy("ours")
    })

  it.effect("finds an entry that is taken right after it was unlocked", () =>
    finds(checker, /^c1 took 1-0 \(s\) from stock-a, which unlocked it 0\.15\d s earlier/, unlocked("150 millis")))

  it.effect("accepts taking an entry that was unlocked and abandoned", () => accepts(checker, unlocked("250 millis")))
})

describe("deadLettersAreEarned", () => {
  const checker = fleet.deadLettersAreEarned(model, 2)
  const failed = ({ note }: Client) => note("failed", { resource: "s", entry: "1-0" })
  const poll = send("XLEN", "input")

  it.effect("finds a counted failure that never happened", () =>
    finds(checker, /^1-0 \(s\) has a failure count of 1, but only 0 happened/, () =>
      Effect.gen(function*() {
        yield* announce("1-0")
        yield* send("HSET", "failures", "1-0", "1")
        yield* poll
        yield* poll
      })))

  it.effect("finds failures that survive a commit", () =>
    finds(checker, /^1-0 \(s\) has a failure count of 1 after a commit of 2-0/, (client) =>
      Effect.gen(function*() {
        yield* announce("1-0")
        yield* poll
        failed(client)
        yield* send("HSET", "failures", "1-0", "1")
        yield* send("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "checkpoint:s", "2-0", "1-0")
      })))

  it.effect("finds a data stream that is dead-lettered too early", () =>
    finds(checker, /^1-0 \(s\) is a dead letter after only 1 of 2 failures/, (client) =>
      Effect.gen(function*() {
        yield* announce("1-0")
        failed(client)
        yield* send("XADD", "dead", "*", "id", "1-0", "stream", "s")
        yield* poll
        yield* poll
      })))

  it.effect("accepts counts of failed handlers and expired leases", () =>
    accepts(checker, (client) =>
      Effect.gen(function*() {
        yield* announce("1-0")
        failed(client)
        yield* send("SET", "owner:s", "1", "PX", "1000")
        yield* Effect.sleep("2 seconds")
        yield* send("HSET", "failures", "1-0", "2")
        yield* send("XADD", "dead", "*", "id", "1-0", "stream", "s")
        yield* poll
        yield* poll
      })))
})

describe("consumersAreReaped", () => {
  const checker = fleet.consumersAreReaped(model, 20_000)

  it.effect("finds a consumer whose name no process uses", () =>
    finds(checker, /^b is still a consumer/, ({ note }) =>
      Effect.gen(function*() {
        note("joined", { consumer: "a", capacity: 1 })
        yield* prepare
        yield* read("a")
        yield* announce("1-0")
        yield* read("b")
      })))

  const removedAfter = (millis: number) => ({ note }: Client) =>
    Effect.gen(function*() {
      note("joined", { consumer: "a", capacity: 1 })
      yield* prepare
      yield* send("XGROUP", "CREATECONSUMER", "input", "group", "b")
      yield* Effect.sleep(Duration.millis(60_000 + millis))
      yield* send("XGROUP", "DELCONSUMER", "input", "group", "b")
    })

  it.effect("finds a consumer that is removed too late after the faults", () =>
    finds(fleet.consumersAreReaped(model, 4000), /^b is still a consumer/, removedAfter(8000)))

  it.effect("accepts a consumer that is removed soon after the faults", () =>
    accepts(fleet.consumersAreReaped(model, 4000), removedAfter(2000)))

  it.effect("accepts live consumers", () =>
    accepts(checker, ({ note }) =>
      Effect.gen(function*() {
        note("joined", { consumer: "a", capacity: 1 })
        yield* prepare
        yield* announce("1-0")
        yield* read("a")
      })))
})
