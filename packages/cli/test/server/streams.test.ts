/** `effect-simba streams`: service states, dead letters, checkpoints and pauses. */
import { StreamClient, StreamMessages, StreamName } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule, Schema } from "effect"
import { RedisServer, until } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

layer(RedisServer.layer, { excludeTestServices: true })("effect-simba streams", (it) => {
  it.effect("inspect shows consumers, owners, lag and orphans, and redrive announces dead letters again", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const service = "orders"
      const show = commandLine.json(["streams", "inspect", service], server)
      assert.deepStrictEqual(yield* commandLine.json(["streams", "list"], server), [])
      yield* server.send("XADD", "other-input", "*", "no", "service")

      yield* Effect.gen(function*() {
        yield* StreamClient.announceAll([{ stream: "orders:eu" }, { stream: "orders:bad" }])
        const ids = yield* Effect.forEach([1, 2, 3], (n) => server.send("XADD", "orders:eu", "*", "n", String(n)))
        const run = StreamClient.run(
          Effect.fnUntraced(function*(lease) {
            if (lease.stream === "orders:bad") return yield* Effect.fail("no such order")
            yield* lease.commit(StreamName.EntryId.make(String(ids[0])))
            yield* lease.deadLetter(
              { id: StreamName.EntryId.make(String(ids[1])), fields: [["n", "2"]] },
              "not a number\n  at [\"n\"]"
            )
            return yield* Effect.never
          }),
          { retry: Schedule.recurs(0), onError: () => Effect.void }
        )
        yield* Effect.forkChild(run)
        yield* until(
          "one data stream is dead and one is owned",
          Effect.map(
            show,
            ({ deadLetters, delivered, streams }) =>
              deadLetters.count === 1 && delivered === 1 && streams[0].deadMessages === 1
          )
        )
        const { consumers, deadLetters, streams } = yield* show
        assert.strictEqual(consumers.length, 1)
        assert.strictEqual(consumers[0].owned, 1)
        assert.strictEqual(consumers[0].capacity, 64)
        assert.strictEqual(streams[0].stream, "orders:eu")
        assert.strictEqual(streams[0].consumer, consumers[0].name)
        assert.strictEqual(streams[0].lag, 2)
        const [listed] = yield* commandLine.json(["streams", "list"], server)
        assert.deepStrictEqual([listed.lag, listed.isCounted], [2, true])
        assert.isAtLeast(listed.waiting, streams[0].waiting)
        assert.include(deadLetters.first[0].reason, "no such order")

        const text = yield* commandLine.run(["streams", "inspect", service, "--lease-duration", "1m"], server)
        for (const part of ["orders:eu", "owned", "no such order", deadLetters.first[0].id]) {
          assert.include(text.output, part)
        }
        // Dead letters include their data stream
        assert.include((yield* commandLine.run(["streams", "dead-letters", service], server)).output, "orders:bad")
        assert.deepStrictEqual(
          (yield* commandLine.json(["streams", "list"], server)).map(({ name }: { name: string }) => name),
          [service]
        )

        const messages = ["streams", "dead-letters", service, "--stream", "orders:eu"]
        const [message] = yield* commandLine.json(messages, server)
        assert.deepStrictEqual([message.message, message.fields], [ids[1], [["n", "2"]]])
        const table = yield* commandLine.run(messages, server)
        for (const part of ["DEAD MESSAGE", message.id, ids[1], "not a number at [\"n\"]"]) {
          assert.include(table.output, String(part))
        }
        const byOldId = ["streams", "redrive", service, "--stream", "orders:eu", String(ids[1])]
        const mistaken = yield* commandLine.run(byOldId, server)
        assert.strictEqual(mistaken.code, 1)
        assert.include(mistaken.output, `not found: ${ids[1]} is the id under WAS; use the id ${message.id}`)
        const redrive = ["streams", "redrive", service, "--stream", "orders:eu", "--all"]
        assert.deepStrictEqual(yield* commandLine.json(redrive, server), [{ id: message.id, redriven: true }])
        assert.deepStrictEqual(yield* commandLine.json(messages, server), [])
        // The message has been added again
        assert.strictEqual((yield* show).streams[0].lag, 3)
        const letters = yield* commandLine.json(["streams", "dead-letters", service], server)
        assert.deepStrictEqual(letters.map(({ id }: { id: string }) => id), [deadLetters.first[0].id])

        // The announcement fails again and becomes a dead letter with a new id
        const redriven = yield* commandLine.json(["streams", "redrive", service, deadLetters.first[0].id], server)
        assert.deepStrictEqual(redriven, [{ id: deadLetters.first[0].id, redriven: true }])
        yield* until(
          "the announcement is dead again",
          Effect.map(show, ({ deadLetters: now }) => now.count === 1 && now.first[0].id !== deadLetters.first[0].id)
        )
        const gone = yield* commandLine.run(["streams", "redrive", service, deadLetters.first[0].id], server)
        assert.strictEqual(gone.code, 1)
        assert.include(gone.output, "not found")
      }).pipe(Effect.provide(RedisStreams.layer({ service, redis: { url: server.url }, gracePeriod: 0 })))

      const left = yield* show
      assert.strictEqual(left.orphans, 1)
      assert.isTrue(left.streams[0].isOrphan)
      yield* commandLine.run(["streams", "pause", service, "orders:eu"], server)
      const paused = yield* show
      assert.deepStrictEqual([paused.orphans, paused.streams[0].isPaused, paused.streams[0].isOrphan], [0, true, false])
      yield* commandLine.run(["streams", "resume", service, "orders:eu"], server)
      const all = yield* commandLine.json(["streams", "redrive", service, "--all"], server)
      assert.deepStrictEqual(all.map(({ redriven }: { redriven: boolean }) => redriven), [true])
      assert.strictEqual((yield* show).deadLetters.count, 0)
    }))

  it.effect("another program's announcement for an owned data stream is not an orphan", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const service = "twice"
      const args = ["streams", "inspect", service, "--lease-duration", "1s"]
      yield* Effect.gen(function*() {
        yield* StreamClient.announce("twice:eu")
        yield* server.send("XADD", "twice-input", "*", "lbs-input", `{"DataStreamName":"twice:eu","Info":{}}`)
        yield* Effect.forkChild(StreamClient.run(Effect.never))
        const states = Effect.map(commandLine.json(args, server), ({ orphans, streams }) => [
          orphans,
          ...streams.map(({ isRepeated }: { isRepeated: boolean }) => isRepeated)
        ])
        yield* until("one entry waits", Effect.map(states, (found) => `${found}` === "0,false,true"))
        const { output } = yield* commandLine.run(args, server)
        for (const part of ["owned", "announced again", "0 orphans"]) assert.include(output, part)
      }).pipe(Effect.provide(
        RedisStreams.layer({ service, redis: { url: server.url }, gracePeriod: 0, heartbeatInterval: "100 millis" })
      ))
    }))

  it.effect("a dead consumer's unreadable announcement is an orphan even if another one was just received", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const [input, group] = ["garbled-input", "garbled-group"]
      const first = String(yield* server.send("XADD", input, "*", "lbs-input", "{"))
      yield* server.send("XADD", input, "*", "lbs-input", "{")
      yield* server.send("XGROUP", "CREATE", input, group, "0")
      for (const consumer of ["dead", "alive"]) {
        yield* server.send("XREADGROUP", "GROUP", group, consumer, "COUNT", "1", "STREAMS", input, ">")
      }
      yield* server.send("XCLAIM", input, group, "dead", "0", first, "IDLE", "600000")
      const { orphans } = yield* commandLine.json(
        ["streams", "inspect", "garbled", "--lease-duration", "5m"],
        server
      )
      assert.strictEqual(orphans, 1)
    }))

  it.effect("inspecting a service that never existed fails with its name and does not create any keys", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      for (const args of [["inspect", "odrers"], ["dead-letters", "odrers"], ["redrive", "odrers", "--all"]]) {
        const { code, errors } = yield* commandLine.run(["streams", ...args], server)
        assert.strictEqual(code, 1)
        assert.include(errors, "There is no service \"odrers\".")
      }
      assert.deepStrictEqual(yield* server.send("KEYS", "*odrers*"), [])
    }))

  it.effect("a consumer is listed before its first announcement", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* Effect.forkScoped(
        StreamClient.run(Effect.never).pipe(
          Effect.provide(RedisStreams.layer({
            service: "idle",
            processName: "web-1",
            capacity: 5,
            redis: { url: server.url }
          }))
        )
      )
      const list = commandLine.json(["streams", "list"], server)
      yield* until(
        "it has joined",
        Effect.map(list, (services: ReadonlyArray<{ readonly name: string; readonly consumers: number }>) =>
          services.some(({ consumers, name }) =>
            name === "idle" && consumers === 1
          ))
      )
      const { consumers } = yield* commandLine.json(["streams", "inspect", "idle"], server)
      assert.deepStrictEqual(
        consumers.map(({ capacity, name, owned }: Record<string, unknown>) => ({ name, owned, capacity })),
        [{ name: "simba-consumer-web-1", owned: 0, capacity: 5 }]
      )
      const { output } = yield* commandLine.run(["streams", "inspect", "idle"], server)
      assert.match(output, /simba-consumer-web-1 +0 +5 /)
    }))

  it.effect("a service with announcements is listed before its first consumer", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* StreamClient.announce("early:1").pipe(
        Effect.provide(RedisStreams.layer({ service: "early", redis: { url: server.url } }))
      )
      for (const n of [1, 2, 3, 4, 5]) yield* server.send("XADD", "early:1", "*", "n", String(n))
      yield* server.send("XADD", "theirs-input", "*", "no", "service")
      const listed: ReadonlyArray<{ readonly name: string; readonly waiting: number }> = yield* commandLine.json([
        "streams",
        "list"
      ], server)
      const early = listed.filter(({ name }) => name === "early" || name === "theirs")
      assert.deepStrictEqual(early.map((row) => ({ ...row, oldest: 0, waiting: 0 })), [
        {
          name: "early",
          announced: 1,
          pending: 0,
          consumers: 0,
          oldest: 0,
          lag: 5,
          isCounted: true,
          waiting: 0,
          paused: { service: false, streams: [] },
          deadLetters: 0
        }
      ] as ReadonlyArray<object>)
      assert.isAbove(early[0]!.waiting, 0)
      const inspect = commandLine.json(["streams", "inspect", "early"], server)
      const shown = Effect.map(inspect, ({ streams }: { streams: ReadonlyArray<Record<string, unknown>> }) =>
        streams.map(({ consumer, isDelivered, lag, stream }) => ({ stream, consumer, isDelivered, lag })))
      const first = { stream: "early:1", consumer: null, isDelivered: false, lag: 5 }
      assert.deepStrictEqual(yield* shown, [first])
      assert.match(
        (yield* commandLine.run(["streams", "inspect", "early"], server)).output,
        /early:1 +- +- +5 .* not delivered/
      )
      // The commands have not created the group, because only consumers create it
      assert.deepStrictEqual(yield* server.send("XINFO", "GROUPS", "early-input"), [])

      yield* server.send("XGROUP", "CREATE", "early-input", "early-group", "0")
      yield* server.send("XREADGROUP", "GROUP", "early-group", "c", "STREAMS", "early-input", ">")
      yield* StreamClient.announce("early:2").pipe(
        Effect.provide(RedisStreams.layer({ service: "early", redis: { url: server.url } }))
      )
      yield* server.send("XADD", "early:2", "*", "n", "1")
      assert.deepStrictEqual(yield* shown, [
        { ...first, consumer: "c", isDelivered: true },
        { stream: "early:2", consumer: null, isDelivered: false, lag: 1 }
      ] as ReadonlyArray<object>)
      const after: ReadonlyArray<{ readonly name: string; readonly lag: number }> = yield* commandLine.json(
        ["streams", "list"],
        server
      )
      assert.strictEqual(
        after.find(({ name }) =>
          name === "early"
        )?.lag,
        6
      )
      const some = yield* commandLine.run(["streams", "inspect", "early", "--limit", "1"], server)
      assert.include(some.output, "1 of 2: see --limit")

      // A Go producer can announce a key that is not a data stream
      yield* server.send("SET", "early:3", "text")
      yield* server.send("XADD", "early-input", "*", "lbs-input", `{"DataStreamName":"early:3","Info":{}}`)
      assert.deepInclude((yield* shown).at(-1), { stream: "early:3", isDelivered: false, lag: null })
      assert.match((yield* commandLine.run(["streams", "list"], server)).output, /early .* 6\+ /)
    }))

  it.effect("seek and rewind move a checkpoint, require --force if the data stream is owned, and say whether it is announced", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const service = "moved"
      const checkpoint = Effect.map(server.send("GET", "simba:checkpoint:moved:1"), String)
      for (const n of [1, 2, 3]) yield* server.send("XADD", "moved:1", `${n}-0`, "n", String(n))
      const seek = (...args: ReadonlyArray<string>) => commandLine.json(["streams", ...args], server)
      yield* Effect.gen(function*() {
        yield* StreamClient.announce("moved:1")
        yield* Effect.forkChild(StreamClient.run(
          StreamMessages.process(Schema.Struct({ n: Schema.String }), () => Effect.void)
        ))
        yield* until("all are committed", Effect.map(checkpoint, (text) => text.startsWith("3-0")))
        const refused = yield* commandLine.run(["streams", "seek", service, "moved:1", "2-0"], server)
        assert.strictEqual(refused.code, 1)
        assert.include(refused.errors, "--force")
        const token = (yield* StreamClient.owned)[0]!.token
        assert.deepStrictEqual(yield* seek("seek", service, "moved:1", "2-0", "--force"), {
          stream: "moved:1",
          after: "1-18446744073709551615",
          announced: true
        })
        yield* until("the messages were read again", Effect.map(checkpoint, (text) => text.startsWith("3-0")))
        assert.isAbove((yield* StreamClient.owned)[0]!.token, token)
        yield* (yield* StreamClient.owned)[0]!.done
      }).pipe(Effect.provide(RedisStreams.layer({ service, redis: { url: server.url } })))

      const rewound = yield* commandLine.run(["streams", "rewind", service, "moved:1"], server)
      assert.strictEqual(rewound.code, 0, rewound.errors)
      for (const part of ["continues with the first message", "not announced"]) assert.include(rewound.output, part)
      const rewindByAnHour = (stream: string) =>
        commandLine.run(["streams", "rewind", service, stream, "--by", "1h"], server)
      // Moving this earlier checkpoint forward would skip messages
      const forward = yield* rewindByAnHour("moved:1")
      assert.strictEqual(forward.code, 1)
      assert.include(forward.errors, "Nothing was changed: \"moved:1\" has not processed any messages since")
      assert.include((yield* rewindByAnHour("moved:2")).errors, "Nothing was changed: \"moved:2\" has no checkpoint")
      assert.deepStrictEqual(yield* seek("seek", service, "moved:1", "now", "--announce"), {
        stream: "moved:1",
        after: "3-0",
        announced: true
      })
      yield* server.send("XADD", "moved:1", "*", "n", "4")
      yield* seek("seek", service, "moved:1", "now")
      const latest = parseInt(yield* checkpoint)
      assert.include((yield* rewindByAnHour("moved:1")).output, "with the first message since")
      const hour = 3_600_000
      assert.approximately(parseInt(yield* checkpoint), latest - hour, hour / 2)
      const toTime = yield* commandLine.run(["streams", "seek", service, "moved:1", "1970-01-01T00:00:00.002Z"], server)
      assert.include(toTime.output, "continues with the first message since 1970-01-01T00:00:00.002Z")
      assert.strictEqual(yield* checkpoint, "1-18446744073709551615")
      assert.strictEqual((yield* commandLine.run(["streams", "seek", service, "moved:1", "soon"], server)).code, 64)
      assert.deepStrictEqual(yield* seek("trim", service, "moved:1", "moved:2", "--keep", "1 second"), [
        { stream: "moved:1", removed: 1 },
        { stream: "moved:2", removed: 0 }
      ])
    }))

  it.effect("pause and resume affect a service or data streams, and list and inspect show pauses", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const service = "halted"
      yield* StreamClient.announceAll([{ stream: "halted:1" }, { stream: "halted:2" }]).pipe(
        Effect.provide(RedisStreams.layer({ service, redis: { url: server.url } }))
      )
      const change = (...args: ReadonlyArray<string>) => commandLine.json(["streams", ...args], server)
      assert.deepStrictEqual(yield* change("pause", service, "halted:1"), [{ stream: "halted:1", changed: true }])
      assert.deepStrictEqual(yield* change("pause", service), [{ stream: null, changed: true }])
      assert.deepStrictEqual((yield* change("inspect", service)).paused, { service: true, streams: ["halted:1"] })
      assert.match((yield* commandLine.run(["streams", "list"], server)).output, /halted .*all/)
      assert.deepStrictEqual(yield* change("resume", service), [{ stream: null, changed: true }])
      const inspected = yield* commandLine.run(["streams", "inspect", service], server)
      assert.match(inspected.output, /halted:1 .* paused, not delivered\n/)
      assert.match(inspected.output, /halted:2 .* not delivered\n/)
      const repeated = yield* commandLine.run(["streams", "resume", service], server)
      assert.strictEqual(repeated.code, 1)
      assert.include(repeated.output, "not paused")
      assert.strictEqual(yield* server.send("PTTL", "simba:paused:halted-input"), -1)
    }))

  it.effect("redrive requires ids or --all, and inspect requires a valid name", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      for (
        const args of [
          ["redrive", "s"],
          ["redrive", "s", "1-1", "--all"],
          ["redrive", "s", "x"],
          [
            "dead-letters",
            "s",
            "--stream",
            ""
          ],
          ["inspect", ""],
          ["inspect", "s", "--limit", "0"]
        ]
      ) {
        assert.strictEqual((yield* commandLine.run(["streams", ...args], server)).code, 64, args.join(" "))
      }
    }))
})
