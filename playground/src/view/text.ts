/** Formats durations, commands, replies and the simulated network's parcels as text. */
import type { Simulation } from "@effect-simba/testkit"

export const seconds = (millis: number, digits = 1): string => `${(millis / 1000).toFixed(digits)} s`

export const reply = (value: unknown): string =>
  value === null || value === undefined
    ? "nil"
    : value instanceof Error
    ? `(error) ${value.message}`
    : Array.isArray(value)
    ? `[${value.map(reply).join(" ")}]`
    : typeof value === "string"
    ? JSON.stringify(value)
    : String(value)

/** Formats a command, without the text of scripts. */
export const command = (args: ReadonlyArray<string>): string => {
  const [name, first, ...rest] = args
  if (name === "SCRIPT" && first === "LOAD") return "SCRIPT LOAD <text>"
  if (name === "EVAL") return ["EVAL <text>", ...rest].join(" ")
  if (name === "EVALSHA") return ["EVALSHA", first!.slice(0, 8), ...rest].join(" ")
  return args.join(" ")
}

/** Formats the content of a parcel. */
export const parcel = ({ args, channel, kind, reply: value, text }: Simulation.Parcel): string =>
  kind === "message" ? `${channel}: ${text}` : kind === "reply" ? reply(value) : command(args)

export const lossText: Readonly<Record<string, string>> = {
  killed: "ended by a crash",
  lost: "lost",
  released: "released",
  served: "served",
  "gave up": "gave up"
}
