/** What all handles share: `pipe`, and an inspection of their distinguishing fields. */
import * as Duration from "effect/Duration"
import { BaseProto, type Inspectable } from "effect/Inspectable"
import { type Pipeable, Prototype } from "effect/Pipeable"

/** A base class, created by a call that bundlers can drop. Subclasses define `toJSON`. */
export const Handle: new() => Pipeable & Inspectable = /* @__PURE__ */ (() => {
  class Base {}
  Object.assign(Base.prototype, BaseProto, Prototype)
  return Base as new() => Pipeable & Inspectable
})()

/** The time left, as `toJSON` shows it. */
export const timeLeft = (millis: number): string => Duration.format(Duration.millis(Math.max(0, Math.floor(millis))))

/** Creates a handle with these members. */
export const handle = <A extends Pipeable & Inspectable>(
  members: Omit<A, keyof Pipeable | Exclude<keyof Inspectable, "toJSON">>
): A => Object.assign(new Handle() as A, members)
