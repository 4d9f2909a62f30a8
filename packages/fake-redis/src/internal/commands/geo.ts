/** Geo commands, which store positions as sorted set scores. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import type { Position } from "../data/geohash.ts"
import { distance, isPosition, positionOf, printGeohash, scoreOf } from "../data/geohash.ts"
import { double, integer } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Double, fail, NullList, syntaxError } from "../reply.ts"
import { readSorted, storeSorted, zadd } from "./sortedSets.ts"

const units: Readonly<Record<string, number>> = { m: 1, km: 1000, ft: 0.3048, mi: 1609.34 }

const unitOf = (text: string): number =>
  units[text.toLowerCase()] ?? fail("ERR unsupported unit provided. please use M, KM, FT, MI")

/** Formats a number like `%f` in C. */
const sixDigits = (value: number): string => {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf"
  return Math.abs(value) < 1e21 ? value.toFixed(6) : `${BigInt(value)}.000000`
}

const position = (longitude: string, latitude: string): Position => {
  const found = { longitude: double(longitude), latitude: double(latitude) }
  return isPosition(found)
    ? found
    : fail(`ERR invalid longitude,latitude pair ${sixDigits(found.longitude)},${sixDigits(found.latitude)}`)
}

const geoadd: Handler = (context, args) => {
  let at = 2
  while (at < args.length && /^(?:nx|xx|ch)$/i.test(args[at]!)) at++
  const options = args.slice(2, at)
  const triples = args.slice(at)
  const has = (name: string) => options.some((option) => option.toLowerCase() === name)
  if (triples.length % 3 !== 0 || triples.length === 0 || has("nx") && has("xx")) return syntaxError()
  const pairs: Array<string> = []
  for (let index = 0; index < triples.length; index += 3) {
    pairs.push(String(scoreOf(position(triples[index]!, triples[index + 1]!))), triples[index + 2]!)
  }
  return zadd(context, ["zadd", args[1]!, ...options, ...pairs], false)
}

/** Formats a number like `%.17Lf` in C, without trailing zeros. */
const coordinate = (value: number): Value => new Double(value.toFixed(17).replace(/\.?0+$/, ""))

const coordinates = (score: number): Value => {
  const { latitude, longitude } = positionOf(score)
  return [coordinate(longitude), coordinate(latitude)]
}

const metres = (value: number): string => value.toFixed(4)

const scoresOf = (context: Context, args: ReadonlyArray<string>): ReadonlyArray<number | undefined> => {
  const zset = readSorted(context, args[1]!)
  return args.slice(2).map((member) => zset?.scores.get(member))
}

const geopos: Handler = (context, args) =>
  scoresOf(context, args).map((score) => score === undefined ? new NullList() : coordinates(score))

const geohash: Handler = (context, args) =>
  scoresOf(context, args).map((score) => score === undefined ? null : printGeohash(score))

const geodist: Handler = (context, args) => {
  const unit = args.length === 5 ? unitOf(args[4]!) : args.length > 5 ? syntaxError() : 1
  const zset = readSorted(context, args[1]!)
  const [from, to] = [zset?.scores.get(args[2]!), zset?.scores.get(args[3]!)]
  if (from === undefined || to === undefined) return null
  return metres(distance(positionOf(from), positionOf(to)) / unit)
}

interface Found {
  readonly member: string
  readonly score: number
  readonly metres: number
}

/** The options that may follow the centre and the shape. */
interface Options {
  withCoordinates: boolean
  withDistance: boolean
  withHash: boolean
  isAny: boolean
  count: number
  order: "none" | "asc" | "desc"
  store: string | undefined
  storesDistances: boolean
}

interface Search {
  readonly key: string
  /** Undefined if the key does not exist. */
  readonly center: Position | undefined
  readonly shape: Shape
  readonly options: Options
}

type Shape =
  | { readonly radius: number; readonly unit: number }
  | { readonly width: number; readonly height: number; readonly unit: number }

const sizeOf = (text: string, what: string): number => double(text, `ERR need numeric ${what}`)

