/** The production layers and scripts on the testkit's server in memory, under TestClock. */
import { RedisMutex } from "@effect-simba/redis"
import { TestRedis } from "@effect-simba/testkit"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { Layer } from "effect"

MutexStoreSuite.suite("a fake Redis", RedisMutex.layerStore.pipe(Layer.provide(TestRedis.layer())), { live: false })
