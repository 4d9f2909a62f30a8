/** Defines the scenarios. Each has a story, a fleet, a script of actions, and claims. */
import type { History } from "../view/history.ts"
import type { Act } from "./acts.ts"
import * as claims from "./claims.ts"
import type { Order } from "./desk.ts"
import type { Habits } from "./mutexFleet.ts"

export interface Claim {
  readonly text: string
  /** Returns whether the claim holds, or undefined while it is undecided. */
  readonly holds: (history: History) => boolean | undefined
}

export interface Scenario {
  readonly id: string
  readonly title: string
  /** One or two sentences that describe the scenario. */
  readonly story: string
  readonly fleet:
    | { readonly _tag: "Mutex"; readonly habits: Habits }
    | { readonly _tag: "Streams"; readonly first: (client: { readonly index: number }) => Order | undefined }
  readonly clients: number
  readonly script: ReadonlyArray<Act>
  /** The length of the scenario, in virtual milliseconds. */
  readonly duration: number
  readonly speed: number
  /** The initial span of the timeline, in milliseconds. */
  readonly window: number
  readonly claims: ReadonlyArray<Claim>
}

const acquire = (hold?: number, rest?: number): Order => ({ _tag: "Acquire", hold, rest })

const indexed = (first: (index: number) => Order | undefined): Habits => ({ first: ({ index }) => first(index) })

/** Actions that make each process acquire the mutex `gap` milliseconds after the previous one. */
const inTurn = (count: number, gap: number, hold?: number, from = 200): ReadonlyArray<Act> =>
  Array.from({ length: count }, (_, index) => ({
    at: from + index * gap,
    verb: "acquire",
    target: `c${index + 1}`,
    value: hold
  }))

const quiet = indexed(() => undefined)

