/**
 * Plays a world in real time, slower or faster. Holds the view's state: the world, the visible span of time, and
 * whether it is playing.
 */
import * as address from "./address.ts"
import type { Hit } from "./draw/shapes.ts"
import type { History } from "./view/history.ts"
import type { Act } from "./world/acts.ts"
import type { Scenario } from "./world/scenarios.ts"
import { World } from "./world/world.ts"

export const speeds = [0.1, 0.2, 0.5, 1, 2, 5, 10, 25, 50, 100] as const

/** The milliseconds in a frame that the simulation may use. Drawing needs the rest. */
const budget = 9

/** The length of one step in virtual milliseconds, so short that a frame hardly exceeds its budget. */
const slice = 40

/** The position of the present in the picture while the picture follows it, as a fraction of the width. */
const present = 0.86

export class Player {
  world: World | undefined
  isPlaying = false
  speed = 1
  /** The visible span of the timeline, in virtual milliseconds. */
  from = 0
  to = 10_000
  isFollowing = true
  hover: Hit | undefined
  selected: string | undefined
  /** The intervals between the latest frames, in milliseconds. */
  readonly frames: Array<number> = []
  /** The page's own work on each of these frames, in milliseconds. */
  readonly work: Array<number> = []
  /** Whether this machine cannot keep up with the selected speed. */
  isLate = false
  onFrame: (() => void) | undefined
  private readonly listeners = new Set<() => void>()
  private lastFrame: number | undefined
  private target = 0
  private loads = 0
  private isRunning = false

  get history(): History | undefined {
    return this.world?.history
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  /** Notifies listeners of a change that is not drawn in each frame. */
  changed(): void {
    for (const listener of this.listeners) listener()
  }

  async load(
    scenario: Scenario,
    seed: string,
    acts: ReadonlyArray<Act>,
    isPlaying: boolean,
    clients?: number
  ): Promise<void> {
    const load = ++this.loads
    const world = await World.make(scenario, seed, acts, clients)
    if (load !== this.loads) return
    this.world = world
    this.target = 0
    this.speed = scenario.speed
    this.isPlaying = isPlaying
    this.isFollowing = true
    this.selected = undefined
    this.hover = undefined
    this.frames.length = 0
    this.show(scenario.window)
    // If the URL contains actions, show the history up to the last action
    const last = acts.at(-1)?.at ?? 0
    if (last > 0) {
      world.advance(last)
      this.target = last
      this.follow()
    }
    this.changed()
    this.run()
  }

  /** Removes the world, for example to show a simulator seed. */
  unload(): void {
    this.loads++
    this.world = undefined
    this.isPlaying = false
    this.changed()
  }

  toggle(): void {
    const { world } = this
    if (world === undefined) return
    if (world.isOver) return this.replay()
    this.isPlaying = !this.isPlaying
    this.target = world.now
    this.changed()
  }

  replay(): void {
    const { world } = this
    if (world !== undefined) void this.load(world.scenario, world.seed, [], true, world.clients)
  }

  /** Stops playing, and advances virtual time by one step. */
  step(millis = 50): void {
    const { world } = this
    if (world === undefined || world.isOver) return
    this.isPlaying = false
    this.advance(Math.min(world.now + millis, world.scenario.duration))
    this.changed()
  }

  /** Advances to the end of the scenario immediately. */
  finish(): void {
    const { world } = this
    if (world === undefined || world.scenario.duration === Infinity) return
    this.advance(world.scenario.duration)
    this.isPlaying = false
    this.changed()
  }

  setSpeed(speed: number): void {
    this.speed = speed
    if (this.world !== undefined) this.target = this.world.now
    this.changed()
  }

  perform(act: Omit<Act, "at">): void {
    const { world } = this
    if (world === undefined) return
    world.perform(act)
    history.replaceState(null, "", address.ofScenario(world.scenario.id, world.seed, world.acts, world.clients))
    this.changed()
  }

  private show(window: number): void {
    this.from = 0
    this.to = window
  }

  private follow(): void {
    if (!this.isFollowing || this.world === undefined) return
    const width = this.to - this.from
    const wanted = Math.max(0, this.world.now - width * present)
    // Do not scroll a scenario that fits on the screen
    if (this.world.scenario.duration <= this.to && this.from === 0) return
    this.from = wanted
    this.to = wanted + width
  }

  zoom(factor: number, around = (this.from + this.to) / 2): void {
    const width = Math.min(900_000, Math.max(40, (this.to - this.from) * factor))
    const part = (around - this.from) / (this.to - this.from)
    this.from = Math.max(-0.05 * width, around - width * part)
    this.to = this.from + width
    this.isFollowing = false
    this.changed()
  }

  pan(millis: number): void {
    const width = this.to - this.from
    this.from = Math.max(-0.05 * width, this.from + millis)
    this.to = this.from + width
    this.isFollowing = false
    this.changed()
  }

  /** Follows the present again. */
  catchUp(): void {
    this.isFollowing = true
    const { world } = this
    const window = world === undefined ? this.to - this.from : world.scenario.window
    this.show(window)
    this.follow()
    this.changed()
  }

  private advance(until: number): void {
    const { world } = this
    if (world === undefined) return
    world.advance(Math.round(until))
    this.target = world.now
    this.follow()
  }

  /** Advances virtual time as far as the frame's budget allows. */
  private play(passed: number): void {
    const { world } = this
    if (!this.isPlaying || world === undefined) return
    const end = world.scenario.duration
    this.target = Math.min(end, this.target + passed * this.speed)
    const start = performance.now()
    while (world.now < Math.round(this.target) && performance.now() - start < budget) {
      world.advance(Math.round(Math.min(this.target, world.now + slice)))
    }
    this.isLate = world.now < Math.round(this.target)
    // Do not catch up on lost time, because that would freeze the page
    if (this.isLate) this.target = world.now
    this.follow()
    if (world.isOver) {
      this.isPlaying = false
      this.changed()
    }
  }

  private run(): void {
    if (this.isRunning) return
    this.isRunning = true
    let changedAt = 0
    const frame = (at: number) => {
      const passed = this.lastFrame === undefined ? 0 : at - this.lastFrame
      this.lastFrame = at
      if (passed > 0) {
        this.frames.push(passed)
        if (this.frames.length > 600) this.frames.shift()
      }
      const start = performance.now()
      this.play(Math.min(passed, 100))
      this.onFrame?.()
      this.work.push(performance.now() - start)
      if (this.work.length > 600) this.work.shift()
      if (this.isPlaying && at - changedAt > 120) {
        changedAt = at
        this.changed()
      }
      requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  }
}
