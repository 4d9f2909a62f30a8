/** How Redis failures become errors: which errors are retryable, and what their messages say. */
import { assert, describe, it } from "@effect/vitest"
import { DriverError } from "../../src/internal/client/driverError.ts"
import * as errors from "../../src/internal/client/errors.ts"
import * as causes from "../../src/internal/client/ioredis/causes.ts"

const reply = (message: string) => Object.assign(new Error(message), { name: "ReplyError" })

const shown = (cause: unknown, keys?: ReadonlyArray<string>) => {
  const error = errors.backendError("acquire", cause, keys)
  return { isRetryable: error.isRetryable, message: (error.cause as Error).message }
}

describe("a Redis failure", () => {
  it("is retryable unless the server refuses permanently", () => {
    const transient = ["LOADING x", "BUSY x", "READONLY x", "MISCONF x", "ERR in a script: OOM x", "NOSCRIPT x"]
    for (const text of transient) assert.isTrue(shown(reply(text)).isRetryable, text)
    for (const text of ["WRONGTYPE x", "ERR unknown command", "NOPERM x", "BUSYGROUP x", "MOVED 1 a:1"]) {
      assert.isFalse(shown(reply(text)).isRetryable, text)
    }
    // Any other error comes from a broken connection
    assert.isTrue(shown(new Error("WRONGTYPE x")).isRetryable)
    assert.isTrue(shown("closed").isRetryable === true)
    for (const isRetryable of [true, false]) {
      assert.strictEqual(shown(new DriverError("x", isRetryable)).isRetryable, isRetryable)
    }
  })

  it("says what to do and contains the server's error code", () => {
    assert.deepStrictEqual(shown(reply("OOM command not allowed")), {
      isRetryable: true,
      message: "the server is full and refuses writes (OOM): raise its maxmemory, or delete keys"
    })
    assert.include(shown(reply("READONLY You can't write")).message, "(READONLY): connect to its primary")
    assert.deepStrictEqual(shown(reply("NOPERM no 'zadd'")), {
      isRetryable: false,
      message: "NOPERM no 'zadd': grant it with ACL SETUSER, as in the operations guide"
    })
    assert.include(shown(reply("MOVED 1 a:1")).message, "use IoRedis.layerCluster")
    assert.strictEqual(shown(reply("ERR it MOVED 1")).message, "ERR it MOVED 1")
    assert.strictEqual(shown(new Error("MOVED 1 a:1")).message, "MOVED 1 a:1")
    assert.strictEqual(shown(new Error("OOM")).message, "OOM")
  })

  it("names the request's keys if one has the wrong type, unless there are more than four", () => {
    const keysIn = (keys?: ReadonlyArray<string>) =>
      shown(reply("WRONGTYPE x"), keys).message.replace(/ holds a value .*/, "")
    assert.strictEqual(keysIn(), "a key")
    assert.strictEqual(keysIn([]), "a key")
    assert.strictEqual(keysIn(["a"]), "the key \"a\"")
    assert.strictEqual(keysIn(["a", "b"]), "one of the keys \"a\", \"b\"")
    assert.strictEqual(keysIn(["a", "b", "c", "d"]), "one of the keys \"a\", \"b\", \"c\", \"d\"")
    assert.strictEqual(keysIn(["a", "b", "c", "d", "e"]), "a key")
  })

  it("is an outage if the server has too many connections, whether its reply or the disconnection is noticed first", () => {
    const target = { address: "a:1", tls: false }
    const [replied, closed] = [reply("ERR max number of clients reached"), new Error("Connection is closed.")].map((
      cause
    ) => causes.ofConnecting(cause, target))
    assert.include(closed!.message, "raise its maxclients")
    assert.deepStrictEqual([replied!.message, replied!.isRetryable], [closed!.message, true])
  })

  it("is a mistake if the port cannot exist", () => {
    const cause = Object.assign(new RangeError("Port should be >= 0 and < 65536"), { code: "ERR_SOCKET_BAD_PORT" })
    const { isRetryable, message } = causes.ofConnecting(cause, { address: "a:NaN", tls: false })
    assert.deepStrictEqual([isRetryable, message], [false, "the port of a:NaN is invalid: correct it"])
  })

  it("is described by its code if none of a host's addresses can be reached, because Node's error then has no message", () => {
    const cause = Object.assign(new AggregateError([]), { code: "ETIMEDOUT" })
    assert.strictEqual(causes.ofConnecting(cause, { address: "a:1", tls: false }).message, "ETIMEDOUT (a:1)")
  })

  it("is classified by the same codes if it is an item in a script's reply", () => {
    const wrongType = errors.fromReply("acquire", "WRONGTYPE x", ["a"])
    assert.deepStrictEqual([wrongType.isRetryable, (wrongType.cause as Error).message.slice(0, 11)], [
      false,
      "the key \"a\""
    ])
    const other = errors.fromReply("acquire", "LOADING x")
    assert.deepStrictEqual([other.isRetryable, (other.cause as Error).message], [true, "LOADING x"])
  })

  it("keeps the command's name, but not its arguments, because they may be secret", () => {
    const cause = Object.assign(new Error("x"), { command: { name: "set", args: ["secret"] } })
    assert.deepStrictEqual(errors.withoutArguments(cause), cause)
    assert.deepStrictEqual(cause.command as unknown, { name: "set" })
    const plain = new Error("x")
    assert.strictEqual(errors.withoutArguments(plain), plain)
    assert.notProperty(plain, "command")
    assert.strictEqual(errors.withoutArguments("text"), "text")
    const text = { command: { name: "set", args: ["x"] } }
    assert.strictEqual(errors.withoutArguments(text), text)
    assert.deepStrictEqual(text.command.args, ["x"])
    for (const none of [undefined, null]) assert.strictEqual(errors.withoutArguments(none), none)
  })

  it("is recognized as an error reply by its name, and as a forgotten script by its code", () => {
    assert.isTrue(errors.isForgotten(reply("NOSCRIPT No matching script")))
    assert.isFalse(errors.isForgotten(reply("ERR x")))
    assert.isTrue(errors.isReply(reply("x")))
    assert.isFalse(errors.isReply(new Error("x")))
    assert.isFalse(errors.isReply({ name: "ReplyError" }))
  })

  it("has no stack trace if the connection caused it, because the cause is outside the program", () => {
    assert.strictEqual(new DriverError("no reply", true).stack, "DriverError: no reply")
  })
})
