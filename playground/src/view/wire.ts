/**
 * Builds the log's lines: commands and their replies, messages, new owners, faults, and what processes note and
 * log.
 */
import type { Simulation } from "@effect-simba/testkit"
import type { History } from "./history.ts"
import * as words from "./text.ts"

export type Kind = "all" | "commands" | "messages" | "changes"

export interface Line {
  readonly key: number
  readonly at: number
  readonly who: string
  readonly kind: "command" | "message" | "change" | "fault"
  readonly text: string
  readonly reply: string
}

const shown = 150

const lineOf = (event: Simulation.Event, key: number): Line | undefined => {
  const { at } = event
  switch (event._tag) {
    case "Command":
      return {
        key,
        at,
        who: event.command.client,
        kind: "command",
        text: words.command(event.command.args),
        reply: words.reply(event.command.reply)
      }
    case "Owner":
      return {
        key,
        at,
        who: "server",
        kind: "change",
        text: `${event.resource}: ${event.from ?? "free"} → ${event.to ?? "free"}`,
        reply: event.token === undefined ? "" : `token ${event.token}`
      }
    case "Fault":
      return { key, at, who: event.target, kind: "fault", text: `${event.fault} ${event.text}`, reply: "" }
    case "Note":
      return {
        key,
        at,
        who: event.client,
        kind: "change",
        text: [event.kind, ...Object.entries(event.fields).map(([name, value]) => `${name} ${value}`)].join(" "),
        reply: ""
      }
    case "Log":
      return { key, at, who: event.client, kind: "change", text: `${event.level}: ${event.text}`, reply: "" }
    default:
      return undefined
  }
}

const messageOf = (parcel: Simulation.Parcel, key: number): Line => ({
  key,
  at: parcel.sentAt,
  who: parcel.client,
  kind: "message",
  text: words.parcel(parcel),
  reply: parcel.arrivedAt === undefined ? "not arrived" : `arrived ${words.seconds(parcel.arrivedAt, 3)}`
})

/** Returns the lines that match the filters, newest first. */
export const lines = (history: History, kind: Kind, who: string, filter: string): ReadonlyArray<Line> => {
  const found: Array<Line> = []
  const text = filter.trim().toLowerCase()
  const fits = (line: Line) =>
    (who === "" || line.who === who) &&
    (text === "" || `${line.who} ${line.text} ${line.reply}`.toLowerCase().includes(text))
  if (kind !== "messages") {
    for (let i = history.events.length - 1; i >= 0 && found.length < shown; i--) {
      const event = history.events[i]!
      if (kind === "commands" && event._tag !== "Command") continue
      if (kind === "changes" && event._tag === "Command") continue
      const line = lineOf(event, i)
      if (line !== undefined && fits(line)) found.push(line)
    }
  }
  if (kind === "all" || kind === "messages") {
    const { parcels } = history
    let count = 0
    for (let i = parcels.length - 1; i >= 0 && count < shown; i--) {
      if (parcels[i]!.kind !== "message") continue
      const line = messageOf(parcels[i]!, -1 - i)
      if (!fits(line)) continue
      found.push(line)
      count++
    }
  }
  return found.sort((a, b) => b.at - a.at).slice(0, shown)
}
