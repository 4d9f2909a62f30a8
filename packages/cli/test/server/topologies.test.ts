/** `effect-simba` flags for Sentinel and Cluster. */
import type { RedisDoctor } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { RedisServer } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

const shout = ["--", "sh", "-c", "echo $SIMBA_TOKEN"]

/** The advice from doctor if the flag is missing. */
const adviceOf = Effect.fnUntraced(function*({ url }: { readonly url: string }) {
  const { code, output } = yield* commandLine.run(["doctor", "--json"], { url })
  assert.strictEqual(code, 1, output)
  const { findings }: RedisDoctor.Report = JSON.parse(output)
  return findings.map(({ advice }) => advice ?? "").join("\n")
})

it.live("--sentinel and --master find the primary", () =>
  Effect.scoped(Effect.gen(function*() {
    const { name, primary, replica, sentinels } = yield* RedisServer.sentinel({ downAfter: 30_000 })
    const flags = ["--sentinel", sentinels.map(({ port }) => `127.0.0.1:${port}`).join(","), "--master", name]
    const { code, errors, output } = yield* commandLine.run(["run", "m", ...flags, ...shout], {
      url: "redis://127.0.0.1:1"
    })
    assert.strictEqual(code, 0, errors)
    assert.strictEqual(yield* primary.send("GET", "simba:{m}:fence"), output.trim())
    assert.include(yield* adviceOf(replica), "name the Sentinels with --sentinel and --master")
    assert.include(yield* adviceOf(sentinels[0]!), "name it with --sentinel and --master")
  })))

it.live("--cluster finds each mutex on its node, and list commands search all nodes", () =>
  Effect.scoped(Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster()
    const url = nodes[0]!.url
    const names = ["a", "b", "c", "d", "e", "f"]
    for (const name of names) {
      // One command per slot, because a name may belong to any node
      const { code, errors } = yield* commandLine.run(["run", name, "--cluster", "--", "true"], { url })
      assert.strictEqual(code, 0, errors)
    }
    const held = yield* commandLine.start(["run", "held", "--cluster", "--", "sh", "-c", "echo; sleep 60"], { url })
    yield* Effect.callback<void>((resume) => void held.child.stdout!.once("data", () => resume(Effect.void)))
    const listed = yield* commandLine.json(["list", "--cluster"], { url })
    assert.deepStrictEqual(listed.map(({ name }: { name: string }) => name), ["held"])
    assert.deepStrictEqual(yield* commandLine.json(["streams", "list", "--cluster"], { url }), [])
    assert.include(yield* adviceOf({ url }), "use --cluster")
  })))

it.live("with --cluster too, variables override REDIS_URL, and --url overrides variables", () =>
  Effect.scoped(Effect.gen(function*() {
    const { nodes } = yield* RedisServer.cluster()
    for (const { send } of nodes) {
      yield* send("ACL", "SETUSER", "ann", "on", ">new", "+@all", "~*", "&*")
      yield* send("CONFIG", "SET", "requirepass", "secret")
    }
    const listed = (url: string, env: Record<string, string>, ...flags: ReadonlyArray<string>) =>
      commandLine.run(["list", "--cluster", ...flags], { url, env })
    const at = `@127.0.0.1:${nodes[0]!.port}`
    const overridden = yield* listed(`redis://ann:old${at}`, { REDIS_PASSWORD: "new" })
    assert.strictEqual(overridden.code, 0, overridden.errors)
    const passed = yield* listed(
      "redis://127.0.0.1:1",
      { REDIS_USERNAME: "ann", REDIS_PASSWORD: "new" },
      "--url",
      `redis://:secret${at}`
    )
    assert.strictEqual(passed.code, 0, passed.errors)
  })))

it.live("--cluster refuses --sentinel and --master", () =>
  Effect.gen(function*() {
    for (const flags of [["--master", "m"], ["--sentinel", "127.0.0.1:1"]]) {
      const { code, errors } = yield* commandLine.run(["list", "--cluster", ...flags], { url: "redis://127.0.0.1:1" })
      assert.strictEqual(code, 64)
      assert.include(errors, "a Cluster has no Sentinels")
    }
  }))