const radiusOf = (radius: string, unit: string): Shape => {
  const size = sizeOf(radius, "radius")
  if (size < 0) return fail("ERR radius cannot be negative")
  return { radius: size, unit: unitOf(unit) }
}

const boxOf = (width: string, height: string, unit: string): Shape => {
  const [wide, high] = [sizeOf(width, "width"), sizeOf(height, "height")]
  if (wide < 0 || high < 0) return fail("ERR height or width cannot be negative")
  return { width: wide, height: high, unit: unitOf(unit) }
}

const noOptions = (): Options => ({
  withCoordinates: false,
  withDistance: false,
  withHash: false,
  isAny: false,
  count: 0,
  order: "none",
  store: undefined,
  storesDistances: false
})

/**
 * Parses an option that all searches share. Returns the number of arguments that it consumed, or 0 if the argument is
 * not such an option.
 */
const takeOption = (options: Options, args: ReadonlyArray<string>, at: number): number => {
  switch (args[at]!.toLowerCase()) {
    case "withdist":
      options.withDistance = true
      return 1
    case "withhash":
      options.withHash = true
      return 1
    case "withcoord":
      options.withCoordinates = true
      return 1
    case "any":
      options.isAny = true
      return 1
    case "asc":
      options.order = "asc"
      return 1
    case "desc":
      options.order = "desc"
      return 1
    case "count":
      if (at + 1 >= args.length) return 0
      options.count = integer(args[at + 1]!)
      if (options.count <= 0) return fail("ERR COUNT must be > 0")
      return 2
    default:
      return 0
  }
}

const isWithin = (shape: Shape, center: Position, at: Position, metres: number): boolean => {
  if ("radius" in shape) return metres <= shape.radius * shape.unit
  const across = distance({ longitude: at.longitude, latitude: at.latitude }, {
    longitude: center.longitude,
    latitude: at.latitude
  })
  const along = distance({ longitude: at.longitude, latitude: at.latitude }, {
    longitude: at.longitude,
    latitude: center.latitude
  })
  return across <= shape.width * shape.unit / 2 && along <= shape.height * shape.unit / 2
}

const find = (context: Context, { center, key, options, shape }: Search): ReadonlyArray<Found> => {
  if (center === undefined) return []
  const found: Array<Found> = []
  for (const { member, score } of readSorted(context, key)?.order ?? []) {
    const at = positionOf(score)
    const metres = distance(center, at)
    if (isWithin(shape, center, at, metres)) found.push({ member, score, metres })
    if (options.isAny && options.count > 0 && found.length >= options.count) break
  }
  const direction = options.order === "desc" ? -1 : 1
  // A limit keeps the nearest members, unless ANY is set
  if (options.order !== "none" || (options.count > 0 && !options.isAny)) {
    found.sort((a, b) => direction * (a.metres - b.metres))
  }
  return options.count > 0 ? found.slice(0, options.count) : found
}

/** Returns a search result, or stores it and publishes `event`. */
const finish = (context: Context, search: Search, event: string): Value => {
  const { options, shape: { unit } } = search
  const found = find(context, search)
  if (options.store !== undefined) {
    const items = found.map(({ member, metres, score }) => ({
      member,
      score: options.storesDistances ? metres / unit : score
    }))
    return storeSorted(context, options.store, items, event)
  }
  const { withCoordinates, withDistance, withHash } = options
  return found.map(({ member, metres: away, score }): Value =>
    withCoordinates || withDistance || withHash
      ? [
        member,
        ...withDistance ? [metres(away / unit)] : [],
        ...withHash ? [score] : [],
        ...withCoordinates ? [coordinates(score)] : []
      ]
      : member
  )
}

const centerOf = (context: Context, key: string, member: string): Position | undefined => {
  const zset = readSorted(context, key)
  if (zset === undefined) return undefined
  const score = zset.scores.get(member)
  return score === undefined ? fail("ERR could not decode requested zset member") : positionOf(score)
}

