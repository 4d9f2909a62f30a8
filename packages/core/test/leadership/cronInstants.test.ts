/** When cron jobs run around daylight-saving changes, compared with a scan of every minute. */
import { assert, describe, it } from "@effect/vitest"
import { Cron, DateTime, Effect, Option, Result } from "effect"
import * as cronInstants from "../../src/internal/leadership/cronInstants.ts"
import * as jobSchedule from "../../src/internal/leadership/jobSchedule.ts"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const compile = (expression: string, timeZone: string) => jobSchedule.cron(expression, { timeZone })[jobSchedule.TypeId]

/** The instants after `from` and up to `until`, inclusive. */
const between = (next: cronInstants.Next, from: number, until: number) => {
  const found: Array<number> = []
  for (let at = next(from); at <= until; at = next(at)) found.push(at)
  return found
}

const iso = (instants: ReadonlyArray<number>) => instants.map((at) => new Date(at).toISOString().slice(0, 16))

const offsetIn = (timeZone: string) => {
  const zone = DateTime.zoneMakeNamedUnsafe(timeZone)
  return (at: number) => DateTime.zonedOffset(DateTime.makeZonedUnsafe(at, { timeZone: zone }))
}

/** The reference implementation: a scan of every minute. */
const scan = (expression: string, timeZone: string, from: number, until: number) => {
  const wall = Result.getOrThrow(Cron.parse(expression, "UTC"))
  const isEveryHour = expression.split(" ")[1]!.startsWith("*")
  const offsetAt = offsetIn(timeZone)
  const begin = from - 26 * hour
  const times: Array<readonly [at: number, wall: number]> = []
  for (let at = begin; at <= until; at += minute) times.push([at, at + offsetAt(at)])
  const found = new Set<number>()
  const shown = new Set<number>()
  let latest = -Infinity
  times.forEach(([at, now], index) => {
    const isRepeated = shown.has(now)
    shown.add(now)
    if (Cron.match(wall, now) && (isEveryHour || !isRepeated)) found.add(at)
    const before = index === 0 ? now - minute : times[index - 1]![1]
    if (!isEveryHour && now > before + minute && now > latest) {
      // A job at a skipped time is delayed by the size of the clock change
      for (let skipped = before + minute; skipped < now; skipped += minute) {
        if (Cron.match(wall, skipped)) found.add(at + skipped - (before + minute))
      }
    }
    latest = Math.max(latest, now)
  })
  return [...found].filter((at) => at > from && at <= until).sort((a, b) => a - b)
}

describe("a cron job where clocks are set back", () => {
  const autumn = Date.parse("2026-10-24T22:30:00Z")

  it.effect("runs in both occurrences of the repeated hour if the hour is *", () =>
    Effect.gen(function*() {
      const minutely = yield* compile("* * * * *", "Europe/Berlin")
      const found = between(minutely.next, autumn, autumn + 4 * hour)
      assert.lengthOf(found, 240)
      assert.deepStrictEqual(new Set(found.map((at, i) => at - (found[i - 1] ?? at - minute))), new Set([minute]))
      const hourly = yield* compile("0 * * * *", "America/New_York")
      const night = Date.parse("2026-11-01T04:30:00Z")
      assert.deepStrictEqual(iso(between(hourly.next, night, night + 3 * hour)), [
        "2026-11-01T05:00",
        "2026-11-01T06:00",
        "2026-11-01T07:00"
      ])
    }))

  it.effect("runs once if the hour is fixed, and next on the following day", () =>
    Effect.gen(function*() {
      const nightly = yield* compile("30 2 * * *", "Europe/Berlin")
      assert.deepStrictEqual(iso(between(nightly.next, autumn, autumn + 2 * day)), [
        "2026-10-25T00:30",
        "2026-10-26T01:30"
      ])
    }))

  it.effect("runs only in the second occurrence of the repeated hour if it begins at the instant of the change", () =>
    Effect.gen(function*() {
      // The change is at 01:00 UTC. Without it, the local time would then be 03:00.
      const nightly = yield* compile("0 3 * * *", "Europe/Berlin")
      const change = Date.parse("2026-10-25T01:00:00Z")
      for (let seconds = 1; seconds < 200; seconds += 7) {
        assert.strictEqual(nightly.next(change - seconds * 1000), change + hour)
        assert.strictEqual(nightly.next(change - 5 * day - seconds * 1000), change - 5 * day)
      }
      assert.strictEqual(nightly.next(change), change + hour)
    }))
})

