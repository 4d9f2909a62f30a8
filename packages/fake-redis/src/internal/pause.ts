/** CLIENT PAUSE: the commands of all clients wait, or those that may write, until a time or CLIENT UNPAUSE. */
import type { CommandSpec } from "./commandSpec.ts"

interface Call {
  readonly spec: CommandSpec
  readonly args: ReadonlyArray<string>
}

/** The parts of a client that a pause needs. */
interface Pausable {
  readonly queue: ReadonlyArray<Call> | undefined
}

/** These may write although they are not write commands. */
const mayWrite = new Set(["eval", "evalsha", "fcall", "pfcount", "publish", "spublish"])

export class Pause<Client extends Pausable> {
  /** Server time in micros. */
  private until = -Infinity
  private isForAll = false
  /** Clients whose next command waits. */
  private readonly held = new Set<Client>()
  private released: Array<Client> = []

  /** Another pause extends the current one, and never relaxes it. */
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

  /** Whether this command must wait. */
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

  /** The next client that continues after the end. */
  next(): Client | undefined {
    return this.released.shift()
  }

  /** When a waiting client must continue. */
  get deadline(): number {
    return this.held.size > 0 ? this.until : Infinity
  }
}

type Scripts = ReadonlyMap<string, { readonly readOnly?: boolean }>

/** A script that declares that it does not write. */
const isReadOnly = ([name, source = ""]: ReadonlyArray<string>, scripts: Scripts): boolean => {
  if (name!.toLowerCase() === "evalsha") return scripts.get(source.toLowerCase())?.readOnly === true
  return /^#!lua .*\bno-writes\b/.test(source)
}
