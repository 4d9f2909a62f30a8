#!/usr/bin/env node
/**
 * The `fake-redis` command: starts a server, prints its address on the first line, and serves until it receives a
 * signal.
 */
import process from "node:process"
import { createFakeRedis, type Options } from "../createFakeRedis.ts"
import { help, parse } from "../internal/socket/arguments.ts"

const fail = (message: string) => {
  process.stderr.write(`${message}\n`)
  process.exitCode = 1
}

const read = (): Options | "help" | undefined => {
  try {
    return parse(process.argv.slice(2))
  } catch (error) {
    return void fail(`${(error as Error).message}\n\n${help}`)
  }
}

const options = read()
if (options === "help") process.stdout.write(`${help}\n`)
else if (options !== undefined) {
  createFakeRedis({ ...options, undoDepth: 0 }).then(
    ({ close, url }) => {
      for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void close())
      process.stdout.write(`${url}\n`)
    },
    (error: Error) => fail(`cannot listen: ${error.message}`)
  )
}