describe("a cron job where clocks are set forward", () => {
  const spring = Date.parse("2026-03-28T23:30:00Z")

  it.effect("runs once for each skipped time in a fixed hour, delayed by the size of the change", () =>
    Effect.gen(function*() {
      const quarters = yield* compile("*/15 2 * * *", "Europe/Berlin")
      assert.deepStrictEqual(iso(between(quarters.next, spring, spring + 12 * hour)), [
        "2026-03-29T01:00",
        "2026-03-29T01:15",
        "2026-03-29T01:30",
        "2026-03-29T01:45"
      ])
      // A job at a time that is not skipped runs only once
      const both = yield* compile("30 2,3 * * *", "Europe/Berlin")
      assert.deepStrictEqual(iso(between(both.next, spring, spring + 12 * hour)), ["2026-03-29T01:30"])
    }))

  it.effect("runs in every elapsed hour if the hour is *", () =>
    Effect.gen(function*() {
      const hourly = yield* compile("0 * * * *", "Europe/Berlin")
      assert.lengthOf(between(hourly.next, spring, spring + 12 * hour), 12)
    }))
})

/**
 * Zones with all kinds of changes: by half an hour, at midnight, by a whole day, around Ramadan, and of standard
 * time itself.
 */
const zones = [
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "America/Sao_Paulo",
  "Africa/Casablanca",
  "Pacific/Apia",
  "Antarctica/Casey",
  "Asia/Tehran",
  "America/St_Johns",
  "UTC"
]

const expressions = [
  "* * * * *",
  "*/15 2 * * *",
  "30 2,3 * * *",
  "0 */2 * * *",
  "5 0 * * *",
  "59 23 31 12 *",
  "7 1-3 * * 0"
]

/** An instant near each clock change in a century, for every zone. */
const changes = zones.flatMap((zone) => {
  const offsetAt = offsetIn(zone)
  const found: Array<readonly [zone: string, at: number]> = []
  for (let at = Date.UTC(1970, 0, 1); at < Date.UTC(2070, 0, 1); at += 14 * day) {
    if (offsetAt(at) !== offsetAt(at + 14 * day)) {
      let [low, high] = [at, at + 14 * day]
      while (high - low > minute) {
        const middle = low + Math.floor((high - low) / minute / 2) * minute
        if (offsetAt(middle) === offsetAt(low)) low = middle
        else high = middle
      }
      found.push([zone, high])
    }
  }
  return found
})

/**
 * Checks that every instant occurs once, from a few hours before the change until a day after it, and that the last one
 * is found.
 */
const holdsAround = (expression: string, zone: string, at: number) => {
  const { next } = Effect.runSync(compile(expression, zone))
  const [from, until] = [at - 4 * hour, at + 26 * hour]
  const expected = scan(expression, zone, from, until)
  assert.deepStrictEqual(iso(between(next, from, until)), iso(expected), `${expression} in ${zone}`)
  for (const moment of [at - 1, at, at + hour, until]) {
    assert.strictEqual(
      cronInstants.last(next, from, moment),
      expected.filter((instant) => instant <= moment).at(-1),
      `the last of ${expression} in ${zone}`
    )
  }
}

// Cycle through the expressions, to test each one at many changes
const expressionAt = (index: number) => expressions[index % expressions.length]!

it("every instant around a century of clock changes in ten zones occurs once", () => {
  const sampled = changes.filter((_, index) => index % 31 === 0)
  assert.isAbove(sampled.length, 25)
  sampled.forEach(([zone, at], index) => holdsAround(expressionAt(index), zone, at))
})

it("every instant around and between a sample of a century's clock changes in ten zones occurs once", {
  tags: ["long"]
}, () => {
  assert.isAbove(changes.length, 800)
  // Only a sample, because testing all changes takes minutes. All of them have passed.
  changes.filter((_, index) => index % 23 === 0)
    .forEach(([zone, at], index) => holdsAround(expressionAt(index), zone, at))
  const minutes = Date.UTC(2070, 0, 1) / minute
  for (let index = 0; index < 40; index++) {
    // Spread the samples over the century, at any time of day
    holdsAround(
      expressionAt(index),
      zones[index % zones.length]!,
      Math.floor(minutes * ((index * 0.618034) % 1)) * minute
    )
  }
})

it("in every zone, a weekly job runs once on each Sunday of a century, on time or delayed by a clock change", () => {
  const [from, until] = [Date.UTC(1970, 0, 4), Date.UTC(2070, 0, 1)]
  for (const zone of zones) {
    const offsetAt = offsetIn(zone)
    const { next } = Effect.runSync(compile("30 2 * * 0", zone))
    const found = between(next, from - 4 * day, until)
    const days = found.map((at) => Math.floor((at + offsetAt(at)) / day))
    assert.lengthOf(days, Math.floor((until - from) / (7 * day)) + 1, zone)
    days.forEach((one, index) => assert.strictEqual(one, days[0]! + 7 * index, `${iso([found[index]!])} in ${zone}`))
    for (const at of found) {
      const late = (at + offsetAt(at)) % day - 2.5 * hour
      if (late === 0) continue
      // The job's time was skipped that day
      assert.strictEqual(offsetAt(at) - offsetAt(at - late - 1), late, `${iso([at])} in ${zone}`)
    }
  }
})

