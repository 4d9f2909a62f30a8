/**
 * Sends acquires, confirmations, releases and inspections of mutexes, for `store`. Operations from the same event-loop
 * task share one call, in order. `acquireAndRelease.lua` executes them. Its header comment lists the operations and
 * their one-letter codes.
 *
 * A confirmation shows that a granted waiter is alive, and extends the grant to a full lease. It is sent immediately,
 * together with all operations before it, because its caller is about to start work that may block the event loop. A
 * contended mutex's release is sent immediately too, because its caller may continue with such work.
 *
 * An abandoned acquire may still be granted, so the caller undoes it with a release.
 */
import type { MutexName } from "@effect-simba/core/MutexName"
import type { MutexState } from "@effect-simba/core/MutexState"
import type {
  AcquireRequest,
  AcquireResult,
  ConfirmRequest,
  Released,
  ReleaseRequest
} from "@effect-simba/core/MutexStore"
import type { StoreError } from "@effect-simba/core/SimbaError"
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import { slot } from "../client/clusterSlot.ts"
import type { CommandSink, Failure } from "../client/commandSink.ts"
import type { Reader } from "../client/decode.ts"
import { backendError, fromReply } from "../client/errors.ts"
import { malformed } from "../client/malformedInput.ts"
import { type Loaded, send } from "../client/script.ts"
import * as keys from "./keys.ts"
import { readAcquire, readInspect, readRelease } from "./replies.ts"
import type { operations } from "./scripts.generated.ts"

/**
 * Which waiters are skipped as dead if their channel has no subscribers: all (`1`), only those from effect-simba
 * (`own`), or none (`0`). On a Cluster, a Simba waiter may be subscribed on another node, and is then not counted.
 */
export type SkipDead = "1" | "own" | "0"

type Settle<A> = (exit: Exit.Exit<A, StoreError>) => void

/** The maximum number of operations per call. It limits how long a call blocks the server. */
const callSize = 64

type Texts<Names extends ReadonlyArray<string>> = { readonly [Index in keyof Names]: string }

/** Builds the arguments for one call. */
class Call {
  private codes = ""
  private readonly keys: Array<string> = []
  private readonly rest: Array<string> = []
  /** The mutex whose keys were added last. The next operation does not repeat them if it uses the same mutex. */
  private last: MutexName | undefined
  private lease = ""
  private confirm = ""

  add<Code extends keyof typeof operations>(
    code: Code,
    mutex: MutexName,
    ...args: Texts<(typeof operations)[Code]>
  ): void {
    if (mutex === this.last) {
      this.codes += code.toUpperCase()
    } else {
      this.last = mutex
      this.codes += code
      this.keys.push(...keys.operands(mutex))
    }
    this.rest.push(...args)
  }

  /**
   * Returns whether an operation with these durations can be plain. All plain operations use the durations in the
   * header.
   */
  shares(lease: string, confirm: string): boolean {
    if (this.lease === "") {
      this.lease = lease
      this.confirm = confirm
    }
    return this.lease === lease && this.confirm === confirm
  }

  args(script: string, skipDead: SkipDead): ReadonlyArray<string> {
    const header = `${this.codes} ${skipDead} ${this.lease} ${this.confirm}`
    return [script, String(this.keys.length), ...this.keys, header, ...this.rest]
  }
}

const millis = (duration: Duration.Duration) => String(Duration.toMillis(duration))

/** `write` and `settle` are methods, so operations of different types fit in one array. */
interface Operation<Request = { readonly mutex: MutexName }, A = unknown> {
  readonly name: string
  readonly request: Request
  readonly read: Reader<A>
  write(call: Call, request: Request): void
  settle(exit: Exit.Exit<A, StoreError>): void
  /** True once the caller has abandoned the operation. The release that undoes it may already have been sent. */
  isAbandoned?: true
}

/** If an operation failed, the others in its call have still run. */
const resultOf = ({ name, read, request }: Operation, reply: unknown) =>
  Array.isArray(reply) && reply.length === 2 && reply[0] === "error"
    ? Exit.fail(fromReply(name, String(reply[1]), keys.operands(request.mutex)))
    : read(reply)

const writeAcquire = (
  call: Call,
  { confirm, id, lease, mode, mutex, ticket }: AcquireRequest
) => {
  const isPlain = ticket === undefined
  if (isPlain && call.shares(millis(lease), millis(confirm))) call.add(mode === "try" ? "t" : "w", mutex, id)
  else {
    call.add("a", mutex, id, mode, millis(lease), millis(confirm), ticket ?? "")
  }
}

