import * as MutexStore from "@effect-simba/core/MutexStore"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"

MutexStoreSuite.suite("in this process", MutexStore.layerMemory, { live: false, runs: 300 })
