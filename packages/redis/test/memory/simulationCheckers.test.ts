/** Tests the checkers in `simulate` with a hand-written history for each kind of violation. */
import { tokenStride } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { forcedReleasesAreHeard } from "../simulate/forcedReleases.ts"
import { measure } from "../simulate/freeWaits.ts"
import { turnsEnd } from "../simulate/localTurns.ts"
import { command, type Event, found, note, type View } from "../support/checkerHistory.ts"

const owner = (at: number, from: string | undefined, to: string | undefined, args: ReadonlyArray<string> = []): Event =>
  ({
    _tag: "Owner",
    at,
    resource: "m",
    from,
    to,
    since: 0,
    deadline: 0,
    token: 1,
    command: { client: "c1", role: "commands", args, reply: "OK", micros: 0 }
  }) as Event

describe("turns end", () => {
  const granted = (at: number, token: number, id = "a") => note(at, "granted", { id, token })
  const step = (at: number, kind = "step") => note(at, kind, { id: "a" })
  const turns = (events: ReadonlyArray<Event>, view?: Partial<View>, localTurn = 1000) =>
    found(turnsEnd({ localTurn }), events, view)
  const late = (age: number) => `a went to another fiber ${age} ms after its turn began`

  it("finds late hand-offs from the old holder's last note, allowing for a slow clock", () => {
    const after = (age: number, view?: Partial<View>) =>
      turns([granted(500, 100), step(500 + age), granted(9000, 101)], view)
    assert.strictEqual(after(1021), "")
    assert.strictEqual(after(1022), late(1022))
    assert.strictEqual(turns([granted(500, 100), step(600), step(1600, "waiting"), granted(9000, 101)]), "")
    // A turn spans all of its holders
    assert.strictEqual(
      turns([granted(500, 100), step(1400), granted(1401, 101), step(1600), granted(1601, 102)]),
      late(1100)
    )
    // The turn's clock stops while the machine sleeps
    assert.strictEqual(after(1022, { resumedAt: () => 500 }), "")
    assert.strictEqual(after(1022, { resumedAt: () => 499 }), late(1022))
  })

  it("ignores grants, other owners, and the same holder", () => {
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 100 + tokenStride)]), "")
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 99 + tokenStride)]), late(5000))
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 100)]), "")
    assert.strictEqual(turns([granted(0, 100), step(5000), granted(5001, 101, "b")]), "")
  })

  it("finds every hand-off if local turns are disabled", () => {
    const disabled = "a went to another fiber with token 101, although local turns are disabled"
    assert.strictEqual(turns([granted(0, 100), granted(0, 101)], {}, 0), disabled)
    assert.strictEqual(turns([granted(0, 100), granted(0, 100 + tokenStride)], {}, 0), "")
  })
})

