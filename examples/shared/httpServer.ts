/**
 * The web server for the examples. It listens on `PORT`, by default 3000. If `PORT` is 0, the system picks a free port.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Config, Effect, Layer } from "effect"
import { createServer } from "node:http"

export const HttpServerLive = Layer.unwrap(Effect.map(
  Config.Int("PORT").pipe(Config.withDefault(3000)),
  (port) => NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })
))
