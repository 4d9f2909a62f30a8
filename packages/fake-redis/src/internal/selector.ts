/** A set of permissions: the commands, keys and channels that a user may use. */
import type { CommandSpec } from "./commandSpec.ts"
import { CATEGORIES, specOf } from "./commandSpec.ts"
import { globMatch } from "./glob.ts"
import type { KeyUse } from "./keySpecs.ts"

interface KeyPattern {
  readonly pattern: string
  readonly read: boolean
  readonly write: boolean
}

/** Thrown for an invalid rule of ACL SETUSER. */
export class BadRule {
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

const UNKNOWN = "Unknown command or category name in ACL"
const AFTER_ALL_KEYS =
  "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any " +
  "effect. Try 'resetkeys' to start with an empty list of patterns"
const AFTER_ALL_CHANNELS =
  "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not " +
  "have any effect. Try 'resetchannels' to start with an empty list of channels"

export class Selector {
  /** Rules such as `+get`, `-@write` and `+client|list`. Later rules take precedence. */
  private commands: Array<string> = ["-@all"]
  private keys: Array<KeyPattern> = []
  private channels: Array<string> = []
  private readonly decided = new Map<string, boolean>()

  clone(): Selector {
    const copy = new Selector()
    copy.commands = this.commands.slice()
    copy.keys = this.keys.slice()
    copy.channels = this.channels.slice()
    return copy
  }

  get isUnrestricted(): boolean {
    return this.commands.length === 1 && this.commands[0] === "+@all" && this.hasAllKeys && this.hasAllChannels
  }

  private get hasAllKeys(): boolean {
    return this.keys.some(({ pattern, read, write }) => pattern === "*" && read && write)
  }

  private get hasAllChannels(): boolean {
    return this.channels.includes("*")
  }

  /** Applies one rule. Throws `BadRule`. */
  apply(rule: string): void {
    const word = rule.toLowerCase()
    if (word === "allcommands") return this.command("+@all")
    if (word === "nocommands") return this.command("-@all")
    if (word === "allkeys" || word === "~*") {
      this.keys = [{ pattern: "*", read: true, write: true }]
    } else if (word === "resetkeys") this.keys = []
    else if (word === "allchannels" || word === "&*") this.channels = ["*"]
    else if (word === "resetchannels") this.channels = []
    else if (rule.startsWith("~")) this.key(rule.slice(1), true, true)
    else if (rule.startsWith("%")) this.qualifiedKey(rule)
    else if (rule.startsWith("&")) this.channel(rule.slice(1))
    else if (rule.startsWith("+") || rule.startsWith("-")) this.command(word)
    else throw new BadRule("Syntax error")
  }

  private key(pattern: string, read: boolean, write: boolean): void {
    if (this.hasAllKeys) throw new BadRule(AFTER_ALL_KEYS)
    if (/[\s\0]/.test(pattern)) throw new BadRule("Syntax error")
    this.keys = this.keys.filter((key) => key.pattern !== pattern)
    this.keys.push({ pattern, read, write })
  }

  private qualifiedKey(rule: string): void {
    const [, flags, pattern] = /^%([RW]+)~([^]*)$/i.exec(rule) ?? []
    if (flags === undefined) throw new BadRule("Syntax error")
    this.key(pattern!, /R/i.test(flags), /W/i.test(flags))
  }

  private channel(pattern: string): void {
    if (this.hasAllChannels) throw new BadRule(AFTER_ALL_CHANNELS)
    if (/[\s\0]/.test(pattern)) throw new BadRule("Syntax error")
    this.channels = [...this.channels.filter((channel) => channel !== pattern), pattern]
  }

  private command(rule: string): void {
    const target = rule.slice(1)
    this.decided.clear()
    if (target === "@all") {
      this.commands = [rule]
      return
    }
    if (target.startsWith("@")) {
      if (!CATEGORIES.includes(target.slice(1))) throw new BadRule(UNKNOWN)
    } else {
      const [name = "", subcommand] = target.split("|")
      const spec = specOf(name)
      // A command without subcommands may be allowed with one particular first argument
      const isKnown = subcommand === undefined || spec?.subcommands.has(subcommand) === true ||
        (spec?.subcommands.size === 0 && rule.startsWith("+"))
      if (spec === undefined || !isKnown) throw new BadRule(UNKNOWN)
    }
    this.commands = this.commands.filter((old) =>
      old.slice(1) !== target && !(old.slice(1).startsWith(`${target}|`) && !target.startsWith("@"))
    )
    this.commands.push(rule)
  }

  mayRun(spec: CommandSpec, args: ReadonlyArray<string>): boolean {
    const known = this.decided.get(spec.name) ?? this.decide(spec)
    return known || (args.length > 1 && this.commands.includes(`+${spec.name}|${args[1]!.toLowerCase()}`))
  }

  private decide(spec: CommandSpec): boolean {
    const [name] = spec.name.split("|")
    const rule = this.commands.findLast((rule) => {
      const target = rule.slice(1)
      return target === "@all" || target === spec.name || target === name || spec.categories.includes(target)
    })
    const may = rule?.startsWith("+") === true
    this.decided.set(spec.name, may)
    return may
  }

  mayUse({ flags, key }: KeyUse): boolean {
    const reads = flags.includes("access")
    const writes = flags.some((flag) => flag === "insert" || flag === "update" || flag === "delete")
    return this.keys.some(({ pattern, read, write }) =>
      (read || !reads) && (write || !writes) && (pattern === "*" || globMatch(pattern, key))
    )
  }

  /** Whether the user may subscribe or publish to a channel. A pattern must be allowed literally. */
  mayListen(channel: string, isPattern: boolean): boolean {
    return this.channels.some((allowed) =>
      allowed === "*" || (isPattern ? allowed === channel : globMatch(allowed, channel))
    )
  }

  get describedCommands(): string {
    const [first] = this.commands
    return /^[+-]@all$/.test(first ?? "") ? this.commands.join(" ") : ["-@all", ...this.commands].join(" ")
  }

  get describedKeys(): string {
    return this.keys.map(({ pattern, read, write }) =>
      read && write ? `~${pattern}` : `%${read ? "R" : ""}${write ? "W" : ""}~${pattern}`
    ).join(" ")
  }

  get describedChannels(): string {
    return this.channels.map((channel) => `&${channel}`).join(" ")
  }

  describe(): string {
    const channels = this.hasAllChannels ? "&*" : ["resetchannels", this.describedChannels].filter(Boolean).join(" ")
    return [this.describedKeys, channels, this.describedCommands].filter(Boolean).join(" ")
  }
}