describe("forced releases are noticed", () => {
  const lock = {
    forced: (args: ReadonlyArray<string>) => args[0] === "force" ? { resource: "m", id: args[1]! } : undefined,
    channel: (_: string, id: string) => `channel:${id}`
  } as unknown as View["lock"]
  const forced = owner(1000, "a", undefined, ["force", "a"])
  const believes = (at: number, kind = "ensured") => note(at, kind, { id: "a" })
  const noticed = (events: ReadonlyArray<Event>, view: Partial<View> = {}) =>
    found(forcedReleasesAreHeard({ within: 100, recovery: 50 }), events, { lock, ...view })
  const late = (millis = 101) => `a relies on its lease ${millis} ms after its forced release`

  it("finds clients that rely on the lease for too long", () => {
    for (const kind of ["ensured", "begin", "step"]) {
      assert.strictEqual(noticed([forced, believes(1100, kind)]), "")
      assert.strictEqual(noticed([forced, believes(1101, kind)]), late())
    }
    assert.strictEqual(noticed([forced, believes(2000, "end")]), "")
    assert.strictEqual(noticed([forced, note(2000, "step", { id: "b" })]), "")
    assert.strictEqual(noticed([owner(1000, "a", undefined, ["DEL"]), believes(2000)]), "")
    assert.strictEqual(noticed([owner(1000, "a", undefined, ["force", "b"]), believes(2000)]), "")
    assert.strictEqual(noticed([forced, owner(1200, undefined, "a"), believes(2000)]), "")
    assert.strictEqual(noticed([forced, owner(1200, undefined, "b"), believes(1101)]), late())
    assert.strictEqual(noticed([forced, believes(1110)], { lateness: () => 10 }), "")
    assert.strictEqual(noticed([forced, believes(1111)], { lateness: () => 10 }), late(111))
  })

  it("starts at the first note about the grant if that is later", () => {
    const granted = (at: number) => note(at, "granted", { id: "a" })
    assert.strictEqual(noticed([forced, granted(1050), believes(1150)]), "")
    assert.strictEqual(noticed([forced, granted(1050), believes(1151)]), late())
    assert.strictEqual(noticed([granted(0), forced, granted(1050), believes(1101)]), late())
  })

  it("excuses clients whose renewal failed or that may have missed the message", () => {
    const subscribe = (channel: string) => command(1010, ["SUBSCRIBE", channel])
    assert.strictEqual(noticed([forced, subscribe("channel:a"), believes(1101)]), "")
    assert.strictEqual(noticed([forced, subscribe("channel:b"), believes(1101)]), late())
    assert.strictEqual(noticed([forced, believes(1101)], { subscribers: () => 0 }), "")
    for (const what of ["disturbedAt", "resumedAt"] as const) {
      assert.strictEqual(noticed([forced, believes(1101)], { [what]: () => 950 }), "")
      assert.strictEqual(noticed([forced, believes(1101)], { [what]: () => 949 }), late())
    }
    const failed = (at: number, client = "c1", text = "1 lease(s) could not be renewed"): Event => ({
      _tag: "Log",
      at,
      client,
      level: "WARN",
      text
    })
    assert.strictEqual(noticed([forced, failed(1000), believes(1101)]), "")
    for (const log of [failed(999), failed(1000, "c2"), failed(1000, "c1", "any")]) {
      assert.strictEqual(noticed([forced, log, believes(1101)]), late())
    }
  })
})

describe("waits for a free mutex", () => {
  const waiting = (at: number, wait = 1, resource = "m") => note(at, "waiting", { wait, resource })
  const waited = (at: number, wait = 1) => note(at, "waited", { wait })

  it("start with the wait or the release, whichever is later, and end with a grant or the wait", () => {
    const longest = (events: ReadonlyArray<Event>) => {
      const { found, onEvent } = measure()
      return [Math.max(0, ...events.map(onEvent)), found.longest]
    }
    const held = [owner(0, undefined, "a"), waiting(100), owner(300, "a", undefined)]
    assert.deepStrictEqual(longest([...held, owner(350, undefined, "b")]), [50, 50])
    assert.deepStrictEqual(longest([...held, waited(340), owner(900, undefined, "b")]), [40, 40])
    assert.deepStrictEqual(longest([...held, waiting(400, 2), waited(410, 1), owner(420, undefined, "b")]), [110, 110])
    assert.deepStrictEqual(longest([owner(0, undefined, "a"), waiting(100), waited(900)]), [0, 0])
    assert.deepStrictEqual(longest([...held, waited(900, 2), owner(301, undefined, "b")]), [1, 1])
    assert.deepStrictEqual(longest([waiting(0, 1, "n"), ...held, owner(350, undefined, "b")]), [50, 50])
  })

  it("counts hand-offs to another owner", () => {
    const { found, onEvent } = measure()
    for (const to of ["a", "b", "b", undefined, "b", "a"]) onEvent(owner(0, undefined, to))
    assert.strictEqual(found.handOvers, 2)
  })
})