it("the last instant is always one that `next` returns, unlike Effect's Cron.prev", () => {
  const cron = Result.getOrThrow(Cron.parse("*/15 2 * * *", "Europe/Berlin"))
  const after = Date.parse("2026-03-29T12:00:00Z")
  const former = Cron.prev(cron, after).getTime()
  // Effect's Cron.next and Cron.prev disagree on the night of the change
  const instants = new Set<number>()
  for (let at = after - 2 * day; at < after; at = Cron.next(cron, at).getTime()) instants.add(at)
  assert.isFalse(instants.has(former), "Cron.prev and Cron.next now agree: report this upstream and delete this check")
  const { next } = Effect.runSync(compile("*/15 2 * * *", "Europe/Berlin"))
  const last = cronInstants.last(next, after - 2 * day, after)!
  assert.strictEqual(next(last - 1), last)
})

it("the last instant may be the end of the period, and is undefined if the period contains none", () => {
  for (const period of [1, 2, 3, 7, 1000]) {
    const next = (after: number) => (Math.floor(after / period) + 1) * period
    for (let until = 0; until < 20; until++) {
      const last = Math.floor(until / period) * period
      assert.strictEqual(cronInstants.last(next, 0, until), last === 0 ? undefined : last, `${period}, ${until}`)
    }
    assert.strictEqual(cronInstants.last(next, 0, 1e9), Math.floor(1e9 / period) * period)
  }
})

describe("expressions", () => {
  it.effect.each<readonly [string, string]>([
    ["@daily", "cron Asia/Tokyo 0 0 * * *"],
    ["  @Hourly ", "cron Asia/Tokyo 0 * * * *"],
    ["@weekly", "cron Asia/Tokyo 0 0 * * 0"],
    ["0  3 * * MON-FRI", "cron Asia/Tokyo 0 3 * * MON-FRI"],
    ["15 0 3 * JUL *", "cron Asia/Tokyo 15 0 3 * JUL *"]
  ])("%s is parsed, and can be restored from its text", ([expression, text]) =>
    Effect.gen(function*() {
      const compiled = yield* compile(expression, "Asia/Tokyo")
      assert.strictEqual(compiled.text, text)
      assert.strictEqual((yield* jobSchedule.parse(text)).next(0), compiled.next(0))
    }))

  it.effect.each<readonly [string, string]>([
    ["0 0 L * *", "28-31"],
    ["0 0 * * 5L", "weekday"],
    ["0 0 ? * 1", "write *"],
    ["0 0 15W * *", "1-5"],
    ["0 0 * * 1#2", "weekday"],
    ["@reboot", "whileLeader"],
    ["0 0 30 2 *", "never occurs"],
    ["not cron", "cron"]
  ])("%s is refused with advice on what to write instead", ([expression, cure]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(compile(expression, "UTC"))
      assert.include(error.message, cure)
    }))

  it("a zone may be an object, but the expression must be a string", () => {
    const timeZone = DateTime.zoneMakeNamedUnsafe("Asia/Tokyo")
    const { text } = Effect.runSync(jobSchedule.cron("0 3 * * *", { timeZone })[jobSchedule.TypeId])
    assert.strictEqual(text, "cron Asia/Tokyo 0 3 * * *")
    const error = Effect.runSync(Effect.flip(jobSchedule.cron(5 as never)[jobSchedule.TypeId]))
    assert.deepInclude(error, { _tag: "InvalidConfig", option: "cron" })
  })

  it.each([["Europe/Vienna"], [{ timezone: "Europe/Vienna" }]])(
    "a zone that is not in timeZone is refused: %j",
    (options) => {
      const error = Effect.runSync(Effect.flip(jobSchedule.cron("0 3 * * *", options as object)[jobSchedule.TypeId]))
      assert.strictEqual(error.message, "Configuration \"timeZone\": write { timeZone: \"Europe/Vienna\" }.")
    }
  )

  it("options may have other properties beside timeZone, as the compiler accepts for a variable", () => {
    const settings = { cron: "0 3 * * *", timeZone: "Asia/Tokyo" }
    const { text } = Effect.runSync(jobSchedule.cron(settings.cron, settings)[jobSchedule.TypeId])
    assert.strictEqual(text, "cron Asia/Tokyo 0 3 * * *")
  })

  it("an unknown zone is refused", () => {
    const error = Effect.runSync(Effect.flip(compile("* * * * *", "Nowhere/At all")))
    assert.include(error.message, "not a time zone")
    assert.isTrue(Option.isNone(DateTime.zoneFromString("Nowhere/At all")))
  })
})
