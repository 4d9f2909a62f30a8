/**
 * CLIENT TRACKING, CACHING and TRACKINGINFO, with which a client subscribes to invalidation messages for changed keys.
 */
import type { Client } from "../client.ts"
import type { Context } from "../context.ts"
import { integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, OK, syntaxError } from "../reply.ts"

export const track = ({ client, server }: Context, args: ReadonlyArray<string>): Value => {
  let redirect = 0
  let broadcast = false
  let noLoop = false
  let mode: "all" | "optin" | "optout" = "all"
  const prefixes: Array<string> = []
  for (let at = 3; at < args.length; at++) {
    const option = args[at]!.toLowerCase()
    if (option === "redirect" && at + 1 < args.length) {
      if (redirect !== 0) return fail("ERR A client can only redirect to a single other client")
      redirect = integer(args[++at]!)
      if (!server.clients.has(redirect)) return fail("ERR The client ID you want redirect to does not exist")
    } else if (option === "bcast") broadcast = true
    else if (option === "noloop") noLoop = true
    else if (option === "optin" || option === "optout") {
      if (mode !== "all" && mode !== option) return fail(BOTH_MODES)
      mode = option
    } else if (option === "prefix" && at + 1 < args.length) prefixes.push(args[++at]!)
    else return syntaxError()
  }
  const state = args[2]!.toLowerCase()
  if (state === "off") {
    server.tracker.disable(client)
    return OK
  }
  if (state !== "on") return syntaxError()
  if (!broadcast && prefixes.length > 0) {
    return fail("ERR PREFIX option requires BCAST mode to be enabled")
  }
  if (broadcast && mode !== "all") return fail("ERR OPTIN and OPTOUT are not compatible with BCAST")
  const old = client.tracking
  if (old !== undefined && broadcast !== (old.prefixes !== undefined)) {
    return fail(
      "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode."
    )
  }
  if (old !== undefined && mode !== "all" && old.mode !== mode && old.mode !== "all") {
    return fail(
      "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode."
    )
  }
  const known = old?.prefixes ?? []
  for (const [at, prefix] of prefixes.entries()) {
    const existing = known.find((other) => overlap(prefix, other))
    if (existing !== undefined) return fail(overlapping(prefix, `an existing prefix '${existing}'`))
    const provided = prefixes.find((other, index) => index > at && overlap(prefix, other))
    if (provided !== undefined) return fail(overlapping(prefix, `another provided prefix '${provided}'`))
  }
  server.tracker.enable(client, {
    redirect,
    mode,
    noLoop,
    prefixes: broadcast ? [...known, ...prefixes.length === 0 && known.length === 0 ? [""] : prefixes] : undefined,
    isBroken: false,
    caching: undefined
  })
  return OK
}

const overlap = (a: string, b: string): boolean => a.startsWith(b) || b.startsWith(a)

const overlapping = (prefix: string, other: string): string =>
  `ERR Prefix '${prefix}' overlaps with ${other}. Prefixes for a single client must not overlap.`

const BOTH_MODES = "ERR You can't specify both OPTIN mode and OPTOUT mode"

export const cache = (client: Client, how: string): Value => {
  const { tracking } = client
  if (tracking === undefined) {
    return fail(
      "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
    )
  }
  if (how === "yes" && tracking.mode !== "optin") {
    return fail("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
  }
  if (how === "no" && tracking.mode !== "optout") {
    return fail("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
  }
  if (how !== "yes" && how !== "no") return syntaxError()
  tracking.caching = how === "yes"
  return OK
}

export const trackingInfo = ({ tracking }: Client): Value => {
  if (tracking === undefined) return ["flags", ["off"], "redirect", -1, "prefixes", []]
  const flags = ["on"]
  if (tracking.prefixes !== undefined) flags.push("bcast")
  if (tracking.mode !== "all") {
    flags.push(tracking.mode)
    if (tracking.caching !== undefined) flags.push(tracking.caching ? "caching-yes" : "caching-no")
  }
  if (tracking.noLoop) flags.push("noloop")
  if (tracking.isBroken) flags.push("broken_redirect")
  return [
    "flags",
    flags,
    "redirect",
    tracking.redirect,
    "prefixes",
    tracking.prefixes?.slice().sort() ?? []
  ]
}
