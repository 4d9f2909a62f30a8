/**
 * The processor of a simulated process, with an event loop like Node's. A turn first handles the timers that are due,
 * then the data that has arrived, then the runnable tasks. Each of these takes time, during which other processes, the
 * network and the server continue.
 */
import type * as Scheduler from "effect/Scheduler"
import type { Prng, Range } from "./prng.ts"
import { Restless, type World } from "./world.ts"

/** The range of processors in a simulation. Each process draws its own processor. */
export interface ProcessorFault {
  /** How many milliseconds a task takes. Each process draws one of these. */
  readonly task: ReadonlyArray<number>
  /** The probability, in a quarter of the processes, that a task takes `by` milliseconds longer. */
  readonly stall: { readonly chance: number; readonly by: Range }
  /** The mean number of operations after which a fiber yields (at most 2048). Each process draws one of these. */
  readonly yieldAfter: ReadonlyArray<number>
}

/** The speed and order in which a process runs its tasks. */
export interface Pace {
  /** Draws the duration of the next task, in milliseconds. */
  readonly cost: () => number
  /** Whether runnable fibers with the same priority run in random order instead of first come, first served. */
  readonly shuffles: boolean
  /** Draws the number of operations after which a fiber yields. */
  readonly budget: () => number
  /** Whether fibers run in the same order and yield at the same points as in Effect. */
  readonly isOrdered: boolean
}

/** A processor on which tasks take no time, for explorations and for the phase after the faults. */
export const free: Pace = { cost: () => 0, shuffles: false, budget: () => 2048, isOrdered: true }

export const drawPace = ({ stall, task, yieldAfter }: ProcessorFault, prng: Prng): Pace => {
  const each = prng.pick(task)
  const chance = prng.chance(0.25) ? stall.chance : 0
  const mean = prng.pick(yieldAfter)
  const stalls = prng.stream("stalls")
  const yields = prng.stream("yields")
  const shuffles = prng.chance(0.5)
  return {
    cost: () => each + (stalls.chance(chance) ? stalls.between(stall.by) : 0),
    shuffles,
    isOrdered: !shuffles && mean >= 2048,
    // The minimum is two, because in Effect a fiber runs at least one operation before it yields. With a budget of one,
    // a fiber that is interrupted before it starts would yield, and its next task would start it
    budget: () => mean >= 2048 ? 2048 : Math.min(2048, Math.max(2, 1 + Math.floor(-Math.log(1 - yields.next()) * mean)))
  }
}

type Task = () => void

/** The maximum number of consecutive tasks without idle time. Only a busy loop exceeds this. */
const restless = 300_000

const shuffled = <A>(items: Array<A>, prng: Prng): Array<A> => {
  for (let i = items.length - 1; i > 0; i--) {
    const j = prng.int(i + 1)
    ;[items[i], items[j]] = [items[j]!, items[i]!]
  }
  return items
}

/** A dispatcher's tasks by priority, lowest first. Each fiber has its own dispatcher. */
class Tasks {
  private buckets: Array<{ readonly priority: number; readonly tasks: Array<Task> }> = []
  isScheduled = false

  add(task: Task, priority: number): void {
    const { buckets } = this
    let i = buckets.length
    while (i > 0 && buckets[i - 1]!.priority > priority) i--
    if (i > 0 && buckets[i - 1]!.priority === priority) buckets[i - 1]!.tasks.push(task)
    else buckets.splice(i, 0, { priority, tasks: [task] })
  }

  takeAll(order?: Prng): ReadonlyArray<Task> {
    const { buckets } = this
    this.buckets = []
    return buckets.flatMap(({ tasks }) => order === undefined ? tasks : shuffled(tasks, order))
  }
}

export class Processor {
  pace: Pace
  /**
   * Called after each turn with its duration in milliseconds. `processes` treats a long turn as a fault in the process.
   */
  onTurn: ((millis: number) => void) | undefined
  /** Returns by how many milliseconds to delay a runnable fiber while others continue. Set only in explorations. */
  setAside: (() => number) | undefined
  readonly scheduler: Scheduler.Scheduler
  private readonly world: World
  private readonly order: Prng
  private readonly isRunning: () => boolean
  private timers: Array<Task> = []
  private data: Array<Task> = []
  private dispatchers: Array<Tasks> = []
  /** The remaining tasks of the current phase, in reverse order. */
  private rest: Array<Task | Tasks> = []
  /** The world times at which the current turn and the previous turn started. */
  private turnAt = -Infinity
  private turnBeforeAt = -Infinity
  private phase: "timers" | "data" | "tasks" = "tasks"
  /** Computations started by the current task, with their continuations. */
  private computations: Array<{ readonly millis: number; readonly then: Task }> = []
  private busyUntil = -Infinity
  private isActive = false
  private isResting = true
  private tasksSinceRest = 0
  private budget = 2048
  private lastCount = Infinity
  private lastFiber: unknown