const check = (options: Options, name: string): void => {
  const { count, isAny, store, withCoordinates, withDistance, withHash } = options
  if (store !== undefined && (withCoordinates || withDistance || withHash)) {
    return fail(`ERR ${name} is not compatible with WITHDIST, WITHHASH and WITHCOORD options`)
  }
  if (isAny && count === 0) return fail("ERR the ANY argument requires COUNT argument")
}

/** Parses the options that start at `from`. Rejects STORE and STOREDIST unless `mayStore` is true. */
const radiusOptions = (args: ReadonlyArray<string>, from: number, mayStore: boolean): Options => {
  const options = noOptions()
  for (let at = from; at < args.length;) {
    const name = args[at]!.toLowerCase()
    const taken = takeOption(options, args, at)
    if (taken > 0) at += taken
    else if ((name === "store" || name === "storedist") && mayStore && at + 1 < args.length) {
      options.store = args[at + 1]!
      options.storesDistances = name === "storedist"
      at += 2
    } else return syntaxError()
  }
  check(options, "STORE option in GEORADIUS")
  return options
}

const georadius = (mayStore: boolean): Handler => (context, args) => {
  const key = args[1]!
  readSorted(context, key)
  const center = position(args[2]!, args[3]!)
  const shape = radiusOf(args[4]!, args[5]!)
  const options = radiusOptions(args, 6, mayStore)
  return finish(context, { key, center, shape, options }, "georadiusstore")
}

const georadiusbymember = (mayStore: boolean): Handler => (context, args) => {
  const key = args[1]!
  const center = centerOf(context, key, args[2]!)
  const shape: Shape = center === undefined ? { radius: 0, unit: 1 } : radiusOf(args[3]!, args[4]!)
  const options = radiusOptions(args, 5, mayStore)
  return finish(context, { key, center, shape, options }, "georadiusstore")
}

const geosearch = (stores: boolean): Handler => (context, args) => {
  const key = args[stores ? 2 : 1]!
  const hasKey = readSorted(context, key) !== undefined
  const options = noOptions()
  let from: { readonly byMember: boolean; readonly center: Position | undefined } | undefined
  let shape: Shape | undefined
  if (stores) options.store = args[1]!
  for (let at = stores ? 3 : 2; at < args.length;) {
    const left = args.length - at - 1
    const name = args[at]!.toLowerCase()
    const taken = takeOption(options, args, at)
    if (taken > 0) at += taken
    else if (name === "frommember" && left >= 1 && from?.byMember !== false) {
      from = { byMember: true, center: centerOf(context, key, args[at + 1]!) }
      at += 2
    } else if (name === "fromlonlat" && left >= 2 && from?.byMember !== true) {
      from = { byMember: false, center: position(args[at + 1]!, args[at + 2]!) }
      at += 3
    } else if (name === "byradius" && left >= 2 && (shape === undefined || "radius" in shape)) {
      shape = radiusOf(args[at + 1]!, args[at + 2]!)
      at += 3
    } else if (name === "bybox" && left >= 3 && (shape === undefined || "width" in shape)) {
      shape = boxOf(args[at + 1]!, args[at + 2]!, args[at + 3]!)
      at += 4
    } else if (name === "storedist" && stores) {
      options.storesDistances = true
      at++
    } else return syntaxError()
  }
  if (stores && (options.withCoordinates || options.withDistance || options.withHash)) check(options, "GEOSEARCHSTORE")
  if (from === undefined) {
    return fail(`ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for ${args[0]!}`)
  }
  if (shape === undefined) return fail(`ERR exactly one of BYRADIUS and BYBOX can be specified for ${args[0]!}`)
  check(options, "GEOSEARCHSTORE")
  return finish(context, { key, center: hasKey ? from.center : undefined, shape, options }, "geosearchstore")
}

export const geoCommands: ReadonlyArray<Command> = [
  define("geoadd", geoadd),
  define("geopos", geopos),
  define("geohash", geohash),
  define("geodist", geodist),
  define("georadius", georadius(true)),
  define("georadius_ro", georadius(false)),
  define("georadiusbymember", georadiusbymember(true)),
  define("georadiusbymember_ro", georadiusbymember(false)),
  define("geosearch", geosearch(false)),
  define("geosearchstore", geosearch(true))
]
