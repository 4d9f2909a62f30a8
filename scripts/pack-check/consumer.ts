// A stranger's program: compiled against the packed packages with strict settings, then run on the system's Node.
import * as Core from "@effect-simba/core"
import * as RedisStores from "@effect-simba/redis"

console.log(`core: ${Object.keys(Core).length} modules, redis: ${Object.keys(RedisStores).length} modules`)
