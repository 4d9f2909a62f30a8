/** Exit codes and messages for an unavailable server. They must not suggest a busy mutex. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AddressInfo } from "node:net"
import { createServer, type Server } from "node:tls"
import { certificate, privateKey } from "../../../redis/test/support/certificate.ts"
import { quiet, RedisServer } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

it.live("the error for an untrusted certificate names NODE_EXTRA_CA_CERTS", () =>
  Effect.gen(function*() {
    const server = yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer({ cert: certificate, key: privateKey })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => server.close())
    )
    const { port } = server.address() as AddressInfo
    const { code, errors } = yield* commandLine.run(["list"], { url: `rediss://app:secret@127.0.0.1:${port}` })
    assert.include(errors, "set NODE_EXTRA_CA_CERTS to the file with its CA's certificate")
    assert.notInclude(errors, "secret")
    assert.strictEqual(code, 69)
  }).pipe(Effect.scoped))

it.live("`run --timeout` exits with the code for an outage if the server is out of memory", () =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start({ args: ["--maxmemory", "1", "--maxmemory-policy", "noeviction"] })
    const run = yield* commandLine.run(["run", "full", "--timeout", "2s", "--", "true"], server)
    assert.strictEqual(run.code, 69, run.errors)
    assert.include(run.errors, "OOM")
  }).pipe(Effect.provide(quiet)))
