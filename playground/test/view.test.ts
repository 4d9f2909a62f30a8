/** Tests what the page derives from events and actions: lanes, marks, log lines, shapes and URLs. */
import { assert, describe, it } from "@effect/vitest"
import * as address from "../src/address.ts"
import { dark, light } from "../src/draw/shapes.ts"
import { stage } from "../src/draw/stage.ts"
import { svg } from "../src/draw/svg.ts"
import { timeline } from "../src/draw/timeline.ts"
import { History } from "../src/view/history.ts"
import { lines } from "../src/view/wire.ts"
import * as acts from "../src/world/acts.ts"
import { scenarioOf } from "../src/world/scenarios.ts"
import { World } from "../src/world/world.ts"

const lock = { resources: ["m"], ownerKey: (resource: string) => `key:${resource}` }

const note = (at: number, client: string, kind: string, fields: Record<string, string | number> = {}, generation = 1) =>
  ({ _tag: "Note", at, client, generation, kind, fields }) as const

const fault = (at: number, what: string, target: string, text = "") =>
  ({ _tag: "Fault", at, fault: what, target, text }) as const

const command = (client: string, ...args: ReadonlyArray<string>) =>
  ({ client, role: "commands", args, reply: "OK", micros: 0 }) as const

const owner = (at: number, from: string | undefined, to: string | undefined, by?: ReturnType<typeof command>) =>
  ({ _tag: "Owner", at, resource: "m", from, since: 0, deadline: 0, to, token: 1, command: by }) as const

const spansOf = (history: History, name: string) =>
  history.lane(name).spans.map(({ end, from, kind, to }) => [kind, from, to, end])

describe("History", () => {
  it("a wait ends when work begins, and work ends with a release", () => {
    const history = new History(lock)
    history.add(note(1, "c1", "waiting", { resource: "m", wait: 1 }))
    assert.strictEqual(history.lane("c1").activity, "waiting")
    history.add(note(2, "c1", "waited", { resource: "m", wait: 1, served: 1 }))
    history.add(note(2, "c1", "granted", { resource: "m", id: "x", token: 7 }))
    history.add(note(2, "c1", "begin", { resource: "m", id: "x" }))
    assert.strictEqual(history.lane("c1").activity, "leading")
    history.add(note(9, "c1", "end", { resource: "m", id: "x" }))
    assert.deepStrictEqual(spansOf(history, "c1"), [["waiting", 1, 2, "served"], ["leading", 2, 9, "released"]])
    assert.strictEqual(history.lane("c1").activity, "idle")
    assert.strictEqual(history.ordinals.get(7), 1)
  })

  it("a crash ends all spans of a process, and its next generation starts idle", () => {
    const history = new History(lock)
    history.add(note(1, "c1", "granted", { resource: "m", id: "x", token: 7 }))
    history.add(note(1, "c1", "waiting", { resource: "other", wait: 2 }))
    history.add(fault(5, "kill", "c1"))
    assert.deepStrictEqual(spansOf(history, "c1"), [
      ["leading", 1, 5, "killed"],
      ["waiting", 1, 5, "killed"],
      ["down", 5, undefined, undefined]
    ])
    history.add(note(8, "c1", "waiting", { resource: "m", wait: 1 }, 2))
    assert.deepStrictEqual(spansOf(history, "c1")[2], ["down", 5, 8, undefined])
  })

  it("overlapping spans of one process are stacked", () => {
    const history = new History(lock)
    history.add(note(1, "c1", "waiting", { resource: "m", wait: 1 }))
    history.add(note(2, "c1", "waiting", { resource: "m", wait: 2 }))
    assert.deepStrictEqual(history.lane("c1").spans.map(({ row }) => row), [0, 1])
    assert.strictEqual(history.lane("c1").rows, 2)
  })

  it("work under a lost lease is shown as lost, even if it ends normally", () => {
    const history = new History(lock)
    history.add(note(1, "c1", "granted", { resource: "m", id: "x", token: 7 }))
    history.add(note(1, "c1", "begin", { resource: "m", id: "x" }))
    history.add(note(4, "c1", "end", { resource: "m", id: "x" }))
    history.add(note(4, "c1", "lost", { token: 7, reason: "Expired" }))
    assert.strictEqual(history.lane("c1").spans[0]!.end, "lost")
    assert.strictEqual(history.lane("c1").activity, "lost")
  })

  it("a lease without protected work ends when its ownership ends on the server", () => {
    const history = new History(lock)
    history.add(note(1, "c1", "granted", { resource: "m", id: "x", token: 7 }))
    history.add(owner(1, undefined, "x", command("c1", "SET", "key:m", "x")))
    history.add(owner(6, "x", undefined, command("c1", "DEL", "key:m")))
    assert.deepStrictEqual(spansOf(history, "c1"), [["leading", 1, 6, "released"]])
    assert.deepStrictEqual(history.tenures.map(({ client, end, to }) => [client, end, to]), [["c1", "released", 6]])
  })

  it("a command that names the owner counts as a renewal, unless it ends the lease", () => {
    const history = new History(lock)
    const renewal = command("c1", "EVALSHA", "1", "1", "key:m", "x")
    history.add(note(1, "c1", "granted", { resource: "m", id: "x", token: 7 }))
    history.add(owner(1, undefined, "x", command("c1", "SET", "key:m", "x")))
    history.add({ _tag: "Command", at: 2000, command: renewal })
    assert.deepStrictEqual(history.lane("c1").marks.map(({ kind }) => kind), ["renewal"])
    history.add({ _tag: "Command", at: 3000, command: renewal })
    history.add(owner(3000, "x", undefined, renewal))
    assert.deepStrictEqual(history.lane("c1").marks.map(({ at }) => at), [2000])
  })

  it("cuts and pauses last until they end or the simulator removes all faults", () => {
    const history = new History(lock)
    history.add(fault(1, "partition", "c1", "requests"))
    history.add(fault(1, "partition", "c1", "replies"))
    history.add(fault(4, "partition", "c1", "requests over"))
    history.add(fault(5, "pause", "c2"))
    history.add({ _tag: "Phase", at: 9, phase: "liveness" })
    assert.deepStrictEqual(spansOf(history, "c1"), [["cut", 1, 4, undefined]])
    assert.deepStrictEqual(spansOf(history, "c2"), [["paused", 5, 9, undefined]])
  })
})