export const scenarios: ReadonlyArray<Scenario> = [
  {
    id: "fair-hand-off",
    title: "Fair hand-off",
    story:
      "Processes lead in the order in which they queued. Each release hands the mutex to the first waiter, with a larger token.",
    fleet: { _tag: "Mutex", habits: quiet },
    clients: 4,
    script: [
      { at: 200, verb: "acquire", target: "c1", value: 1800 },
      { at: 600, verb: "acquire", target: "c3", value: 1800 },
      { at: 1000, verb: "acquire", target: "c2", value: 1800 },
      { at: 1400, verb: "acquire", target: "c4", value: 1800 }
    ],
    duration: 9000,
    speed: 1,
    window: 9000,
    claims: [
      claims.leadersInOrder(["c1", "c3", "c2", "c4"]),
      claims.tokensGrow,
      claims.handsOverWithin(60)
    ]
  },
  {
    id: "slow-link",
    title: "Grant by message",
    story:
      "A release grants the mutex in its message. Over a slow link, c2 starts its work one trip after the release, not three.",
    fleet: { _tag: "Mutex", habits: quiet },
    clients: 2,
    script: [
      { at: 200, verb: "acquire", target: "c1", value: 3000 },
      { at: 500, verb: "acquire", target: "c2", value: 1800 },
      { at: 900, verb: "slow", target: "c2", value: 250 }
    ],
    duration: 6000,
    speed: 0.6,
    window: 6000,
    claims: [claims.leadersInOrder(["c1", "c2"]), claims.beginsByMessage("c2", 350)]
  },
  {
    id: "crash",
    title: "Take-over",
    story:
      "A crashed leader does not release its mutex. Its lease expires on the server, and the first waiter takes over.",
    fleet: { _tag: "Mutex", habits: quiet },
    clients: 3,
    script: [
      ...inTurn(3, 300),
      { at: 4500, verb: "crash", target: "c1" },
      { at: 12_000, verb: "start", target: "c1" },
      { at: 12_500, verb: "release", target: "c2" }
    ],
    duration: 14_500,
    speed: 1.5,
    window: 14_500,
    claims: [claims.leadersInOrder(["c1", "c2", "c3"]), claims.neverBeforeExpiry, claims.takesOverWithin(300)]
  },
  {
    id: "pause",
    title: "Pause and token",
    story:
      "c1 freezes during its work and wakes up after its lease has expired. The ledger has accepted a larger token in the meantime and refuses the late write.",
    fleet: {
      _tag: "Mutex",
      habits: { first: ({ index }) => index === 0 ? acquire() : undefined, writes: 700 }
    },
    clients: 2,
    script: [
      { at: 900, verb: "acquire", target: "c2" },
      { at: 3100, verb: "pause", target: "c1" },
      { at: 12_000, verb: "resume", target: "c1" }
    ],
    duration: 15_000,
    speed: 1.5,
    window: 15_000,
    claims: [
      claims.leadersInOrder(["c1", "c2"]),
      claims.refusedWrites,
      claims.lostBy("c1")
    ]
  },
  {
    id: "partition",
    title: "Partition",
    story:
      "Cut off from Redis, the leader steps down by its own clock before the server grants the mutex to another process.",
    fleet: { _tag: "Mutex", habits: quiet },
    clients: 3,
    script: [
      ...inTurn(2, 400),
      { at: 3000, verb: "cut", target: "c1" },
      { at: 11_500, verb: "heal", target: "c1" },
      { at: 12_000, verb: "acquire", target: "c1" },
      { at: 13_000, verb: "release", target: "c2" }
    ],
    duration: 15_000,
    speed: 1.5,
    window: 15_000,
    claims: [claims.lostBy("c1"), claims.neverTwoAtWork, claims.leadersInOrder(["c1", "c2", "c1"])]
  },
  {
    id: "herd",
    title: "No herd",
    story: "Ten processes wait when the leader crashes. They poll one after another, so the server sees no stampede.",
    fleet: { _tag: "Mutex", habits: quiet },
    clients: 11,
    script: [
      ...inTurn(1, 0),
      ...Array.from({ length: 10 }, (_, index): Act => ({
        at: 500 + index * 90,
        verb: "acquire",
        target: `c${index + 2}`,
        value: 700
      })),
      { at: 2000, verb: "crash", target: "c1" }
    ],
    duration: 16_000,
    speed: 1.5,
    window: 16_000,
    claims: [
      claims.leadersInOrder(Array.from({ length: 11 }, (_, index) => `c${index + 1}`)),
      claims.noHerd(8)
    ]
  },
  {
    id: "mixed-fleet",
    title: "Mixed fleet",
    story:
      "Two processes run the original Simba and share the mutex with two that run effect-simba. No two lead at the same time.",
    fleet: {
      _tag: "Mutex",
      habits: {
        simba: ["c3", "c4"],
        first: ({ index }) => index < 2 ? acquire(900, 700) : acquire(900, 1100)
      }
    },
    clients: 4,
    script: [],
    duration: 20_000,
    speed: 2,
    window: 20_000,
    claims: [claims.neverTwoAtWork, claims.everybodyLed]
  },
  {
    id: "streams",
    title: "Data streams",
    story:
      "Consumers share thirty data streams. One crashes, and the others take over its streams. Another one joins, and the streams are balanced again.",
    fleet: { _tag: "Streams", first: ({ index }) => index < 4 ? acquire() : undefined },
    clients: 4,
    script: [
      { at: 9000, verb: "crash", target: "c2" },
      { at: 16_000, verb: "add" },
      { at: 16_200, verb: "acquire", target: "c5" }
    ],
    duration: 45_000,
    speed: 4,
    window: 45_000,
    claims: [
      claims.allStreamsOwned(30, 8000, 8900),
      claims.allStreamsOwned(30, 15_000, 15_900),
      claims.balancedAtEnd(30, ["c1", "c3", "c4", "c5"], 44_000)
    ]
  },
  {
    id: "free",
    title: "Your own",
    story:
      "Control a fleet yourself: let processes contend, crash and pause, cut or slow their links, and skew their clocks.",
    fleet: { _tag: "Mutex", habits: { writes: 900 } },
    clients: 5,
    script: [],
    duration: Infinity,
    speed: 1,
    window: 20_000,
    claims: []
  }
]

export const scenarioOf = (id: string): Scenario | undefined => scenarios.find((scenario) => scenario.id === id)
