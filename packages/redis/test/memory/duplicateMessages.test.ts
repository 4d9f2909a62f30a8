/** How duplicate messages are removed. On a Cluster, every node delivers a copy of each message. */
import { assert, it } from "@effect/vitest"
import { Copies } from "../../src/internal/client/ioredis/duplicateMessages.ts"

const heard = (copies: Copies, sent: string) => [...sent].map((node) => copies.isFirst(node, "look", 3)).filter(Boolean)

it("a message from every node is delivered once, regardless of the order of its copies", () => {
  const copies = new Copies()
  for (const order of ["abc", "cba", "bac"]) assert.strictEqual(heard(copies, order).length, 1, order)
})

it("a text published twice is delivered twice, even if one node sends both copies first", () => {
  for (const order of ["abcabc", "aabbcc", "aabcbc"]) assert.strictEqual(heard(new Copies(), order).length, 2, order)
})

it("a copy that was missing before a gap does not suppress a message after the gap", () => {
  const copies = new Copies()
  assert.strictEqual(heard(copies, "aabb").length, 2)
  copies.clear()
  assert.strictEqual(heard(copies, "cab").length, 1)
})

it("every message from a single node is delivered", () => {
  const copies = new Copies()
  assert.deepStrictEqual([1, 2, 3].map(() => copies.isFirst("a", "look", 1)), [true, true, true])
})

it("texts that one node has not sent yet are forgotten once there are more than 1,024 of them", () => {
  const copies = new Copies()
  for (let i = 0; i < 1024; i++) assert.isTrue(copies.isFirst("a", `text ${i}`, 2))
  assert.isFalse(copies.isFirst("b", "text 0", 2))
  assert.isTrue(copies.isFirst("a", "one more", 2))
  assert.isTrue(copies.isFirst("a", "and more", 2))
  assert.isTrue(copies.isFirst("b", "text 1", 2))
})
