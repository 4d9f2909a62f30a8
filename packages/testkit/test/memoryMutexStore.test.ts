import * as MemoryMutexStore from "@effect-simba/core/MemoryMutexStore"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"

MutexStoreSuite.suite("in this process", MemoryMutexStore.layer, { live: false, runs: 300 })