  constructor(world: World, pace: Pace, order: Prng, isRunning: () => boolean) {
    this.world = world
    this.pace = pace
    this.order = order
    this.isRunning = isRunning
    this.scheduler = {
      executionMode: "async",
      shouldYield: (fiber) => {
        const count = fiber.currentOpCount
        if (fiber !== this.lastFiber || count <= this.lastCount) this.budget = this.pace.budget()
        this.lastFiber = fiber
        this.lastCount = count
        return count >= this.budget
      },
      makeDispatcher: () => {
        const tasks = new Tasks()
        return {
          scheduleTask: (task, priority) => {
            tasks.add(task, priority)
            if (tasks.isScheduled) return
            tasks.isScheduled = true
            this.dispatchers.push(tasks)
            this.wake()
          },
          flush: () => {
            for (let all = tasks.takeAll(); all.length > 0; all = tasks.takeAll()) for (const task of all) task()
          }
        }
      }
    }
  }

  /** Queues a due timer's callback. */
  readonly ring = (task: Task): void => {
    this.timers.push(task)
    this.wake()
  }

  /** Queues the handler for data that has arrived. */
  readonly deliver = (task: Task): void => {
    this.data.push(task)
    this.wake()
  }

  /** Keeps the processor busy for this long. Nothing else runs before the continuation does. */
  compute(millis: number, then: Task): void {
    if (this.pace === free) return then()
    this.computations.push({ millis, then })
    this.wake()
  }

  resume(): void {
    if (!this.isResting) this.world.enqueue(this.run)
  }

  /**
   * An upper bound on the event-loop lag in milliseconds: the time since the previous turn started. Checkers excuse
   * work that outlives its lease by at most this much.
   */
  get lateness(): number {
    return this.turnAt === -Infinity ? 0 : this.world.now() - this.turnBeforeAt
  }

  private wake(): void {
    if (!this.isResting) return
    this.isResting = false
    this.world.enqueue(this.run)
  }

  private readonly run = (): void => {
    if (this.isActive || !this.isRunning() || this.world.now() < this.busyUntil) return
    this.isActive = true
    try {
      while (this.isRunning()) {
        const computation = this.computations.shift()
        if (computation !== undefined) {
          this.rest.push(computation.then)
          return this.occupy(computation.millis)
        }
        const task = this.take()
        if (task === undefined) return
        if (++this.tasksSinceRest > restless) throw new Restless(this.world.now())
        task()
        const cost = this.pace.cost()
        if (cost > 0) return this.occupy(cost)
      }
    } finally {
      this.isActive = false
    }
  }

  private occupy(millis: number): void {
    this.busyUntil = this.world.now() + millis
    this.world.at(this.busyUntil, this.run)
  }

  private take(): Task | undefined {
    for (;;) {
      const item = this.rest.pop()
      if (item instanceof Tasks) {
        const later = this.setAside?.() ?? 0
        if (later > 0) {
          this.world.at(this.world.now() + later, () => {
            this.dispatchers.push(item)
            this.wake()
          })
          continue
        }
        item.isScheduled = false
        this.rest.push(...[...item.takeAll(this.pace.shuffles ? this.order : undefined)].reverse())
      } else if (item !== undefined) return item
      else if (this.phase === "timers") {
        this.phase = "data"
        this.rest = this.data.reverse()
        this.data = []
      } else if (this.phase === "data") {
        this.phase = "tasks"
        this.rest = this.pace.shuffles ? shuffled(this.dispatchers, this.order) : this.dispatchers.reverse()
        this.dispatchers = []
      } else if (!this.beginTurn()) return undefined
    }
  }

  /** Starts another turn. Returns whether there is anything to do. */
  private beginTurn(): boolean {
    const now = this.world.now()
    if (!this.isResting && this.turnAt > -Infinity) this.onTurn?.(now - this.turnAt)
    if (this.timers.length + this.data.length + this.dispatchers.length === 0) {
      this.isResting = true
      this.tasksSinceRest = 0
      this.turnAt = -Infinity
      return false
    }
    this.turnBeforeAt = this.turnAt === -Infinity ? now : this.turnAt
    this.turnAt = now
    this.phase = "timers"
    this.rest = this.timers.reverse()
    this.timers = []
    return true
  }
}