const writeRelease = (call: Call, request: ReleaseRequest) => {
  const { confirm, id, lease, mutex, requeue } = request
  const isPlain = requeue === undefined || millis(requeue.lease) === millis(lease)
  if (isPlain && call.shares(millis(lease), millis(confirm))) {
    return requeue === undefined ? call.add("r", mutex, id) : call.add("q", mutex, id, requeue.id)
  }
  call.add(
    "d",
    mutex,
    id,
    millis(confirm),
    millis(lease),
    requeue?.id ?? "",
    requeue === undefined ? "0" : millis(requeue.lease)
  )
}

const writeConfirm = (call: Call, { id, lease, mutex, token }: ConfirmRequest) =>
  call.add("c", mutex, id, String(token), millis(lease))

export interface OperationBatch {
  /** Sends a request, and returns a function that abandons it. */
  readonly acquire: (request: AcquireRequest, settle: Settle<AcquireResult>) => () => void
  /** Sends all waiting operations and the confirmation before returning. */
  readonly confirm: (request: ConfirmRequest, settle: Settle<AcquireResult>) => void
  /** If the mutex is contended, sends the release before returning, unless it follows others in the same task. */
  readonly release: (request: ReleaseRequest, settle: Settle<Released>, isContended?: boolean) => void
  readonly inspect: (mutex: MutexName, limit: number, settle: Settle<MutexState>) => void
  /** Sends the waiting operations immediately, so the next command cannot overtake them. */
  readonly flush: () => void
}

/** With `perSlot`, each call uses keys from only one slot, as a Cluster requires. */
export const make = (
  sink: CommandSink["Service"],
  script: Loaded,
  { perSlot, skipDead }: { readonly perSlot: boolean; readonly skipDead: SkipDead }
): OperationBatch => {
  let waiting: Array<Operation> = []
  /** Whether `flush` will run after the current task. */
  let isScheduled = false

  const settle = (operations: ReadonlyArray<Operation>, failure: Failure | undefined, reply: unknown) => {
    const replies = operations.length === 1 ? [reply] : reply
    const isWhole = Array.isArray(replies) && replies.length === operations.length
    for (let i = 0; i < operations.length; i++) {
      const operation = operations[i]!
      // This runs the caller's code. If it throws, the other callers must still receive their replies
      try {
        operation.settle(
          failure !== undefined
            ? Exit.fail(backendError(operation.name, failure.cause))
            : isWhole
            ? resultOf(operation, replies[i])
            : Exit.fail(malformed(
              "the mutex script's replies",
              reply,
              `expected one for each of ${operations.length} operations`
            ))
        )
      } catch (error) {
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }

  const sendCall = (all: ReadonlyArray<Operation>) => {
    let operations = all
    const write = (script: string, isRepeated: boolean) => {
      // Do not repeat an abandoned operation, because the release that undoes it may already have run
      if (isRepeated) operations = all.filter((operation) => !operation.isAbandoned)
      if (operations.length === 0) return undefined
      const call = new Call()
      for (const operation of operations) operation.write(call, operation.request)
      return call.args(script, skipDead)
    }
    send(sink, script, write, (failure, reply) => settle(operations, failure, reply))
  }

  const sendAll = (operations: ReadonlyArray<Operation>) => {
    for (let i = 0; i < operations.length; i += callSize) sendCall(operations.slice(i, i + callSize))
  }

  const flush = () => {
    if (waiting.length === 0) return
    const operations = waiting
    waiting = []
    if (!perSlot || operations.length === 1) return sendAll(operations)
    const bySlot = Arr.groupBy(operations, ({ request }) => String(slot(keys.owner(request.mutex))))
    Object.values(bySlot).forEach(sendAll)
  }

  const submit = <Request extends Operation["request"], A>(
    name: string,
    request: Request,
    write: (call: Call, request: Request) => void,
    read: Reader<A>,
    settle: Settle<A>
  ): Operation => {
    const operation: Operation<Request, A> = { name, request, write, read, settle }
    waiting.push(operation)
    // The first operation in a task schedules the call. Later operations in the same task join it
    if (!isScheduled) {
      isScheduled = true
      sink.afterCurrentTask(() => {
        isScheduled = false
        flush()
      })
    }
    return operation
  }

  return {
    acquire: (request, settle) => {
      const operation = submit("acquire", request, writeAcquire, readAcquire, settle)
      return () => {
        operation.isAbandoned = true
      }
    },
    confirm: (request, settle) => {
      submit("confirm", request, writeConfirm, readAcquire, settle)
      flush()
    },
    release: (request, settle, isContended = false) => {
      const isUrgent = isContended && !isScheduled
      submit("release", request, writeRelease, readRelease, settle)
      if (isUrgent) flush()
    },
    inspect: (mutex, limit, settle) => {
      submit("inspect", { mutex }, (call) => call.add("i", mutex, String(limit)), readInspect, settle)
    },
    flush
  }
}
