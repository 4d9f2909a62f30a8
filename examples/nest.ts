/**
 * Nest without Effect. A request gets a 409 while another request, in any process, is making the same report. One
 * process in the fleet cleans up every second. A health endpoint shows whether this process leads.
 *
 *     node examples/nest.ts
 *     REDIS_URL=redis://localhost:6379 PORT=3001 node examples/nest.ts
 *     curl -i -X POST http://localhost:3000/reports/2026-11
 *
 * Node strips types but does not support decorators, so they are called as functions here. In a compiled application,
 * write `@Controller()`, `@Post(":month")` and so on.
 */
import "reflect-metadata"
import { type Contender, createSimba, type Simba } from "@effect-simba/redis/promise"
import {
  ConflictException,
  Controller,
  Get,
  HttpCode,
  Inject,
  Module,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  Param,
  Post
} from "@nestjs/common"
import { NestFactory } from "@nestjs/core"
import { setTimeout } from "node:timers/promises"
import { redisUrlPromise } from "./shared/redisUrl.ts"

const SIMBA = "SIMBA"

class Reports implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly simba: Simba
  private nightly: Contender | undefined

  constructor(simba: Simba) {
    this.simba = simba
  }

  async onApplicationBootstrap() {
    this.nightly = await this.simba.lead("nightly", { cron: "* * * * * *" }, async (lease) => {
      console.log(`the leader cleans up, with token ${lease.token}`)
    })
  }

  /** Runs after the last request and releases the locks: other processes can acquire them immediately. */
  onApplicationShutdown() {
    return this.simba.close()
  }

  async make(month: string) {
    const made = await this.simba.withLockIfAvailable(`report:${month}`, async (lease, signal) => {
      await setTimeout(1000, undefined, { signal })
      return { month, token: lease.token }
    })
    if (!made.acquired) throw new ConflictException("somebody else is making this report")
    return made.value
  }

  health() {
    return { role: this.nightly?.isLeader === true ? "leader" : "standby" }
  }
}

class App {}

const method = (name: "make" | "health", ...decorators: ReadonlyArray<MethodDecorator>) =>
  decorators.forEach((decorate) =>
    decorate(Reports.prototype, name, Object.getOwnPropertyDescriptor(Reports.prototype, name)!)
  )

Controller()(Reports)
Inject(SIMBA)(Reports, undefined, 0)
method("make", Post("reports/:month"), HttpCode(200))
Param("month")(Reports.prototype, "make", 0)
method("health", Get("health"))
Module({
  controllers: [Reports],
  providers: [{ provide: SIMBA, useFactory: async () => createSimba({ url: await redisUrlPromise() }) }]
})(App)

const app = await NestFactory.create(App, { logger: ["error", "warn"] })
app.enableShutdownHooks()
await app.listen(Number(process.env["PORT"] ?? 3000), "127.0.0.1")
console.log(`Listening on ${await app.getUrl()}`)
