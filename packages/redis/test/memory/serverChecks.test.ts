import { assert, it } from "@effect/vitest"
import { fieldsOf, ofInfo } from "../../src/internal/client/serverChecks.ts"

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
