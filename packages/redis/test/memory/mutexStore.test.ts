/** The production layers and scripts on the testkit's server in memory, under TestClock. */
import { RedisMutex } from "@effect-simba/redis"
import { MutexStoreSuite, TestRedis } from "@effect-simba/testkit"
import { Layer } from "effect"

MutexStoreSuite.suite("a fake Redis", RedisMutex.layerStore.pipe(Layer.provide(TestRedis.layer())), { live: false })
