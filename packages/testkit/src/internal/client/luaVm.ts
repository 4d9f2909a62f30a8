/** This process's Lua VM. Loading it is the only step in the testkit that takes real time. */
import { type LuaVm, sharedLua } from "@effect-simba/fake-redis/Engine"
import * as Effect from "effect/Effect"

export const loadVm: Effect.Effect<LuaVm> = Effect.promise(sharedLua)
