/** The base of leases, contenders and other handles: makes them pipeable, and prints their main fields. */
import * as Duration from "effect/Duration"
import { BaseProto, type Inspectable } from "effect/Inspectable"
import { type Pipeable, Prototype } from "effect/Pipeable"

/** The base class, created in a call that bundlers can drop. Subclasses define `toJSON`. */
export const Handle: new() => Pipeable & Inspectable = /* @__PURE__ */ (() => {
  class Base {}
  Object.assign(Base.prototype, BaseProto, Prototype)
  return Base as new() => Pipeable & Inspectable
})()

/** Formats the time left for `toJSON`. */
export const timeLeft = (millis: number): string => Duration.format(Duration.millis(Math.max(0, Math.floor(millis))))

/** Creates a handle with these members. */
export const handle = <A extends Pipeable & Inspectable>(
  members: Omit<A, keyof Pipeable | Exclude<keyof Inspectable, "toJSON">>
): A => Object.assign(new Handle() as A, members)
