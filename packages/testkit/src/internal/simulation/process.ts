/**
 * A simulated process with its own clocks and scheduler, driven by the world's time. All of its tasks pass through a
 * single gate. The gate holds tasks back while the process is paused, and drops them once it is killed.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Scheduler from "effect/Scheduler"
import { Host } from "./host.ts"
import type { Prng, Range } from "./prng.ts"
import { free, type Pace, Processor } from "./processor.ts"
import { type Timer, type Timers, tolerance } from "./timers.ts"
import { clockOf, type World } from "./world.ts"

export interface ProcessOptions {
  readonly world: World
  readonly prng: Prng
  /** The offset of the wall clock from the world's time, in milliseconds. */
  readonly offset: number
  /** The rate at which both clocks run. At 1.01 they gain one percent. */
  readonly rate: number
  /** The processor's pace. Without a pace, tasks take no time, and data is handled as soon as it arrives. */
  readonly pace: Pace | undefined
}

/** The current rate of both clocks. */
interface Rate {
  readonly value: number
  /** The world time and the monotonic time when the rate last changed. */
  readonly since: number
  readonly monotonic: number
}

/** An arbitrary 13-digit time. */
const epochMillis = 1_750_000_000_000

export class Process implements Host {
  readonly clock: Clock.Clock
  readonly timers: Timers
  readonly random: () => number
  readonly processor: Processor | undefined
  readonly context: Context.Context<never>
  /** Functions that interrupt work under `Client.interruptible`, by the work's name. */
  readonly interruptible = new Map<string, () => void>()
  /** Called when a timer is due or data arrives. */
  onArrival: (() => void) | undefined
  state: "running" | "paused" | "dead" = "running"
  /** The world time when the process last resumed. */
  resumedAt = -Infinity
  /** The world time when its machine last woke up. */
  sleptUntil = -Infinity
  wasSuspended = false
  /** The number of timers that are set. */
  openTimers = 0
  /** The number of fibers that have not ended. */
  openFibers = 0
  /** The number of requests and calls to external systems so far. */
  acts = 0
  private readonly world: World
  private readonly prng: Prng
  private readonly computations: Prng
  private rate: Rate
  private wallOffset: number
  /** How long the monotonic clock has been stopped since the rate last changed. */
  private suspended = 0
  private suspendedAt: number | undefined
  private deferredTasks: Array<() => void> = []
  private deferredTimers: Array<() => void> = []
  private deferredMail: Array<() => void> = []

  constructor(options: ProcessOptions) {
    this.world = options.world
    this.prng = options.prng
    this.computations = options.prng.stream("computations")
    this.rate = { value: options.rate, since: this.world.now(), monotonic: 1000 }
    this.wallOffset = options.offset
    this.random = this.prng.stream("host").next
    this.timers = { now: this.monotonic, at: this.at }
    this.clock = clockOf(this.timers, this.wall)
    this.processor = options.pace === undefined
      ? undefined
      : new Processor(this.world, options.pace, this.prng.stream("order"), () => this.state === "running")
    const scheduler = this.processor?.scheduler ?? this.world.makeScheduler((task) => () => {
      if (this.state === "running") task()
      else if (this.state === "paused") this.deferredTasks.push(task)
    })
    const { next } = this.prng.stream("program")
    const random: Random.Random = {
      nextDoubleUnsafe: next,
      nextIntUnsafe: () => Math.floor(next() * 2 ** 53) - 2 ** 52
    }
    this.context = Context.make(Clock.Clock, this.clock).pipe(
      Context.add(Scheduler.Scheduler, scheduler),
      Context.add(Random.Random, random),
      Context.add(Metric.FiberRuntimeMetrics, {
        recordFiberStart: () => {
          this.openFibers++
        },
        recordFiberEnd: () => {
          this.openFibers--
        }
      }),
      Context.add(Host, this)
    ) as Context.Context<never>
  }

  private readonly monotonic = (): number =>
    ((this.suspendedAt ?? this.world.now()) - this.rate.since - this.suspended) * this.rate.value + this.rate.monotonic

  private readonly wall = (): number =>
    epochMillis + this.rate.since + this.wallOffset + (this.world.now() - this.rate.since) * this.rate.value

