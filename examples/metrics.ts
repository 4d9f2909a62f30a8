/**
 * Exposes metrics to Prometheus at `/metrics`. Also sends them over OTLP if `OTEL_EXPORTER_OTLP_ENDPOINT` is set to a
 * collector's address. `docs/grafana/effect-simba.json` is a matching dashboard.
 *
 *     node examples/metrics.ts
 *     OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 node examples/metrics.ts
 *     curl http://localhost:3000/metrics
 */
import { Leadership, Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import { Config, Effect, Layer, Option } from "effect"
import { FetchHttpClient, HttpRouter } from "effect/http"
import { Otlp, PrometheusMetrics } from "effect/observability"
import { HttpServerLive } from "./shared/httpServer.ts"
import { RedisEnv } from "./shared/redisEnv.ts"

/** Work that produces some metrics. */
const Jobs = Leadership.layerJobs("metrics-example", [{
  name: "count",
  schedule: Leadership.every("1 second"),
  run: Effect.ignore(Mutex.withLock("counter", { timeout: "1 second" })(Effect.sleep("100 millis")))
}])

const OtlpLive = Layer.unwrap(Effect.map(
  Config.option(Config.String("OTEL_EXPORTER_OTLP_ENDPOINT")),
  Option.match({
    onNone: () => Layer.empty,
    onSome: (baseUrl) =>
      Otlp.layerJson({ baseUrl, resource: { serviceName: "effect-simba-example" } }).pipe(
        Layer.provide(FetchHttpClient.layer)
      )
  })
))

const MutexLive = Layer.provide(RedisMutex.layerFromEnv(), RedisEnv)

const Live = Layer.merge(Jobs, HttpRouter.serve(PrometheusMetrics.layerHttp())).pipe(
  Layer.provide(MutexLive),
  Layer.provide(HttpServerLive),
  Layer.provide(OtlpLive)
)

NodeRuntime.runMain(Layer.launch(Live))
