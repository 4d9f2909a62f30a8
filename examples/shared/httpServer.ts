/** The web server of the examples. It listens on `PORT`, 3000 by default; with 0, the system chooses a free port. */
import { NodeHttpServer } from "@effect/platform-node"
import { Config, Effect, Layer } from "effect"
import { createServer } from "node:http"

export const HttpServerLive = Layer.unwrap(Effect.map(
  Config.Int("PORT").pipe(Config.withDefault(3000)),
  (port) => NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })
))