  private readonly at = (time: number, run: () => void): Timer => {
    let cancelled = false
    let timer: Timer | undefined
    const fire = () => {
      if (cancelled) return
      if (this.monotonic() < time - tolerance) return set()
      cancelled = true
      this.openTimers--
      run()
    }
    const set = () => {
      timer = this.world.at(this.world.now() + Math.max(0, time - this.monotonic()) / this.rate.value, () => {
        if (!cancelled && this.state === "running") this.onArrival?.()
        if (this.processor !== undefined) this.processor.ring(fire)
        else if (this.state === "running") fire()
        else if (this.state === "paused") this.deferredTimers.push(fire)
      })
    }
    this.openTimers++
    set()
    return {
      cancel: () => {
        if (cancelled) return
        cancelled = true
        this.openTimers--
        timer?.cancel()
      }
    }
  }

  readonly deliver = (run: () => void): void => {
    if (this.state === "running") this.onArrival?.()
    if (this.processor !== undefined) this.processor.deliver(run)
    else if (this.state === "running") run()
    else if (this.state === "paused") this.deferredMail.push(run)
  }

  /** Keeps the processor busy for this many milliseconds. */
  readonly compute = (millis: number | Range): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { processor } = this
      if (processor === undefined || processor.pace === free) return Effect.void
      const time = typeof millis === "number" ? millis : this.computations.between(millis)
      return Effect.callback((resume) => processor.compute(time, () => resume(Effect.void)))
    })

  /** From now on, tasks take no time. */
  calm(): void {
    if (this.processor !== undefined) this.processor.pace = free
  }

  stepWall(millis: number): void {
    this.wallOffset += millis
  }

  /** Changes the rate of both clocks. Timers that are already set may fire late. */
  setRate(value: number): void {
    const since = this.world.now()
    this.wallOffset = this.wall() - epochMillis - since
    this.rate = { value, since, monotonic: this.monotonic() }
    this.suspended = 0
  }

  /** Pauses the process. With `suspend`, its machine sleeps, and the monotonic clock stops too. */
  pause(suspend = false): void {
    if (this.state !== "running") return
    this.state = "paused"
    this.wasSuspended = suspend
    if (suspend) this.suspendedAt = this.world.now()
  }

  /** How long the timers have been stopped by the current suspension, in milliseconds. */
  get slept(): number {
    return this.suspendedAt === undefined ? 0 : this.world.now() - this.suspendedAt
  }

  /** Resumes the process. Timers or network data may come first, as in a real event loop. */
  resume(): void {
    if (this.state !== "paused") return
    this.state = "running"
    this.resumedAt = this.world.now()
    if (this.suspendedAt !== undefined) {
      this.suspended += this.world.now() - this.suspendedAt
      this.sleptUntil = this.resumedAt
      this.suspendedAt = undefined
    }
    if (this.processor !== undefined) return this.processor.resume()
    const [first, second] = this.prng.chance(0.5)
      ? [this.deferredTimers, this.deferredMail]
      : [this.deferredMail, this.deferredTimers]
    const deferred = [...this.deferredTasks, ...first, ...second]
    this.deferredTasks = []
    this.deferredTimers = []
    this.deferredMail = []
    for (const run of deferred) {
      this.world.enqueue(() => {
        if (this.state === "running") run()
        else if (this.state === "paused") this.deferredTasks.push(run)
      })
    }
  }

  /** Kills the process. No further tasks run, not even finalizers. Cut its links first. */
  kill(): void {
    this.state = "dead"
    this.deferredTasks = []
    this.deferredTimers = []
    this.deferredMail = []
  }
}

/** A client, and the process in which it currently runs. */
export interface ProcessSlot {
  readonly name: string
  readonly index: number
  generation: number
  process: Process
  fiber: Fiber.Fiber<void, unknown> | undefined
  /** When a fault last affected the process. */
  disturbedAt: number
  /** Until when a late message to the process may be in flight, or one of its commands may hang. */
  lateUntil: number
  /** When the process's wall clock was last stepped. */
  steppedAt: number
  /** The number of faults that currently affect the process. */
  faults: number
}
