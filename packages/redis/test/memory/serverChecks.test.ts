/** How a server check derives its findings from the server's replies. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fieldsOf, finding, keyspaceEvents, ofInfo, setting, textOf } from "../../src/internal/client/serverChecks.ts"

it.each([["6.0.16", "error"], ["5.0.7", "error"], ["6.2.0", "ok"], ["7.0.15", "ok"], ["10.0.0", "ok"]])(
  "Redis %s is %s",
  (version, status) => {
    const [found] = ofInfo(fieldsOf(`# Server\r\nredis_version:${version}\r\n`), false)
    assert.strictEqual(found!.status, status)
    assert.include(found!.message, version)
  }
)

it.each([["90", "warning"], ["89", "ok"]] as const)("%s of 100 connections are %s", (used, status) => {
  const found = ofInfo(fieldsOf(`connected_clients:${used}\r\nmaxclients:100\r\n`), false)
  assert.deepInclude(found.find(({ check }) => check === "connections"), { status })
})

describe("a server check", () => {
  const status = (check: string, info: string, isCluster = false, save?: string) => {
    const found = ofInfo(fieldsOf(info), isCluster, save).find((finding) => finding.check === check)!
    return [found.status, found.message, found.advice]
  }

  it("accepts a server of unknown version", () => {
    assert.deepStrictEqual(status("version", ""), ["ok", "Redis unknown", undefined])
    assert.deepStrictEqual(status("version", "redis_version:7"), ["ok", "Redis 7", undefined])
  })

  it("names a Redis fork together with the fork's own version", () => {
    const compatible = (fork: string) => ["ok", `${fork}, compatible with Redis 7.2.4`, undefined]
    const valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2"
    assert.deepStrictEqual(status("version", valkey), compatible("Valkey 9.1.2"))
    const redict = "redict_version:7.3.6\r\nredis_version:7.2.4"
    assert.deepStrictEqual(status("version", redict), compatible("Redict 7.3.6"))
  })

  it("refuses a Sentinel, and a Cluster node unless the layer is for a Cluster", () => {
    for (const field of ["redis_mode", "server_mode", "redict_mode"]) {
      assert.strictEqual(status("mode", `${field}:sentinel`)[0], "error")
      assert.strictEqual(status("mode", `${field}:sentinel`, true)[0], "error")
      assert.strictEqual(status("mode", `${field}:cluster`)[0], "error")
    }
    for (const node of ["redis_mode:cluster", "cluster_enabled:1", "redis_mode:standalone\ncluster_enabled:1"]) {
      assert.strictEqual(status("mode", node)[0], "error", node)
      assert.deepStrictEqual(status("mode", node, true), ["ok", "Redis Cluster", undefined])
    }
    for (const single of ["", "redis_mode:standalone", "cluster_enabled:0"]) {
      assert.deepStrictEqual(status("mode", single), ["ok", "single server", undefined])
      assert.deepStrictEqual(status("mode", single, true), ["ok", "single server", undefined])
    }
  })

  it("warns about a replica, which refuses writes", () => {
    assert.strictEqual(status("role", "role:slave")[0], "warning")
    assert.deepStrictEqual(status("role", "role:master"), ["ok", "primary", undefined])
    assert.strictEqual(status("role", "")[0], "ok")
  })

  it("warns about an eviction policy that may evict a lease", () => {
    assert.deepStrictEqual(status("eviction", "maxmemory_policy:noeviction"), ["ok", "noeviction", undefined])
    assert.strictEqual(status("eviction", "maxmemory_policy:allkeys-lru")[0], "warning")
    assert.strictEqual(status("eviction", "")[0], "info")
  })

  it("counts connections even if their limit is unknown", () => {
    assert.strictEqual(status("connections", "connected_clients:900\nmaxclients:1000")[0], "warning")
    assert.deepStrictEqual(status("connections", "connected_clients:9"), ["ok", "9 connections", undefined])
    assert.deepStrictEqual(status("connections", "connected_clients:8\nmaxclients:10"), [
      ...["ok", "8 of 10 connections"],
      undefined
    ])
  })

  it("says what a restart would lose", () => {
    assert.deepStrictEqual(status("persistence", "aof_enabled:1"), ["ok", "append-only file", undefined])
    assert.include(status("persistence", "")[1], "cannot be read")
    assert.include(status("persistence", "aof_enabled:0", false, "")[1], "nothing is saved")
    for (const save of ["3600 1", undefined]) {
      assert.include(status("persistence", "aof_enabled:0", false, save)[1], "newest writes")
    }
  })

  it("requires the E flag and either x or A for expired events", () => {
    const statuses = ["Ex", "AE", "xE", "Kx", "E", "x", "A", "", undefined].map((flags) => keyspaceEvents(flags).status)
    assert.deepStrictEqual(statuses, ["ok", "ok", "ok", ...Array.from({ length: 5 }, () => "warning"), "info"])
  })

  it("appends the advice to a finding's text", () => {
    assert.deepStrictEqual(finding("role", "ok", "primary"), { check: "role", status: "ok", message: "primary" })
    assert.notProperty(finding("role", "ok", "primary"), "advice")
    assert.strictEqual(textOf(finding("role", "ok", "primary")), "primary")
    assert.strictEqual(textOf(finding("role", "warning", "replica", "connect")), "replica: connect")
  })

  it.effect("reads a setting from replies in both protocols, or none if the server refuses", () =>
    Effect.gen(function*() {
      const replies = [["save", "3600 1"], { save: "3600 1" }, [], {}, ["save", 1]]
      const read = yield* Effect.forEach(replies, (reply) => setting((() => Effect.succeed(reply)) as never, "save"))
      assert.deepStrictEqual(read, ["3600 1", "3600 1", undefined, undefined, undefined])
      assert.isUndefined(yield* setting((() => Effect.fail("no permission")) as never, "save"))
    }))
})
