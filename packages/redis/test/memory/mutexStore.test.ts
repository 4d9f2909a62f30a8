/** The production layers and scripts on the testkit's server in memory, under TestClock. */
import { RedisMutexStore } from "@effect-simba/redis"
import { MutexStoreSuite, TestRedis } from "@effect-simba/testkit"
import { Layer } from "effect"

MutexStoreSuite.suite("a fake Redis", RedisMutexStore.layer.pipe(Layer.provide(TestRedis.layer())), { live: false })
