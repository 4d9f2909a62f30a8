import { assert, describe, it } from "@effect/vitest"
import type { History } from "../streams/director.ts"
import * as plan from "../streams/plan.ts"
import { checks, summary } from "../streams/report.ts"

/** A show in which `cleo` had a stream, was killed after a third of it, and `dan` went on from the last commit. */
const show = (): History => {
  const history: Array<History[number]> = []
  let at = 0
  const say = (said: History[number][1]) => history.push([++at, said])
  for (const producer of plan.producers) {
    for (let i = 1; i <= plan.streams; i++) say({ _tag: "Announced", who: producer, stream: `${producer}-${i}` })
  }
  const streams = history.flatMap(([, said]) => said._tag === "Announced" ? [said.stream] : [])
  const process = (who: string, stream: string, token: number, from: number, to: number) => {
    say({ _tag: "Taken", who, stream, token })
    for (let n = from; n <= to; n++) say({ _tag: "Processed", who, stream, n, token })
  }
  const [first, ...others] = streams
  process(plan.killed, first!, 1, 1, plan.messages / 3)
  say({ _tag: "Killed", who: plan.killed })
  process("dan", first!, 2, plan.messages / 3, plan.messages)
  for (const stream of others) process("ada", stream, 1, 1, plan.messages)
  for (const stream of streams) say({ _tag: "Done", who: "ada", stream })
  return history
}

const streamsOf = (history: History) => history.flatMap(([, said]) => said._tag === "Announced" ? [said.stream] : [])

const failing = (history: History) => checks(history).filter(([, holds]) => !holds).map(([claim]) => claim)

describe("the show of data streams", () => {
  it("finds nothing where all went well", () => {
    assert.deepStrictEqual(failing(show()), [])
    const [first] = summary(show())
    assert.include(first!, `dan from`)
  })

  it("notices a message that was left out, and one that came too early", () => {
    const leftOut = show().filter(([, said]) => !(said._tag === "Processed" && said.n === 7))
    assert.deepStrictEqual(failing(leftOut), ["every message was processed, in the order of its stream"])
  })

  it("notices an owner that came too late", () => {
    const late = show().map(([at, said]) =>
      [at, said._tag === "Processed" && said.who === "dan" ? { ...said, token: 0 } : said] as const
    )
    assert.deepStrictEqual(failing(late), ["the token of each stream grew with every owner"])
  })

  it("notices a stream that nobody took over", () => {
    const left = show().filter(([, said]) => !(said._tag === "Taken" && said.who === "dan"))
    assert.deepStrictEqual(failing(left), [`what ${plan.killed} had was taken over`])
  })

  it("asks for no new owner of a stream that the killed consumer had given back", () => {
    const [first, second] = streamsOf(show())
    const history = show().flatMap(([at, said]): History =>
      said._tag === "Taken" && said.who === plan.killed && said.stream === first
        ? [
          [at, { _tag: "Taken", who: plan.killed, stream: second!, token: 0 }],
          [at, { _tag: "GivenBack", who: plan.killed, stream: second! }],
          [at, { _tag: "Taken", who: "ada", stream: second!, token: 1 }],
          [at, said]
        ]
        : said._tag === "Taken" && said.stream === second
        ? []
        : [[at, said]]
    )
    assert.deepStrictEqual(failing(history), [])
  })

  it("notices a stream that is not done", () => {
    assert.lengthOf(failing(show().slice(0, -1)), 1)
  })
})
