/** Tests that each scenario's claims hold for several seeds, and that a seed always produces the same history. */
import { assert, describe, it } from "@effect/vitest"
import { scenarioOf, scenarios } from "../src/world/scenarios.ts"
import { World } from "../src/world/world.ts"

const played = async (id: string, seed: string, step: number) => {
  const world = await World.make(scenarioOf(id)!, seed)
  const { duration } = world.scenario
  for (let at = step; at < duration; at += step) world.advance(at)
  world.advance(duration)
  return world
}

const linesOf = ({ live }: World) => live.events.map((event) => `${event._tag} ${event.at}`)

describe("Scenarios", () => {
  for (const { claims, duration, id } of scenarios) {
    if (duration === Infinity) continue
    it(`the claims of the "${id}" scenario hold for five seeds`, async () => {
      for (const seed of ["1", "2", "3", "a seed", "99"]) {
        const { history } = await played(id, seed, 700)
        assert.isAbove(claims.length, 0)
        for (const claim of claims) assert.isTrue(claim.holds(history), `seed ${seed}: ${claim.text}`)
      }
    })
  }

  it("a seed produces the same history with frames of any length", async () => {
    for (const id of ["pause", "mixed-fleet"]) {
      const fine = await played(id, "7", 17)
      fine.parts()
      assert.deepStrictEqual(linesOf(fine), linesOf(await played(id, "7", 5000)), id)
    }
  })

  it("reading the processes' state does not change the history", async () => {
    const watched = await World.make(scenarioOf("pause")!, "3")
    for (let at = 50; at <= 15_000; at += 50) {
      watched.advance(at)
      watched.parts()
    }
    assert.deepStrictEqual(linesOf(watched), linesOf(await played("pause", "3", 15_000)))
  })

  it("replaying the reader's actions produces the same history", async () => {
    const first = await World.make(scenarioOf("free")!, "4")
    first.advance(500)
    first.perform({ verb: "acquire", target: "c1" })
    first.perform({ verb: "acquire", target: "c2" })
    first.advance(1234)
    first.perform({ verb: "slow", target: "c2", value: 200 })
    first.perform({ verb: "add" })
    first.advance(2500)
    first.perform({ verb: "contend", target: "c6" })
    first.perform({ verb: "cut", target: "c1" })
    first.advance(9000)
    first.perform({ verb: "heal", target: "c1" })
    first.perform({ verb: "failover" })
    first.perform({ verb: "skew", target: "c2", value: -60_000 })
    first.perform({ verb: "drop-subscribers" })
    first.advance(20_000)
    const repeated = await World.make(scenarioOf("free")!, "4", first.acts)
    repeated.advance(20_000)
    assert.deepStrictEqual(linesOf(repeated), linesOf(first))
    assert.strictEqual(repeated.parts().length, 6)
  })

  it("a world starts with two to twelve processes", async () => {
    const free = scenarioOf("free")!
    for (const [wanted, count] of [[2, 2], [12, 12], [1, 2], [99, 12]] as const) {
      const world = await World.make(free, "1", [], wanted)
      world.advance(500)
      assert.strictEqual(world.parts().length, count)
    }
  })

  it("a world shows the places of waiting processes, the time left, and which processes are paused or down", async () => {
    const world = await World.make(scenarioOf("free")!, "1")
    world.advance(400)
    for (const target of ["c1", "c2", "c3"]) {
      world.perform({ verb: "acquire", target })
      world.advance(world.now + 200)
    }
    const [first, second, third, fourth] = world.parts()
    assert.strictEqual(first!.activity, "leading")
    assert.isAbove(first!.timeLeft!, 3000)
    assert.deepStrictEqual([second!.place, third!.place, fourth!.place], [1, 2, undefined])
    world.perform({ verb: "pause", target: "c2" })
    world.perform({ verb: "crash", target: "c1" })
    assert.deepStrictEqual(world.parts().map(({ state }) => state), ["dead", "paused", "running", "running", "running"])
    assert.strictEqual(world.parts()[0]!.activity, "idle")
    world.advance(30_000)
    assert.strictEqual(world.parts()[2]!.activity, "leading")
  })
})
