/** Sends acquires, confirmations, releases and inspections: those of one task of the event loop in one call, in order. */
import type { MutexName } from "@effect-simba/core/MutexName"
import type {
  AcquireRequest,
  AcquireResult,
  ConfirmRequest,
  MutexState,
  Released,
  ReleaseRequest
} from "@effect-simba/core/MutexStore"
import { BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import { slot as slotOf } from "../client/clusterSlot.ts"
import type { CommandSink, Failure } from "../client/commandSink.ts"
import { backendError, fromReply, isForgotten } from "../client/errors.ts"
import * as keys from "./keys.ts"
import { readAcquire, readInspect, readRelease } from "./replies.ts"
import { acquireAndRelease, type SkipDead } from "./scripts.ts"

export type Settle<A> = (exit: Exit.Exit<A, BackendError | ProtocolError>) => void

/** Operations of one call: they share a round trip, and block the server only briefly. */
const callSize = 64

/** The arguments of one call. */
class Call {
  private readonly script: string
  private readonly header: [codes: string, skipDead: string, lease: string, confirm: string]
  private readonly keys: Array<string> = []
  private readonly rest: Array<string> = []
  /** The mutex of the last keys: the next operation on it repeats no key. */
  private last: MutexName | undefined
  private lease: Duration.Duration | undefined
  private confirm: Duration.Duration | undefined

  constructor(script: string, skipDead: SkipDead) {
    this.script = script
    this.header = ["", skipDead, "", ""]
  }

  add(code: string, mutex: MutexName, ...args: ReadonlyArray<string>): void {
    if (mutex === this.last) {
      this.header[0] += code.toUpperCase()
    } else {
      this.last = mutex
      this.header[0] += code
      this.keys.push(
        keys.owner(mutex),
        keys.queue(mutex),
        keys.fence(mutex),
        keys.reserved(mutex)
      )
    }
    this.rest.push(...args)
  }

  /** Usual operations have the durations of the layer, which a call names once. */
  sharesLease(lease: Duration.Duration): boolean {
    if (this.lease === undefined) {
      this.lease = lease
      this.header[2] = millis(lease)
    }
    return this.lease === lease
  }

  sharesConfirm(confirm: Duration.Duration): boolean {
    if (this.confirm === undefined) {
      this.confirm = confirm
      this.header[3] = millis(confirm)
    }
    return this.confirm === confirm
  }

  args(): ReadonlyArray<string> {
    return [this.script, String(this.keys.length), ...this.keys, ...this.header, ...this.rest]
  }
}

const millis = (duration: Duration.Duration) => String(Duration.toMillis(duration))

/** The script replies so for one operation that failed; the others of the call are done. */
const failureOf = (reply: unknown): string | undefined =>
  Array.isArray(reply) && reply.length === 2 && reply[0] === "error" ? String(reply[1]) : undefined

class Operation<A> {
  readonly mutex: MutexName
  readonly write: (call: Call) => void
  /** The caller is gone, and an undo may already be sent. */
  isAbandoned = false
  private readonly name: string
  private readonly read: (reply: unknown) => Exit.Exit<A, ProtocolError>
  private readonly settle: Settle<A>

  constructor(
    name: string,
    mutex: MutexName,
    write: (call: Call) => void,
    read: (reply: unknown) => Exit.Exit<A, ProtocolError>,
    settle: Settle<A>
  ) {
    this.name = name
    this.mutex = mutex
    this.write = write
    this.read = read
    this.settle = settle
  }

  reply(reply: unknown): void {
    const failure = failureOf(reply)
    this.settle(failure === undefined ? this.read(reply) : Exit.fail(fromReply(this.name, failure)))
  }

  fail(error: (operation: string) => BackendError | ProtocolError): void {
    this.settle(Exit.fail(error(this.name)))
  }
}

type AnyOperation = Pick<Operation<unknown>, "mutex" | "write" | "isAbandoned" | "reply" | "fail">

const writeAcquire = (
  call: Call,
  { confirm, id, lease, mode, mutex, reserve = 0, ticket, unfair = false }: AcquireRequest
) => {
  const isPlain = mode === "try" && !unfair && ticket === undefined && reserve === 0
  if (isPlain && call.sharesLease(lease) && call.sharesConfirm(confirm)) call.add("t", mutex, id)
  else {
    call.add("a", mutex, id, mode, millis(lease), millis(confirm), ticket ?? "", unfair ? "1" : "0", String(reserve))
  }
}

const writeRelease = (call: Call, { confirm, id, lastToken, mutex, requeue, unfair = false }: ReleaseRequest) => {
  if (requeue === undefined && lastToken === undefined && !unfair && call.sharesConfirm(confirm)) {
    return call.add("r", mutex, id)
  }
  call.add(
    "d",
    mutex,
    id,
    millis(confirm),
    unfair ? "1" : "0",
    requeue?.id ?? "",
    requeue === undefined ? "0" : millis(requeue.lease),
    String(requeue?.reserve ?? 0),
    String(lastToken ?? "")
  )
}

export interface OperationBatch {
  /** Returns a function that abandons the request. */
  readonly acquire: (request: AcquireRequest, settle: Settle<AcquireResult>) => () => void
  /** Written before it returns, with the operations that wait. */
  readonly confirm: (request: ConfirmRequest, settle: Settle<AcquireResult>) => void
  readonly release: (request: ReleaseRequest, settle: Settle<Released>) => void
  readonly inspect: (mutex: MutexName, limit: number, settle: Settle<MutexState>) => void
  /** Sends the waiting operations now, so that the next command comes behind them. */
  readonly flush: () => void
}

/** `perSlot`: a Cluster refuses calls with keys of several slots. `skipDead`: waiters without a subscriber. */
export const make = (
  sink: CommandSink,
  { perSlot, sha, skipDead }: { readonly perSlot: boolean; readonly sha: string; readonly skipDead: SkipDead }
): OperationBatch => {
  let waiting: Array<AnyOperation> = []

  const settle = (operations: ReadonlyArray<AnyOperation>, failure: Failure | undefined, reply: unknown) => {
    if (failure !== undefined) {
      for (const operation of operations) operation.fail((name) => backendError(name, failure.cause))
    } else if (Array.isArray(reply) && reply.length === operations.length) {
      for (let i = 0; i < operations.length; i++) operations[i]!.reply(reply[i])
    } else {
      const error = new ProtocolError({
        where: "the replies of the mutex script",
        read: typeof reply === "string" ? reply : JSON.stringify(reply) ?? String(reply),
        problem: `expected one for each of ${operations.length} operations`
      })
      for (const operation of operations) operation.fail(() => error)
    }
  }

  const send = (operations: ReadonlyArray<AnyOperation>, isKnown: boolean) => {
    try {
      const call = new Call(isKnown ? sha : acquireAndRelease.lua, skipDead)
      for (const operation of operations) operation.write(call)
      sink.send(isKnown ? "EVALSHA" : "EVAL", call.args(), (failure, reply) => {
        if (!isKnown || failure === undefined || !isForgotten(failure.cause)) return settle(operations, failure, reply)
        // Nothing ran. An abandoned operation must not run now: its undo may have run already
        const wanted = operations.filter((operation) => !operation.isAbandoned)
        if (wanted.length > 0) send(wanted, false)
      })
    } catch (cause) {
      // The client cannot write the command at all. No caller may wait for a reply that never comes
      const error = (operation: string) => new BackendError({ operation, retryable: false, cause })
      for (const operation of operations) operation.fail(error)
    }
  }

  const sendAll = (operations: ReadonlyArray<AnyOperation>) => {
    if (operations.length <= callSize) return send(operations, true)
    for (let i = 0; i < operations.length; i += callSize) send(operations.slice(i, i + callSize), true)
  }

  const flush = () => {
    if (waiting.length === 0) return
    const operations = waiting
    waiting = []
    if (!perSlot || operations.length === 1) return sendAll(operations)
    const bySlot = new Map<number, Array<AnyOperation>>()
    for (const operation of operations) {
      const slot = slotOf(keys.owner(operation.mutex))
      const same = bySlot.get(slot)
      if (same === undefined) bySlot.set(slot, [operation])
      else same.push(operation)
    }
    bySlot.forEach(sendAll)
  }

  const submit = (operation: AnyOperation) => {
    if (waiting.push(operation) === 1) sink.afterCurrentTask(flush)
  }

  return {
    acquire: (request, settle) => {
      const write = (call: Call) => writeAcquire(call, request)
      const operation = new Operation("acquire", request.mutex, write, readAcquire, settle)
      submit(operation)
      return () => {
        operation.isAbandoned = true
      }
    },
    confirm: ({ id, lease, mutex, reserve, token }, settle) => {
      const write = (call: Call) => call.add("c", mutex, id, String(token), millis(lease), String(reserve))
      submit(new Operation("confirm", mutex, write, readAcquire, settle))
      flush()
    },
    release: (request, settle) =>
      submit(new Operation("release", request.mutex, (call) => writeRelease(call, request), readRelease, settle)),
    inspect: (mutex, limit, settle) =>
      submit(new Operation("inspect", mutex, (call) => call.add("i", mutex, String(limit)), readInspect, settle)),
    flush
  }
}
