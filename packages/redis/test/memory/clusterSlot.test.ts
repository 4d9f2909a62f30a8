/** Compares the slots of keys with examples from the Redis Cluster documentation. */
import { assert, it } from "@effect/vitest"
import { hashTag, slot } from "../../src/internal/client/clusterSlot.ts"

it.each([
  ["", 0],
  ["123456789", 12_739],
  ["somekey", 11_058],
  ["foo{hash_tag}", 2515],
  ["bar{hash_tag}", 2515],
  ["foo", 12_182],
  ["simba:{foo}:fence", 12_182]
])("the slot of \"%s\" is %i", (key, expected) => {
  assert.strictEqual(slot(key), expected)
})

it.each([
  ["foo", undefined],
  ["{a}", "a"],
  ["b{a}c{d}", "a"],
  ["{a", undefined],
  ["a}", undefined],
  ["}b{a}", "a"],
  ["{}{a}", undefined],
  ["foo{}{bar}", undefined],
  ["foo{{bar}}zap", "{bar"],
  ["{ü}", "ü"]
])("the tag of \"%s\" is %s", (key, expected) => {
  assert.strictEqual(hashTag(key), expected)
})
