import { describe } from "@effect/vitest"
import { FlowProducer, Queue, QueueEvents, Worker } from "bullmq"
import { Redis } from "ioredis"
import { alike, eventually } from "./servers.ts"

const names = ["add", "bulk", "counts", "process", "events", "delay", "retry", "failed"]
const later = ["priority", "deduplication", "scheduler", "pause", "flow", "obliterate"]

describe("BullMQ", () => {
  alike("all steps in a workflow behave as on Redis", [...names, ...later], async (where) => {
    const connection = { ...where, maxRetriesPerRequest: null }
    const steps: Record<string, unknown> = {}
    const queue = new Queue("work", { connection })
    const events = new QueueEvents("work", { connection })
    const completed: Array<string> = []
    events.on("completed", ({ jobId }) => completed.push(jobId))
    await events.waitUntilReady()

    const first = await queue.add("sum", { a: 1, b: 2, text: "grüße √" })
    steps["add"] = [first.id, first.name, (await queue.getJob(first.id!))?.data]
    const bulk = await queue.addBulk([{ name: "sum", data: { a: 2, b: 3 } }, { name: "sum", data: { a: 3, b: 4 } }])
    steps["bulk"] = bulk.map(({ id }) => id)
    steps["counts"] = await queue.getJobCounts("waiting", "active", "completed", "delayed", "failed", "prioritized")

    const order: Array<string> = []
    const attempts: Array<number> = []
    const worker = new Worker("work", async (job) => {
      order.push(job.name)
      if (job.name === "flaky") {
        attempts.push(job.attemptsMade)
        if (job.attemptsMade < 2) throw new Error("not yet")
      }
      if (job.name === "hopeless") throw new Error("never")
      await job.updateProgress(50)
      return { sum: (job.data.a ?? 0) + (job.data.b ?? 0) }
    }, { connection })
    steps["process"] = await Promise.all([first, ...bulk].map((job) => job.waitUntilFinished(events)))
    await eventually(() => completed.length === 3)
    steps["events"] = completed.slice().sort()

    const delayed = await queue.add("later", { a: 1 }, { delay: 60_000 })
    const state = await delayed.getState()
    await delayed.changeDelay(50)
    steps["delay"] = [state, await delayed.waitUntilFinished(events)]
    const flaky = await queue.add("flaky", { a: 1 }, { attempts: 3, backoff: { type: "fixed", delay: 20 } })
    steps["retry"] = [await flaky.waitUntilFinished(events), attempts]
    const hopeless = await queue.add("hopeless", {})
    await hopeless.waitUntilFinished(events).catch(() => undefined)
    steps["failed"] = (await queue.getFailed()).map((job) => [job.id, job.failedReason, job.attemptsMade])

    await worker.pause()
    order.length = 0
    await queue.add("low", {}, { priority: 10 })
    await queue.add("high", {}, { priority: 1 })
    await queue.add("middle", {}, { priority: 5 })
    await queue.add("none", {})
    worker.resume()
    await eventually(() => order.length === 4)
    steps["priority"] = order.slice()

    await worker.pause()
    const one = await queue.add("once", {}, { deduplication: { id: "same" } })
    const two = await queue.add("once", {}, { deduplication: { id: "same" } })
    steps["deduplication"] = [one.id === two.id, await queue.getDeduplicationJobId("same") === one.id]
    worker.resume()
    await one.waitUntilFinished(events)

    order.length = 0
    await queue.upsertJobScheduler("tick", { every: 100 }, { name: "tick", data: { a: 1 } })
    await eventually(() => order.filter((name) => name === "tick").length >= 2)
    const [scheduler] = await queue.getJobSchedulers()
    steps["scheduler"] = [scheduler?.key, scheduler?.every, await queue.removeJobScheduler("tick")]

    await queue.pause()
    await queue.add("waits", {})
    const waiting = await queue.getWaiting()
    steps["pause"] = [await queue.isPaused(), waiting.filter(({ name }) => name === "waits").length]
    await queue.resume()

    const flow = new FlowProducer({ connection })
    const tree = await flow.add({
      name: "parent",
      queueName: "work",
      data: {},
      children: [
        { name: "child", queueName: "work", data: { a: 1, b: 1 } },
        { name: "child", queueName: "work", data: { a: 2, b: 2 } }
      ]
    })
    await tree.job.waitUntilFinished(events)
    steps["flow"] = Object.values(await tree.job.getChildrenValues()).map((value: { sum: number }) => value.sum).sort()

    await worker.close()
    await queue.obliterate({ force: true })
    const redis = new Redis(where)
    steps["obliterate"] = (await redis.keys("bull:work:*")).sort()
    redis.disconnect()
    await Promise.all([flow.close(), events.close(), queue.close()])
    return steps
  })
})
