/** CLIENT PAUSE: delays all commands, or only writes, until a deadline or CLIENT UNPAUSE. */
import type { CommandSpec } from "./commandSpec.ts"

interface Call {
  readonly spec: CommandSpec
  readonly args: ReadonlyArray<string>
}

/** The part of a client that a pause reads. */
interface Pausable {
  readonly queue: ReadonlyArray<Call> | undefined
}

/** Commands without the write flag that may write, or that Redis replicates. */
const mayWrite = new Set(["eval", "evalsha", "fcall", "pfcount", "publish", "spublish"])

export class Pause<Client extends Pausable> {
  /** When the pause ends, in server time in microseconds. */
  private until = -Infinity
  private isForAll = false
  /** The clients whose next command is delayed. */
  private readonly held = new Set<Client>()
  private released: Array<Client> = []

  /** Begins a pause, or extends the current one. An extension never relaxes the pause. */
  begin(now: number, until: number, isForAll: boolean): void {
    const goesOn = now < this.until
    this.until = goesOn ? Math.max(this.until, until) : until
    this.isForAll = isForAll || (goesOn && this.isForAll)
  }

  end(): void {
    this.until = -Infinity
    this.released.push(...this.held)
    this.held.clear()
  }

  /** Whether this command must be delayed. */
  concerns(now: number, spec: CommandSpec, args: ReadonlyArray<string>, { queue }: Client, scripts: Scripts): boolean {
    if (now >= this.until) return false
    const writes = ({ args, spec }: Call) =>
      spec.flags.has("write") || (mayWrite.has(spec.name) && !isReadOnly(args, scripts))
    return this.isForAll || writes({ args, spec }) || (spec.name === "exec" && queue?.some(writes) === true)
  }

  hold(client: Client): void {
    this.held.add(client)
  }

  holds(client: Client): boolean {
    return this.held.has(client)
  }

  forget(client: Client): void {
    this.held.delete(client)
  }

  /** The next client to resume after the pause. */
  next(): Client | undefined {
    return this.released.shift()
  }

  /** When the delayed clients resume, or Infinity if there are none. */
  get deadline(): number {
    return this.held.size > 0 ? this.until : Infinity
  }
}

type Scripts = ReadonlyMap<string, { readonly readOnly?: boolean }>

/** Whether a script declares that it does not write. */
const isReadOnly = ([name, source = ""]: ReadonlyArray<string>, scripts: Scripts): boolean => {
  if (name!.toLowerCase() === "evalsha") return scripts.get(source.toLowerCase())?.readOnly === true
  return /^#!lua .*\bno-writes\b/.test(source)
}
