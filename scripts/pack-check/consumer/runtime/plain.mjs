/** Uses the fake Redis without Effect, in this process and through its command line. */
import { createFakeRedis } from "@effect-simba/fake-redis"
import { Redis } from "ioredis"
import { strictEqual } from "node:assert"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const use = async (url) => {
  const redis = new Redis(url)
  strictEqual(await redis.set("session", "alice", "EX", 3600), "OK")
  strictEqual(await redis.eval("return redis.call('GET', KEYS[1])", 1, "session"), "alice")
  return redis
}

const server = await createFakeRedis()
const redis = await use(server.url)
server.advance(3_600_001)
strictEqual(await redis.get("session"), null)
redis.disconnect()
await server.close()

const folder = fileURLToPath(new URL("../node_modules/@effect-simba/fake-redis", import.meta.url))
const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
const child = spawn(process.execPath, [join(folder, bin["fake-redis"])], { stdio: ["ignore", "pipe", "inherit"] })
const [line] = await once(child.stdout, "data")
const other = await use(String(line).trim())
child.kill("SIGTERM")
const [code] = await once(child, "exit")
other.disconnect()
// Deno reports the signal even if the child exits with a code
if (process.versions.deno === undefined) strictEqual(code, 0)
console.log("holds")
