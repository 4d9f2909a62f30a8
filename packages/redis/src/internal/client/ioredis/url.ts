/**
 * Parses server URLs. This library does not pass the URL to ioredis, because the URL's parts would override options.
 */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import type { RedisOptions } from "ioredis"

export type Parts = Pick<RedisOptions, "host" | "port" | "username" | "password" | "db" | "tls">

/**
 * `option` is the name of the option that contains the URL. Errors do not contain the URL itself, because it may
 * contain a password.
 */
export const read = Effect.fnUntraced(function*(text: string, option = "url"): Effect.fn.Return<Parts, InvalidConfig> {
  const refuse = (problem: string) => new InvalidConfig({ option, problem })
  const decoded = (text: string) =>
    Effect.try({
      try: () => decodeURIComponent(text),
      catch: () => refuse("a % in the user or password must be written as %25")
    })
  // JavaScript callers may pass any value
  const isText = typeof text === "string"
  const encoded = isText && text.includes("@") ? "; write / # ? in a user or password as %2F %23 %3F" : ""
  const url = isText && URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== "redis:" && url?.protocol !== "rediss:") {
    return yield* refuse(`expected redis://host:port or rediss://host:port${encoded}`)
  }
  // ioredis would take these for options. They may also be the rest of a password
  if (url.hash !== "" || [...url.searchParams.keys()].some((key) => key !== "db")) {
    return yield* refuse(`the only parameter is db: other options belong in client${encoded}`)
  }
  const path = url.pathname.replace(/^\//, "")
  const db = path === "" ? url.searchParams.get("db") : path
  if (db !== null && !/^\d+$/.test(db)) {
    return yield* refuse(`expected a database number after the port${encoded}`)
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1") || "localhost",
    port: url.port === "" ? 6379 : Number(url.port),
    ...(url.username === "" ? {} : { username: yield* decoded(url.username) }),
    ...(url.password === "" ? {} : { password: yield* decoded(url.password) }),
    ...(db === null ? {} : { db: Number(db) }),
    ...(url.protocol === "rediss:" ? { tls: {} } : {})
  }
})
