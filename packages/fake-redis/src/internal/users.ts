/** The server's users, with their passwords and permissions. */
import type { CommandSpec } from "./commandSpec.ts"
import { keyUses } from "./keySpecs.ts"
import { BadRule, Selector } from "./selector.ts"
import { sha256 } from "./sha256.ts"

/** Why a command was rejected, and the command, key or channel concerned. */
export interface Denial {
  readonly reason: "command" | "key" | "channel"
  readonly object: string
}

const parenthesized = (rule: string): boolean => rule.startsWith("(") && rule.endsWith(")")

export class User {
  readonly name: string
  isEnabled = false
  needsNoPassword = false
  passwords: Array<string> = []
  sanitizes: "sanitize-payload" | "skip-sanitize-payload" | undefined
  selectors: Array<Selector> = [new Selector()]

  constructor(name: string) {
    this.name = name
  }

  clone(): User {
    const copy = new User(this.name)
    copy.isEnabled = this.isEnabled
    copy.needsNoPassword = this.needsNoPassword
    copy.sanitizes = this.sanitizes
    copy.passwords = this.passwords.slice()
    copy.selectors = this.selectors.map((selector) => selector.clone())
    return copy
  }

  /** Applies one rule. Throws `BadRule`. */
  apply(rule: string): void {
    const word = rule.toLowerCase()
    if (word === "on" || word === "off") this.isEnabled = word === "on"
    else if (word === "nopass") {
      this.needsNoPassword = true
      this.passwords = []
    } else if (word === "resetpass") {
      this.needsNoPassword = false
      this.passwords = []
    } else if (word === "sanitize-payload" || word === "skip-sanitize-payload") this.sanitizes = word
    else if (word === "clearselectors") this.selectors.length = 1
    else if (word === "reset") {
      for (
        const each of ["resetpass", "resetkeys", "resetchannels", "off", "sanitize-payload", "clearselectors", "-@all"]
      ) this.apply(each)
    } else if (rule.startsWith(">")) this.addPassword(sha256(rule.slice(1)))
    else if (rule.startsWith("#")) this.addPassword(hashed(rule))
    else if (rule.startsWith("<")) this.removePassword(sha256(rule.slice(1)))
    else if (rule.startsWith("!")) this.removePassword(hashed(rule))
    else if (parenthesized(rule)) this.selectors.push(selectorOf(rule))
    else this.selectors[0]!.apply(rule)
  }

  private addPassword(hash: string): void {
    this.needsNoPassword = false
    if (!this.passwords.includes(hash)) this.passwords.push(hash)
  }

  private removePassword(hash: string): void {
    if (!this.passwords.includes(hash)) {
      throw new BadRule("The password you are trying to remove from the user does not exist")
    }
    this.passwords = this.passwords.filter((each) => each !== hash)
  }

  accepts(password: string): boolean {
    return this.isEnabled && (this.needsNoPassword || this.passwords.includes(sha256(password)))
  }

  /**
   * Returns why a command is rejected, or `undefined` if it is allowed. If there are several selectors, reports the one
   * that comes closest to allowing the command.
   */
  denies(spec: CommandSpec, args: ReadonlyArray<string>): Denial | undefined {
    if (this.isUnrestricted || spec.flags.has("no_auth")) return undefined
    let denial: Denial | undefined
    for (const selector of this.selectors) {
      const next = deniedBy(selector, spec, args)
      if (next === undefined) return undefined
      if (denial === undefined || ranks[next.reason] > ranks[denial.reason]) denial = next
    }
    return denial
  }

  get isUnrestricted(): boolean {
    return this.selectors[0]!.isUnrestricted
  }

  /** Sets the password as CONFIG SET requirepass does. */
  setPassword(password: string): void {
    this.apply("resetpass")
    this.apply(password === "" ? "nopass" : `>${password}`)
  }

  get flags(): ReadonlyArray<string> {
    const { isEnabled, needsNoPassword, sanitizes } = this
    return [
      isEnabled ? "on" : "off",
      ...needsNoPassword ? ["nopass"] : [],
      ...sanitizes === undefined ? [] : [sanitizes]
    ]
  }

  describe(): string {
    const [root, ...others] = this.selectors
    return [
      "user",
      this.name,
      ...this.flags,
      ...this.passwords.map((hash) => `#${hash}`),
      root!.describe(),
      ...others.map((selector) => `(${selector.describe()})`)
    ].join(" ")
  }
}

const hashed = (rule: string): string => {
  const hash = rule.slice(1)
  if (/^[0-9a-f]{64}$/.test(hash)) return hash
  throw new BadRule("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")
}

const selectorOf = (rule: string): Selector => {
  const selector = new Selector()
  for (const each of rule.slice(1, -1).split(" ").filter((text) => text !== "")) selector.apply(each)
  return selector
}

const ranks: Readonly<Record<Denial["reason"], number>> = { command: 0, key: 1, channel: 2 }

const subscribing: Readonly<Record<string, boolean>> = { subscribe: false, ssubscribe: false, psubscribe: true }

const channelsOf = (name: string, args: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (name === "publish" || name === "spublish") return args.slice(1, 2)
  return name in subscribing ? args.slice(1) : []
}

const deniedBy = (selector: Selector, spec: CommandSpec, args: ReadonlyArray<string>): Denial | undefined => {
  if (!selector.mayRun(spec, args)) return { reason: "command", object: spec.name }
  for (const use of keyUses(spec, args) ?? []) {
    if (!selector.mayUse(use)) return { reason: "key", object: use.key }
  }
  for (const channel of channelsOf(spec.name, args)) {
    if (!selector.mayListen(channel, subscribing[spec.name] === true)) return { reason: "channel", object: channel }
  }
  return undefined
}

/** Joins the words between parentheses into one rule. */
const joined = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const rules: Array<string> = []
  for (let at = 0; at < words.length; at++) {
    if (!words[at]!.startsWith("(")) {
      rules.push(words[at]!)
      continue
    }
    const end = words.findIndex((word, index) => index >= at && word.endsWith(")"))
    if (end < 0) throw new BadRule(`Unmatched parenthesis in acl selector starting at '${words[at]!}'.`)
    rules.push(words.slice(at, end + 1).join(" "))
    at = end
  }
  return rules
}

const defaultRules = ["on", "nopass", "allkeys", "allchannels", "allcommands"]

export class Users {
  readonly all = new Map<string, User>()

  constructor() {
    const user = new User("default")
    for (const rule of defaultRules) user.apply(rule)
    this.all.set(user.name, user)
  }

  get default(): User {
    return this.all.get("default")!
  }

  /** The user for a new connection, or `undefined` if the client must authenticate. */
  get firstUser(): User | undefined {
    return this.default.needsNoPassword && this.default.isEnabled ? this.default : undefined
  }

  /** Returns the user if the password is right. */
  authenticate(name: string, password: string): User | undefined {
    const user = this.all.get(name)
    return user?.accepts(password) === true ? user : undefined
  }

  /**
   * Applies all rules to a user, creating it if necessary. If a rule is invalid, throws `BadRule` and applies none of
   * them.
   */
  set(name: string, words: ReadonlyArray<string>): User {
    const rules = joined(words)
    const changed = this.all.get(name)?.clone() ?? new User(name)
    for (const rule of rules) {
      try {
        changed.apply(rule)
      } catch (error) {
        throw error instanceof BadRule
          ? new BadRule(`Error in ACL SETUSER modifier '${rule}': ${error.reason}`)
          : error
      }
    }
    const user = this.all.get(name)
    if (user === undefined) this.all.set(name, changed)
    else Object.assign(user, changed)
    return changed
  }
}
