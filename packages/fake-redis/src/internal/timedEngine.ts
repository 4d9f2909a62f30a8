/**
 * Runs an engine on the process's clock and timers. Looks them up on each use, because a test runner may replace them
 * with fake timers.
 */
import { Engine } from "./engine.ts"
import type { ExpiryDelay } from "./expiryDelay.ts"
import type { LuaVm } from "./lua/script.ts"

export interface TimedEngineOptions {
  readonly lua: LuaVm
  readonly random: () => number
  readonly expiryDelayMillis: ExpiryDelay
  readonly undoDepth: number
}

// Saved before a test runner replaces them: fake timers must not stall a long script
const { clearImmediate, setImmediate } = globalThis
const elapsedMillis = performance.now.bind(performance)

/** The maximum delay of a timer. */
const longestDelayMillis = 2 ** 31 - 1

export class TimedEngine {
  readonly engine: Engine
  private advanced = 0
  private last = 0
  private disarm = () => {}
  /**
   * The `setTimeout` that set the timer. If a test runner has replaced this function since, the timer may never fire.
   */
  private armedBy: typeof setTimeout | undefined
  private wakeAt = Infinity
  private step: ReturnType<typeof setImmediate> | undefined
  private isStepping = false
  private isRunning = false
  private isStopped = false

  constructor(options: TimedEngineOptions) {
    this.engine = new Engine({
      ...options,
      stopwatch: elapsedMillis,
      nowMicros: () => this.last = Math.max(this.micros(), this.last + 1)
    })
  }

  /** The server's wall clock, in microseconds since the epoch. */
  micros(): number {
    return Math.floor((Date.now() + this.advanced) * 1000)
  }

  advance(millis: number): void {
    this.advanced += millis
    this.run(() => this.engine.tick())
  }

  /**
   * Runs code that may change the state, then sets the timer for the next expiry, timeout or end of a pause. Nested
   * calls set the timer only once.
   */
  run<A>(change: () => A): A {
    if (this.isRunning) return change()
    this.isRunning = true
    try {
      return change()
    } finally {
      this.isRunning = false
      this.wakeUp()
    }
  }

  private wakeUp(): void {
    if (this.isStopped) return
    if (this.engine.isBusy && !this.isStepping) this.stepLater()
    const next = this.engine.nextWake() ?? Infinity
    if (next < this.wakeAt || this.wakeAt <= this.micros() || this.armedBy !== setTimeout) this.arm(next)
  }

  /** Ends the timers permanently, because they would keep the process alive. */
  stop(): void {
    this.isStopped = true
    this.disarm()
    clearImmediate(this.step)
  }

  /** Lets the process read sockets between two steps of a long script. */
  private stepLater(): void {
    this.isStepping = true
    this.step = setImmediate(() => {
      this.isStepping = false
      this.run(() => this.engine.step())
    })
  }

  private arm(next: number): void {
    this.disarm()
    this.wakeAt = next
    if (next === Infinity) return
    const delay = Math.ceil((next - this.micros() + 1) / 1000)
    const [set, clear] = [setTimeout, clearTimeout]
    const timer = set(() => {
      this.wakeAt = Infinity
      this.run(() => this.engine.tick())
    }, Math.min(Math.max(0, delay), longestDelayMillis))
    this.armedBy = set
    this.disarm = () => clear(timer)
  }
}
