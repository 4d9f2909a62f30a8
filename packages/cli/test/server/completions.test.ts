/** Tests that completion scripts offer names from the server. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { RedisServer, until } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

const program = fileURLToPath(new URL("../../src/bin/effectSimba.ts", import.meta.url))

/** The completions that Bash offers for this line on Tab. */
const press = (script: string, line: string, url: string) => {
  const words = line.split(" ")
  const { stderr, stdout } = spawnSync("bash", ["-s"], {
    encoding: "utf8",
    env: { ...process.env, NODE_OPTIONS: "", REDIS_URL: url },
    input: [
      `effect-simba() { '${process.execPath}' --no-warnings '${program}' "$@"; }`,
      script,
      `COMP_LINE='${line}' COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}) COMP_CWORD=${words.length - 1}`,
      `_effect_simba_with_names effect-simba '${words.at(-1)}' '${words.at(-2)}'`,
      `printf '%s\\n' "\${COMPREPLY[@]}"`
    ].join("\n")
  })
  assert.strictEqual(stderr, "")
  return stdout.trim().split("\n")
}

layer(RedisServer.layer, { excludeTestServices: true })("effect-simba completions", (it) => {
  it.effect("are names from the server that can follow the words typed so far", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      for (const name of ["invoices", "orders"]) {
        yield* server.send("SET", `simba:{${name}}`, "1-4pn9f5hge6bp:4711@web-1", "PX", "600000")
      }
      yield* server.send("XGROUP", "CREATE", "shop-input", "shop-group", "0", "MKSTREAM")
      yield* server.send("XADD", "shop-input", "*", "lbs-input", `{"DataStreamName":"us","Info":{}}`)
      yield* server.send("XREADGROUP", "GROUP", "shop-group", "c", "STREAMS", "shop-input", ">")
      yield* server.send("XADD", "shop-input", "*", "lbs-input", `{"DataStreamName":"eu","Info":{}}`)
      // On a busy machine, the program may exceed its time limit and print no names.
      const follows = (words: string, ...names: ReadonlyArray<string>) =>
        until(
          `${names} after ${words}`,
          Effect.map(commandLine.run(["--names", ...words.split(" ")], server), ({ code, errors, output }) => {
            assert.deepStrictEqual([code, errors], [0, ""])
            return output === `${names.join("\n")}\n`
          })
        )
      yield* follows("inspect", "invoices", "orders")
      yield* follows("run --ttl 10s", "invoices", "orders")
      yield* follows("jobs pause", "invoices", "orders")
      yield* follows("streams inspect", "shop")
      yield* follows("streams rewind shop --force", "eu", "us")
      for (const words of ["doctor", "inspect invoices", "streams list"]) {
        assert.strictEqual((yield* commandLine.run(["--names", ...words.split(" ")], server)).output.trim(), "")
      }

      const { output: script } = yield* commandLine.run(["--completions", "bash"], server)
      yield* until(
        "Bash offers the name",
        Effect.sync(() => press(script, "effect-simba inspect in", server.url)[0] === "invoices")
      )
      assert.deepStrictEqual(press(script, "effect-simba streams rew", server.url), ["rewind"])
    }))

  it.effect("are empty if the server does not reply", () =>
    Effect.gen(function*() {
      const { code, errors, output } = yield* commandLine.run(["--names", "inspect"], { url: "redis://127.0.0.1:1" })
      assert.deepStrictEqual([code, errors, output], [0, "", ""])
    }))
})
