/** The Lua VM of this process. Nothing else in the testkit takes real time. */
import { type LuaVm, sharedLua } from "@effect-simba/fake-redis/Engine"
import * as Effect from "effect/Effect"

export const loadVm: Effect.Effect<LuaVm> = Effect.promise(sharedLua)
