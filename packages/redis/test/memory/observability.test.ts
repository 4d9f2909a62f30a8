/** The dashboard, the alert rules and the monitoring guide name only exported metrics. */
import { MutexMetrics } from "@effect-simba/core"
import { StreamMetrics } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Effect, Metric } from "effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { readFileSync } from "node:fs"

const docs = new URL("../../../../docs/", import.meta.url)
const text = (file: string) => readFileSync(new URL(file, docs), "utf8")

type AnyMetric = Metric.Metric<number, unknown>

/** Collects the metrics of a module that exports metrics and records of metrics. */
const metricsIn = (value: unknown): ReadonlyArray<AnyMetric> =>
  Metric.isMetric(value)
    ? [value as AnyMetric]
    : typeof value === "object" && value !== null
    ? Object.values(value).flatMap(metricsIn)
    : []

const metrics = metricsIn([{ ...MutexMetrics }, { ...StreamMetrics }, IoRedis.connectionsDown])

/** All series that can be exported, by name, with the possible values of each label. */
const exported = Effect.gen(function*() {
  for (const metric of metrics) yield* Metric.update(metric, 1)
  const names = new Set<string>()
  const labels = new Set<string>()
  for (const line of (yield* PrometheusMetrics.format()).split("\n")) {
    const [, name, rest = ""] = /^(\w+)(\{.*\})? /.exec(line) ?? []
    if (name === undefined) continue
    names.add(name)
    for (const [, label, value] of rest.matchAll(/(\w+)="([^"]*)"/g)) labels.add(`${name} ${label}=${value}`)
  }
  return { labels, names }
}).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))

/** Returns the series selected by an expression. */
const selected = (expression: string) =>
  [...expression.matchAll(/(simba_\w+)(?:\{([^}]*)\})?/g)].map(([, name, selector = ""]) => ({
    name: name!,
    matchers: [...selector.matchAll(/(\w+)(?:=~|!=|=)\\?"([^"\\]*)\\?"/g)].map(([, label, values]) => ({
      label,
      values
    }))
  }))

for (const file of ["grafana/effect-simba.json", "grafana/alerts.yml"]) {
  it.effect(`${file} selects series that exist`, () =>
    Effect.gen(function*() {
      const { labels, names } = yield* exported
      const series = selected(text(file))
      assert.isAtLeast(series.length, 10)
      for (const { matchers, name } of series) {
        assert.include(names, name)
        for (const { label, values } of matchers.filter(({ label }) => label !== "job")) {
          for (const value of values!.split("|")) assert.include(labels, `${name} ${label}=${value}`)
        }
      }
    }))
}

it("time metrics say that they are in milliseconds, which OTLP exports as their unit", () => {
  const times = metrics.filter(({ id }) => /_(?:time|latency|age|at_renewal|since)$|_last_/.test(id))
  assert.isAtLeast(times.length, 10)
  for (const { attributes, id } of times) assert.strictEqual(attributes?.["time_unit"], "milliseconds", id)
})

it("rules for events that may precede the first scrape match new series too", () => {
  const rules = text("grafana/alerts.yml")
  for (
    const metric of [
      // With `metricsByMutex`, a mutex's series start with its first loss
      "simba_mutex_losses",
      "simba_mutex_overruns",
      "simba_job_runs",
      "simba_job_missed",
      "simba_stream_gaps",
      "simba_stream_malformed_announcements",
      "simba_stream_dead_messages"
    ]
  ) {
    const [, series, period] = new RegExp(`increase\\((${metric}(?:\\{[^}]*\\})?)\\[(\\w+)\\]\\) > 0\n`).exec(rules) ??
      []
    assert.include(rules, `or ${series} unless ${series} offset ${period}\n`, metric)
  }
})

it.effect("the monitoring guide names the labels of metrics, and their values", () =>
  Effect.gen(function*() {
    const { labels } = yield* exported
    // The label `service` has no fixed values
    const rows = [...text("monitoring.md").matchAll(/^\| `(simba_\w+)` .* by `(\w+)`(?:: ((?:`\w+`(?:, )?)+))?/gm)]
    assert.isAtLeast(rows.length, 10)
    for (const [, name, label, listed] of rows) {
      const values = new Set(
        [...labels].flatMap((text) => new RegExp(`^${name}(?:_\\w+)? ${label}=(.*)$`).exec(text)?.slice(1) ?? [])
      )
      assert.isNotEmpty(values, `${name} by ${label}`)
      if (listed !== undefined) assert.sameMembers(listed.match(/\w+/g)!, [...values], name)
    }
  }))

it.effect("the dashboard and the monitoring guide together name every metric, and no metric that does not exist", () =>
  Effect.gen(function*() {
    const { names } = yield* exported
    const known = new Set([...names].map((name) => name.replace(/_(?:bucket|sum|count)$/, "")))
    const board = text("grafana/effect-simba.json")
    const monitoring = text("monitoring.md")
    const short = (name: string) => `\`${name.replace(/^simba_stream(?=_)/, "")}\``
    for (const name of known) {
      assert.isTrue(
        board.includes(name) || monitoring.includes(`\`${name}\``) || monitoring.includes(short(name)),
        name
      )
    }
    for (const page of ["monitoring.md", "observability.md", "runbooks.md", "kubernetes.md"]) {
      for (const [, name] of text(page).matchAll(/`(simba_\w+)`/g)) assert.include(known, name, page)
    }
  }))
