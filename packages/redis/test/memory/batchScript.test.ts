/**
 * `acquireAndRelease.lua` has inline fast paths for common operations. These tests run random operations on two fake
 * servers, one of which has a copy of the script without fast paths. Replies, messages and keys must be the same.
 */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Context, Duration, Effect, Layer, Queue, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assemble } from "../../../../scripts/lib/lua.mjs"
import { acquireAndRelease, operations } from "../../src/internal/mutex/scripts.generated.ts"

const batch = acquireAndRelease.text.lua
const file = fileURLToPath(new URL("../../src/internal/mutex/lua/acquireAndRelease.lua", import.meta.url))
const short = ["code == 'r' and ", "(code == 't' or code == 'w') and "] as const
const inFull = assemble(file, {
  acquireAndRelease: short.reduce((text, test) => text.replace(test, `${test}false and `), readFileSync(file, "utf8"))
})

const mutexes = ["m0", "m1"]
const layers = ["aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"]
const nobody = "dddddddddddd"
const ids = [...layers, ...layers, nobody, nobody].map((layer, i) => `${i}-${layer}:host-1`)
const keysOf = (mutex: string) => ["", ":contender", ":fence", ":reserved"].map((part) => `simba:{${mutex}}${part}`)

/** Gives a key the wrong type for 800 ms. Not used for reservations, because the fast paths do not check their type. */
const odd = "redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'x') return redis.call('PEXPIRE', KEYS[1], 800)"

const to = (most: number) => Schema.Literals(Array.from({ length: most + 1 }, (_, i) => i))
const Step = Schema.Struct({
  act: Schema.Literals([
    ...["t", "r", "r", "r", "w", "w", "a", "a", "c", "c", "q", "d", "i"] as const,
    ...["crowd", "ghost", "stock waits", "stock owns", "reserved", "fence", "forever", "odd", "later"] as const
  ]),
  mutex: Schema.Literals([0, 0, 0, 1]),
  id: to(ids.length - 1),
  /** Whether the step shares a call with the previous one, if both are operations. */
  together: Schema.Boolean,
  value: to(3),
  ticket: Schema.Literals(["", "", "", "1749999999.500001", "1750000020.500001"])
})
type Step = typeof Step.Type

const isOperation = ({ act }: Step) => act.length === 1

/** Groups consecutive operations that share a call. Each other step is a group. */
const grouped = (steps: ReadonlyArray<Step>) => {
  const groups: Array<Array<Step>> = []
  for (const step of steps) {
    const last = groups.at(-1)
    if (last !== undefined && step.together && isOperation(step) && isOperation(last[0]!)) last.push(step)
    else groups.push([step])
  }
  return groups
}

interface Held {
  readonly owner: string | null
  readonly token: string
}

/** An operation's arguments. `held` contains each mutex's owner and token. Most releases are by the owner. */
const argumentsOf = (
  { act, id, mutex, ticket, value }: Step,
  held: ReadonlyArray<Held>
): ReadonlyArray<string> => {
  const { owner, token } = held[mutex]!
  const requeued = `9-${layers[id % 3]}:host-1`
  // The names are those in the script's head. All values differ, which reveals swapped arguments.
  const operands: Readonly<Record<string, string>> = {
    id: "rqdc".includes(act) && value > 0 && owner ? owner : ids[id]!,
    mode: value === 0 ? "try" : "wait",
    lease: act === "d" ? "8000" : "9000",
    confirm: act === "d" ? "1400" : "1500",
    ticket,
    token: id === 0 ? "5" : token,
    requeue: act === "q" || value > 1 ? requeued : "",
    requeueLease: "7000",
    limit: String(value)
  }
  return operations[act as keyof typeof operations].map((name) => operands[name]!)
}

const callOf = (
  script: string,
  group: ReadonlyArray<Step>,
  skipDead: string,
  held: ReadonlyArray<Held>
) => {
  let codes = ""
  const keys: Array<string> = []
  group.forEach((step, i) => {
    const isSame = i > 0 && group[i - 1]!.mutex === step.mutex
    codes += isSame ? step.act.toUpperCase() : step.act
    if (!isSame) keys.push(...keysOf(mutexes[step.mutex]!))
  })
  return [
    "EVAL",
    script,
    String(keys.length),
    ...keys,
    `${codes} ${skipDead} 9000 1500`,
    ...group.flatMap((step) => argumentsOf(step, held))
  ]
}

