/** The events of a simulation, and their text format. */
import { type Reply, ReplyError } from "@effect-simba/fake-redis/Engine"
import type { TraceEntry } from "../client/server.ts"

export type Phase = "safety" | "liveness" | "closing" | "closed"

export type Fields = Readonly<Record<string, string | number>>

/** An event. `at` is the virtual time in milliseconds since the start. */
export type Event =
  | { readonly _tag: "Phase"; readonly at: number; readonly phase: Phase }
  | { readonly _tag: "Command"; readonly at: number; readonly command: TraceEntry }
  | { readonly _tag: "Expiry"; readonly at: number }
  | {
    readonly _tag: "Fault"
    readonly at: number
    readonly fault: string
    /** The name of a client, or `server`. */
    readonly target: string
    readonly text: string
  }
  | {
    readonly _tag: "Note"
    readonly at: number
    readonly client: string
    readonly generation: number
    readonly kind: string
    readonly fields: Fields
  }
  | {
    readonly _tag: "Log"
    readonly at: number
    readonly client: string
    readonly level: string
    readonly text: string
  }
  | {
    readonly _tag: "Owner"
    readonly at: number
    readonly resource: string
    readonly from: string | undefined
    /** When the previous owner was granted the lock, and when its lease ends according to the server's clock. */
    readonly since: number
    readonly deadline: number
    readonly to: string | undefined
    readonly token: number | undefined
    /** The command that changed the owner. Missing for an expiry and for data loss. */
    readonly command: TraceEntry | undefined
  }

const showReply = (reply: Reply): string =>
  reply === null
    ? "nil"
    : reply instanceof ReplyError
    ? `(error) ${reply.message}`
    : typeof reply === "object"
    ? `[${reply.map(showReply).join(" ")}]`
    : typeof reply === "number"
    ? String(reply)
    : JSON.stringify(reply)

const showArgs = (args: ReadonlyArray<string>): string => {
  const [name, first, ...rest] = args
  if (name === "SCRIPT" && first === "LOAD") return "SCRIPT LOAD <text>"
  if (name === "EVAL") return ["EVAL <text>", ...rest].join(" ")
  if (name === "EVALSHA") return ["EVALSHA", first!.slice(0, 8), ...rest].join(" ")
  return args.join(" ")
}

const showFields = (fields: Fields): string => Object.keys(fields).map((key) => ` ${key}=${fields[key]}`).join("")

const describe = (event: Event): string => {
  switch (event._tag) {
    case "Phase":
      return `---- ${event.phase}`
    case "Command": {
      const { args, client, reply, role } = event.command
      return `${client} ${role === "commands" ? "" : `(${role}) `}${showArgs(args)} -> ${showReply(reply)}`
    }
    case "Expiry":
      return "server removes expired keys"
    case "Fault":
      return `!! ${event.target} ${event.fault}${event.text === "" ? "" : ` ${event.text}`}`
    case "Note":
      return `${event.client}#${event.generation} ${event.kind}${showFields(event.fields)}`
    case "Log":
      return `${event.client} ${event.level}: ${event.text}`
    case "Owner":
      return `== ${event.resource}: ${event.from ?? "free"} -> ${event.to ?? "free"}${
        event.to === undefined || event.token === undefined ? "" : ` token ${event.token}`
      }`
  }
}

/** Formats an event as one line. */
export const format = (event: Event): string => `${event.at.toFixed(3).padStart(12)} ${describe(event)}`
