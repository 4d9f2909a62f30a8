/** The Lua VM of this process. Only loading it takes real time in the testkit. */
import { type LuaVm, sharedLua } from "@effect-simba/fake-redis/Engine"
import * as Effect from "effect/Effect"

export const loadVm: Effect.Effect<LuaVm> = Effect.promise(sharedLua)
