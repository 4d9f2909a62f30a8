/** Builds one client's history on data stream "s" from raw commands, and asserts what a checker reports. */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import { type Checker, Simulation } from "@effect-simba/testkit"
import type { StreamChecker } from "@effect-simba/testkit/streams"
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { Redis } from "effect/persistence/Redis"

export type Program = Effect.Effect<void, unknown, Redis | Subscriber | Scope.Scope>
export type Client = Simulation.Client

export const send = (...args: readonly [command: string, ...args: ReadonlyArray<string>]) =>
  Effect.asVoid(Redis.use((redis) => redis.send(...args)))

const valueOf = (fields: ReadonlyArray<string>, name: string) => {
  const at = fields.indexOf(name)
  return at === -1 ? undefined : fields[at + 1]
}

/** Leases have the keys `owner:<stream>` and `entry:<stream>:<entry>`. Their value is the consumer's name. */
export const model: StreamChecker.Model = {
  streams: ["s"],
  input: "input",
  group: "group",
  deadLetters: "dead",
  failures: "failures",
  members: "members",
  checkpoint: (stream) => `checkpoint:${stream}`,
  deadMessages: (stream) => `dead:${stream}`,
  entryLease: (stream, entry) => `entry:${stream}:${entry}`,
  announcement: (fields) => valueOf(fields, "stream"),
  deadId: (fields) => valueOf(fields, "id"),
  holder: (value) => value,
  isGoConsumer: (text) => text.startsWith("stock"),
  isMark: () => false
}

export const lock: Simulation.LockModel = {
  resources: ["s"],
  ownerKey: (stream) => `owner:${stream}`,
  identify: (stream, value) => `${stream}#${value}`
}

const said = (
  checker: Checker.Checker,
  program: (client: Client) => Program,
  also: Partial<Simulation.LockModel> = {},
  faults: Simulation.Faults = {}
) =>
  Effect.map(
    Simulation.run({
      seed: 1,
      clients: 1,
      faults,
      enabled: Object.keys(faults) as Array<Simulation.Result["enabled"][number]>,
      program: (client) => Effect.andThen(Effect.orDie(program(client)), Effect.never),
      lock: { ...lock, ...also },
      checkers: [checker],
      duration: "60 seconds",
      liveness: "10 seconds"
    }),
    ({ violations }) => violations.map(({ message }) => message).join()
  )

export const finds = (
  checker: Checker.Checker,
  what: RegExp,
  program: (client: Client) => Program,
  also?: Partial<Simulation.LockModel>,
  faults?: Simulation.Faults
) => Effect.map(said(checker, program, also, faults), (text) => assert.match(text, what))

export const accepts = (
  checker: Checker.Checker,
  program: (client: Client) => Program,
  also?: Partial<Simulation.LockModel>,
  faults?: Simulation.Faults
) => Effect.map(said(checker, program, also, faults), (text) => assert.strictEqual(text, ""))

export const message = (id: string) => send("XADD", "s", id, "n", id)
export const commit = (id: string) => send("SET", "checkpoint:s", id)