const commandOf = (step: Step): ReadonlyArray<string> => {
  const [owner, queue, fence, reserved] = keysOf(mutexes[step.mutex]!) as [string, string, string, string]
  // Never a whole second: those are Simba contenders' tickets
  const ticket = `1750000000.${step.value}${step.id}5`
  switch (step.act) {
    case "crowd":
      return [
        "ZADD",
        queue,
        ...Array.from({ length: 15 }, (_, i) => [`${ticket}${i}`, `${20 * step.id + i}-${layers[0]}:h`]).flat()
      ]
    case "ghost":
      return ["ZADD", queue, ticket, ids[step.id]!]
    case "reserved":
      return ["SET", reserved, "1:1@stock", "PX", "1500"]
    case "stock waits":
      return ["ZADD", queue, step.value === 0 ? "1760000000" : "1700000000", "1:1@stock"]
    case "forever":
      return ["SET", owner, ids[step.id]!]
    case "odd":
      return ["EVAL", odd, "1", keysOf(mutexes[step.mutex]!)[step.value % 3]!]
    case "stock owns":
      return ["SET", owner, "1:1@stock", "NX", "PX", "4000"]
    default:
      return ["SET", fence, ["9007199254740000", "700", "12", "2750000000000005"][step.value]!]
  }
}

/** Starts a server. Returns functions that run a group of steps and that read the server's messages and keys. */
const open = Effect.fnUntraced(function*(script: string, skipDead: string) {
  const server = yield* Layer.build(Layer.fresh(FakeRedis.layer({ expiryDelay: [0, 0] })))
  const client = Context.merge(
    server,
    yield* Layer.build(Layer.fresh(FakeRedis.layerClient())).pipe(
      Effect.provide(server)
    )
  )
  const { keys, dump } = Context.get(server, FakeRedis.FakeRedis)
  const { send } = Context.get(client, Redis)
  const { subscribe } = Context.get(client, Subscriber)
  const channels = [...layers.map((layer) => `simba:inbox:${layer}`), ...mutexes.map((mutex) => `simba:{${mutex}}`)]
  const heard = yield* Effect.forEach(channels, (channel) => subscribe(channel))
  return {
    does: Effect.fnUntraced(function*(group: ReadonlyArray<Step>) {
      const read = (key: string) => Effect.orElseSucceed(send<string | null>("GET", key), () => null)
      const held = yield* Effect.forEach(mutexes, (mutex) =>
        Effect.all({
          owner: read(keysOf(mutex)[0]!),
          token: Effect.map(read(keysOf(mutex)[2]!), (fence) => fence ?? "")
        }))
      const [command, ...args] = isOperation(group[0]!)
        ? callOf(script, group, skipDead, held)
        : commandOf(group[0]!)
      return yield* Effect.catch(send<unknown>(command!, ...args), (error) => Effect.succeed(String(error.cause)))
    }),
    state: Effect.gen(function*() {
      const messages = yield* Effect.forEach(heard, (queue) => Queue.clear(queue))
      const held = yield* Effect.forEach(
        yield* keys,
        (info) => Effect.map(dump(info.key), (value) => ({ info, value }))
      )
      return { messages, held }
    })
  }
})

const same = (script: string, steps: ReadonlyArray<Step>, skipDead: string) =>
  Effect.gen(function*() {
    const one = yield* open(batch, skipDead)
    const other = yield* open(script, skipDead)
    for (const group of grouped(steps)) {
      if (group[0]!.act === "later") {
        yield* TestClock.adjust(Duration.millis([1, 900, 1500, 9000][group[0]!.value]!))
      } else assert.deepStrictEqual(yield* one.does(group), yield* other.does(group))
      assert.deepStrictEqual(yield* one.state, yield* other.state)
    }
  })

const script = Arbitrary.schema(Schema.Array(Step).check(Schema.isMinLength(20), Schema.isMaxLength(60)))

describe("acquireAndRelease.lua", () => {
  it("both fast paths are disabled in the script for comparison", () => {
    for (const test of short) assert.include(inFull, `${test}false and `)
  })

  /**
   * The number of random sequences per test. The tests are short and numerous, so that `pnpm mutants` can run as many
   * as its time budget allows.
   */
  const runs = 50

  const compares = (title: string, skipDead: string, portions: number) => {
    for (let seed = 1; seed <= portions; seed++) {
      it.effect.prop(
        `${title}: ${runs} random sequences, seed ${seed}`,
        [script],
        ([steps]) => same(inFull, steps, skipDead),
        { arbitrary: { runs, seed } }
      )
    }
  }

  compares("behaves the same with fast paths as without", "1", 16)
  compares("behaves the same if only dead effect-simba waiters are skipped", "own", 4)
  compares("behaves the same if dead waiters cannot be detected", "0", 2)
})
