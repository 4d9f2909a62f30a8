/** Runs a simulator seed in the page, and records its whole history with the violations. */
import { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import type { Address } from "../address.ts"
import { History } from "./history.ts"

export class SeedRun {
  readonly plan: string
  readonly seed: string
  readonly live: Simulation.Live
  readonly history: History
  readonly duration: number
  private read = 0

  private constructor(plan: string, seed: string, live: Simulation.Live, lock: Simulation.LockModel, duration: number) {
    this.plan = plan
    this.seed = seed
    this.live = live
    this.history = new History(lock)
    this.duration = duration
    for (const { name } of live.processes()) this.history.lane(name)
  }

  static async make({ clients, duration, enabled, plan = "", seed }: Address): Promise<SeedRun> {
    const { plans } = await import("../../../packages/redis/test/simulate/plans.ts")
    const make = plans[plan]
    if (make === undefined) {
      throw new RangeError(`There is no plan "${plan}". The plans are ${Object.keys(plans).join(", ")}.`)
    }
    // Do not parse the seed: the random choices depend on its text
    const options = make(seed, {
      ...clients === undefined ? {} : { clients },
      ...duration === undefined ? {} : { duration },
      ...enabled === undefined ? {} : { enabled: enabled as ReadonlyArray<keyof Simulation.Faults> }
    })
    const live = await Effect.runPromise(Simulation.begin(options))
    return new SeedRun(plan, seed, live, options.lock, live.result().duration)
  }

  /** Continues for `budget` real milliseconds. Returns whether the run is over. */
  advance(budget: number): boolean {
    const { history, live } = this
    const start = performance.now()
    while (!live.isOver() && performance.now() - start < budget) live.advance(live.now() + 25)
    for (; this.read < live.events.length; this.read++) history.add(live.events[this.read]!)
    history.parcels = live.parcels
    history.now = live.now()
    if (live.isOver() && history.violations.length === 0) history.violations.push(...live.result().violations)
    return live.isOver()
  }
}