describe("The picture", () => {
  const world = async () => {
    const world = await World.make(scenarioOf("pause")!, "1")
    world.advance(15_000)
    return world
  }
  const view = { from: 0, to: 15_000, width: 900, hasLedger: true, streams: 0 }

  it("describes the shapes under the pointer, including commands and replies", async () => {
    const { history } = await world()
    const hits = timeline(history, view).shapes.flatMap(({ hit }) => hit === undefined ? [] : [hit])
    const titles = new Set(hits.map(({ title }) => title))
    for (const title of ["c1 leads", "c2 waits", "c1 is paused", "A request from c2", "A reply to c2"]) {
      assert.isTrue(titles.has(title), title)
    }
    assert.isTrue(hits.some(({ lines }) => lines.some((line) => line.includes("EVALSHA") && line.includes("{ledger}"))))
  })

  it("draws only what is in view", async () => {
    const { history } = await world()
    const all = timeline(history, view).shapes.length
    assert.isBelow(timeline(history, { ...view, from: 6000, to: 7000 }).shapes.length, all / 2)
  })

  it("is exported as an SVG file in either palette's colours", async () => {
    const { history } = await world()
    history.violations.push({ at: 9000, checker: "writes are fenced", message: "a <stale> write" })
    const { plan, shapes } = timeline(history, view)
    for (const palette of [light, dark]) {
      const file = svg({ width: 900, height: plan.height, title: "A \"pause\"", shapes }, palette)
      assert.isTrue(file.startsWith("<svg ") && file.endsWith("</svg>\n"))
      assert.include(file, palette.lead)
      assert.include(file, "writes are fenced")
      assert.include(file, "A &quot;pause&quot;")
      assert.notMatch(file, /NaN|undefined/)
    }
  })
})

