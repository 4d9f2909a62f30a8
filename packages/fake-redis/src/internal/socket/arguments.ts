/** The arguments of the `fake-redis` command. */
import { parseArgs } from "node:util"
import type { Options } from "../../createFakeRedis.ts"

export const help = `fake-redis: an in-memory Redis 7.0

  --port N    the port to listen on; 0, the default, picks a free one
  --host H    the address to listen on; 127.0.0.1 by default
  --path P    a Unix socket, instead of a port
  --seed S    decides every random choice
  --help      shows this help

The first line of the output is the address. SIGINT and SIGTERM stop the server.`

/** Parses the arguments. Throws an `Error` that names the invalid argument. */
export const parse = (args: ReadonlyArray<string>): Options | "help" => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: "string", default: "0" },
      host: { type: "string" },
      path: { type: "string" },
      seed: { type: "string" },
      help: { type: "boolean", default: false }
    }
  })
  if (values.help) return "help"
  const port = Number(values.port)
  if (!/^[0-9]+$/.test(values.port) || port > 65535) throw new Error(`--port: "${values.port}" is not a port`)
  return { port, host: values.host, path: values.path, seed: values.seed }
}