describe("The stage", () => {
  it("shows places, tokens, the owner, crashes, pauses, cuts and clock steps", async () => {
    const world = await World.make(scenarioOf("free")!, "1")
    world.advance(400)
    const view = { width: 340, height: 340, linger: 100, lease: 5000, streams: 0, selected: "c2" }
    const shapesOf = () => stage(world.history, world.parts(), view)
    const textsOf = () => shapesOf().flatMap((shape) => shape.kind === "text" ? [shape.text] : [])
    assert.include(textsOf(), "free")
    for (const target of ["c1", "c2", "c3"]) {
      world.perform({ verb: "acquire", target })
      world.advance(world.now + 200)
    }
    world.perform({ verb: "skew", target: "c3", value: -60_000 })
    assert.includeMembers(textsOf(), ["#1", "1", "2", "c1", "c5", "−60 s"])
    const before = shapesOf()
    world.perform({ verb: "crash", target: "c1" })
    world.perform({ verb: "pause", target: "c2" })
    world.perform({ verb: "cut", target: "c3" })
    const after = shapesOf()
    assert.notInclude(textsOf(), "#1")
    const lines = after.flatMap(({ hit }) => hit === undefined ? [] : [`${hit.title}: ${hit.lines.join(", ")}`])
    assert.isTrue(lines.some((line) => line.startsWith("c1: has crashed")))
    assert.isTrue(lines.some((line) => line.startsWith("c2: is paused")))
    assert.isTrue(lines.some((line) => line.startsWith("c3: ") && line.includes("its link is cut")))
    assert.isTrue(before.some(({ kind }) => kind === "arc"))
    assert.isFalse(after.some(({ kind }) => kind === "arc"))
  })
})

describe("The log", () => {
  it("is filtered by kind, process and text, and shows the newest line first", async () => {
    const world = await World.make(scenarioOf("fair-hand-off")!, "1")
    world.advance(9000)
    const { history } = world
    const messages = lines(history, "messages", "c3", "")
    assert.isAbove(messages.length, 0)
    assert.isTrue(messages.every(({ kind, who }) => kind === "message" && who === "c3"))
    const changes = lines(history, "changes", "", "token")
    assert.isTrue(changes.every(({ reply, text }) => `${text} ${reply}`.includes("token")))
    const everything = lines(history, "all", "", "")
    assert.isTrue(everything.every(({ at }, index) => index === 0 || at <= everything[index - 1]!.at))
    assert.isTrue(lines(history, "commands", "", "evalsha").every(({ kind }) => kind === "command"))
  })
})

describe("The URL", () => {
  it("restores actions, and skips malformed ones", () => {
    const done: ReadonlyArray<acts.Act> = [
      { at: 10, verb: "add" },
      { at: 12, verb: "skew", target: "c1", value: -500 },
      { at: 500, verb: "failover" },
      { at: 900, verb: "pause", target: "c2" }
    ]
    const read = address.read(address.ofScenario("crash", "a seed & more", done))
    assert.strictEqual(read.scenario, "crash")
    assert.strictEqual(read.seed, "a seed & more")
    assert.deepStrictEqual(read.acts.map(({ at, target, value, verb }) => [at, verb, target, value]), [
      [10, "add", undefined, undefined],
      [12, "skew", "c1", -500],
      [500, "failover", undefined, undefined],
      [900, "pause", "c2", undefined]
    ])
    assert.deepStrictEqual(acts.parse("x~1.explode.c1~-3.pause.c1~7.crash.c9"), [
      { at: 7, verb: "crash", target: "c9", value: undefined }
    ])
  })

  it("opens a seed with the options to which the simulator shrank its history", () => {
    const read = address.read("#plan=careless&seed=28&clients=2&duration=9000&enabled=pause%2CrequestDelay")
    assert.deepInclude(read, {
      plan: "careless",
      seed: "28",
      clients: 2,
      duration: 9000,
      enabled: ["pause", "requestDelay"]
    })
    assert.deepInclude(address.read(""), { plan: undefined, seed: "1", isEmbedded: false })
  })
})
