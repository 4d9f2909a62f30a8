/**
 * Runs the same administrative commands on the fake and on a redis-server: users and their permissions, command specs,
 * MONITOR, and statistics.
 */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { commands } from "../../src/internal/commandTable.ts"
import { openRaw } from "../rawSocket.ts"
import { bothServers } from "./alike.ts"
import { commandSpecs, file, moduleOf } from "./commandSpecs.ts"
import { toPlain } from "./comparison.ts"
import { open } from "./resp.ts"

const { alike, where } = bothServers()

/** Normalizes the order of a user's individual commands, which Redis lists in hash table order. */
const sortedRules = (reply: unknown): unknown =>
  String(reply).replace(/(?:[+-][@a-z|0-9]+ ?){2,}/g, (rules) => rules.trim().split(" ").sort().join(" "))

describe("users", () => {
  alike(
    "a user may use only the commands, keys and channels that its rules allow",
    `
    ACL SETUSER alice on >secret ~app:* %R~shared:* %W~out:* &news:* +@read +set +publish +subscribe +config|get -getrange +select|0
    ACL LIST
    ACL GETUSER alice
    alice: AUTH alice wrong
    alice: AUTH alice secret
    alice: ACL WHOAMI
    alice: GET app:1
    alice: GET shared:1
    alice: GET out:1
    alice: SET app:1 x
    alice: SET shared:1 x
    alice: SET out:1 x
    alice: SET out:1 x GET
    alice: GETRANGE app:1 0 1
    alice: DEL app:1
    alice: MGET app:1 other
    alice: CONFIG GET hz
    alice: CONFIG SET hz 10
    alice: SELECT 0
    alice: SELECT 1
    alice: PUBLISH news:1 x
    alice: PUBLISH other x
    alice: SUBSCRIBE other
    alice: MULTI
    alice: GET app:1
    alice: DEL app:1
    alice: EXEC
    alice: EVAL "return 1" 0
    alice: PING
    ACL DELUSER alice nobody
    `,
    sortedRules
  )
  alike(
    "scripts and transactions run with their user's permissions",
    `
    ACL SETUSER bob on nopass ~a* &c +@all -del
    bob: AUTH bob anything
    bob: EVAL "return redis.call('get', 'b')" 0
    bob: EVAL "return redis.call('del', 'a')" 0
    bob: EVAL "return redis.call('publish', 'd', 'x')" 0
    bob: EVAL "return redis.pcall('set', KEYS[1], 'x')" 1 a
    bob: MULTI
    bob: GET a
    bob: LPUSH list x
    ACL SETUSER bob -get
    bob: EXEC
    ACL SETUSER bob +get
    bob: MULTI
    bob: GET a
    bob: SET a x
    bob: PUBLISH c x
    ACL SETUSER bob -get resetkeys resetchannels
    bob: EXEC
    bob: RESET
    bob: ACL WHOAMI
    ACL DELUSER bob
    `
  )
  alike(
    "an invalid rule is rejected with a reason and leaves the user unchanged",
    `
    ACL SETUSER carol on +foo
    ACL SETUSER carol foo
    ACL SETUSER carol ~* ~a
    ACL SETUSER carol &* &a
    ACL SETUSER carol #abc
    ACL SETUSER carol <nothing
    ACL SETUSER carol %X~a
    ACL SETUSER carol +@foo
    ACL SETUSER carol +config|foo
    ACL SETUSER carol -get|x
    ACL SETUSER carol (+get ~x
    ACL SETUSER "a b" on
    ACL GETUSER carol
    ACL SETUSER carol on (+get ~x) nopass
    ACL GETUSER carol
    ACL DRYRUN carol GET x
    ACL DRYRUN carol GET y
    ACL DRYRUN carol SET x 1
    ACL DRYRUN carol FOO
    ACL DRYRUN carol GET
    ACL DRYRUN nobody GET x
    ACL SETUSER carol clearselectors
    ACL LIST
    ACL SETUSER carol reset
    ACL LIST
    ACL USERS
    ACL DELUSER default
    ACL DELUSER carol
    ACL GENPASS 0
    ACL GENPASS abc
    ACL LOAD
    ACL SAVE
    ACL CAT
    ACL CAT foo
    ACL FOO
    `
  )
  alike(
    "requirepass sets the default user's password",
    `
    AUTH x
    AUTH default x
    AUTH nobody x
    AUTH a b c
    CONFIG SET requirepass secret
    new: PING
    new: HELLO 2
    new: AUTH wrong
    new: HELLO 2 AUTH default wrong
    new: AUTH secret
    new: PING
    ACL LIST
    CONFIG GET requirepass
    CONFIG SET requirepass ""
    later: PING
    ACL LIST
    `,
    (reply) => String(reply).replace(/"id",[0-9]+/, "")
  )
  alike(
    "the ACL log records refusals and merges similar ones",
    `
    ACL LOG RESET
    ACL SETUSER dave on nopass ~a &a +get +publish
    dave: AUTH dave x
    dave: GET b
    dave: GET b
    dave: SET a 1
    dave: PUBLISH b x
    dave: AUTH dave
    dave: AUTH nobody x
    ACL LOG
    ACL LOG 1
    ACL LOG abc
    ACL LOG RESET
    ACL LOG
    ACL DELUSER dave
    `,
    (reply) => String(reply).replace(/"age-seconds","[^"]*"/g, "").replace(/"client-info","[^"]*"/g, "")
  )
})

describe("COMMAND", () => {
  it("lists every Redis command, except those that the guide lists as missing", async () => {
    const guide = readFileSync(new URL("../../../../docs/in-memory-redis.md", import.meta.url), "utf8")
    const missing = guide.slice(guide.indexOf("## Missing commands"), guide.indexOf("## Speed"))
    const [theirs, own] = [await open(where().real.path), await open(where().fake.port)]
    const [names] = await theirs.send([["COMMAND", "LIST"]])
    for (const name of (names as ReadonlyArray<string>).toSorted()) {
      const [command = "", subcommand] = name.toUpperCase().split("|")
      // Without arguments, a command that exists returns a different error or has no effect
      if (["SUBSCRIBE", "MONITOR", "QUIT", "RESET"].includes(command)) continue
      const [reply] = await own.send([subcommand === undefined ? [command] : [command, subcommand]])
      if (!/^-ERR unknown (?:sub)?command/.test(String(toPlain(reply!)))) continue
      const isThere = commands.has(command.toLowerCase())
      assert.include(missing, `\`${isThere && subcommand !== undefined ? `${command} ${subcommand}` : command}\``)
    }
    theirs.close()
    own.close()
  })
  it("describes each command as Redis does", async () => {
    const connection = await open(where().real.path)
    assert.strictEqual(readFileSync(file, "utf8"), moduleOf(await commandSpecs(connection)))
    const own = await open(where().fake.port)
    const [names] = await own.send([["COMMAND", "LIST"]])
    const question = [["COMMAND", "INFO", ...names as ReadonlyArray<string>]]
    // Ignore what may differ: the order of subcommands (that of a hash table in Redis), free-text notes, and SETINFO,
    // which is new in Redis 7.2
    const sorted = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.filter((_, at) => value[at - 1] !== "notes" && value[at] !== "notes").map(sorted)
          .filter((item) => !(Array.isArray(item) && item[0] === "client|setinfo"))
          .sort((a, b) => Array.isArray(a) && Array.isArray(b) && JSON.stringify(a) < JSON.stringify(b) ? -1 : 0)
        : value
    const [theirs, mine] = await Promise.all([connection.send(question), own.send(question)])
    const [described, known] = [sorted(mine[0]) as Array<unknown>, sorted(theirs[0]) as Array<unknown>]
    assert.isAbove(described.length, 200)
    described.forEach((each, at) => assert.deepStrictEqual(each, known[at]))
    connection.close()
    own.close()
  })
  alike(
    "finds a call's keys and how it uses them",
    `
    COMMAND GETKEYSANDFLAGS SET a b
    COMMAND GETKEYSANDFLAGS SET a b GET
    COMMAND GETKEYSANDFLAGS BITFIELD a GET u8 0
    COMMAND GETKEYSANDFLAGS BITFIELD a SET u8 0 1
    COMMAND GETKEYSANDFLAGS SORT a BY b STORE c
    COMMAND GETKEYSANDFLAGS SORT_RO a
    COMMAND GETKEYSANDFLAGS ZUNIONSTORE d 2 a b
    COMMAND GETKEYSANDFLAGS XREADGROUP GROUP g c STREAMS a b > >
    COMMAND GETKEYSANDFLAGS GEORADIUS a 0 0 1 m STORE b
    COMMAND GETKEYSANDFLAGS EVAL x 2 a b c
    COMMAND GETKEYSANDFLAGS EVAL x 0
    COMMAND GETKEYSANDFLAGS EVAL x 5 a
    COMMAND GETKEYSANDFLAGS PING
    COMMAND GETKEYSANDFLAGS FOO a
    COMMAND GETKEYSANDFLAGS GET
    COMMAND GETKEYS MSET a 1 b 2
    COMMAND GETKEYS OBJECT ENCODING a
    COMMAND INFO foo
    COMMAND LIST FILTERBY PATTERN xgr*
    COMMAND LIST FILTERBY MODULE x
    COMMAND LIST FILTERBY FOO x
    COMMAND FOO
    `,
    (reply) => String(reply).includes("FILTERBY PATTERN") ? String(reply).split(/[",]+/).sort().join() : reply
  )
})

describe("the commands that have run", () => {
  alike(
    "INFO counts calls by command and errors by code",
    `
    GET a
    GET
    LPUSH list x
    GET list
    FOO
    CONFIG GET hz
    EVAL "redis.call('set','x',1) return redis.pcall('lpush','x','1')" 0
    INFO commandstats
    INFO errorstats
    CONFIG RESETSTAT
    INFO errorstats
    LATENCY RESET
    LATENCY HISTORY x
    LATENCY LATEST
    LATENCY DOCTOR
    MEMORY DOCTOR
    `,
    (reply) => String(reply).replace(/usec=[0-9]+,usec_per_call=[0-9.]+/g, "").split("\\r\\n").sort().join("\n")
  )
  alike(
    "the slow log shows commands without passwords",
    `
    CONFIG SET slowlog-log-slower-than 0
    SLOWLOG RESET
    SET a ${"x".repeat(150)}
    RPUSH l ${Array.from({ length: 40 }, (_, at) => at).join(" ")}
    CONFIG SET requirepass ""
    AUTH x y
    EVAL "return redis.call('get', 'a')" 0
    SLOWLOG GET 10
    SLOWLOG LEN
    SLOWLOG GET -2
    SLOWLOG GET abc
    CONFIG SET slowlog-max-len 2
    PING
    SLOWLOG LEN
    CONFIG SET slowlog-max-len 128
    CONFIG SET slowlog-log-slower-than 10000
    SLOWLOG RESET
    SLOWLOG GET
    `,
    (reply) =>
      String(reply).replace(/\[[0-9]+,[0-9]+,[0-9]+,/g, "[").replace(/"[^"]*(?:redis\.sock|127\.0\.0\.1)[^"]*"/g, "")
  )
  it("MONITOR shows each command without passwords, and a script before its commands", async () => {
    const observed = async (server: { readonly port: number } | { readonly path: string }) => {
      const [monitor, other] = await Promise.all([openRaw(server), openRaw(server)])
      monitor.write("MONITOR\r\n")
      await monitor.until((text) => text === "+OK\r\n")
      other.write(
        "SET k \"a b\\x00\\xff\\n\\\"\"\r\nMULTI\r\nGET k\r\nSET a 1\r\nEXEC\r\nNOSUCH\r\nGET\r\nCONFIG GET hz\r\n" +
          "AUTH a b\r\nHELLO 2 AUTH x y\r\nEVAL \"redis.call('set','x',1) return redis.call('get','x')\" 0\r\nSELECT 3\r\nECHO last\r\n"
      )
      await monitor.until((text) => text.includes("last"))
      monitor.write("GET k\r\nPING\r\nRESET\r\nGET a\r\n")
      const text = await monitor.until((text) => text.endsWith("$1\r\n1\r\n"))
      monitor.socket.destroy()
      other.socket.destroy()
      return text.replace(/^\+[0-9]+\.[0-9]+ /gm, "+").replace(/127\.0\.0\.1:[0-9]+|unix:\S+redis.sock/g, "address")
    }
    assert.strictEqual(await observed(where().fake), await observed(where().real))
  })
})

describe("functions", () => {
  alike(
    "libraries are loaded, listed, called, replaced and deleted",
    String.raw`
    FUNCTION FLUSH
    FUNCTION LOAD "#!lua name=lib\nredis.register_function('echo', function(keys, args) return {keys, args, KEYS == nil} end)"
    FUNCTION LOAD "#!lua name=other\nlocal n = 0 redis.register_function{function_name='reads', callback=function(keys, args) n = n + 1 return {n, redis.call('get', keys[1]), redis.call('set', keys[1], 'x')} end, flags={'no-writes'}, description='d'}"
    FUNCTION LIST LIBRARYNAME l*
    FUNCTION LIST LIBRARYNAME other WITHCODE
    FUNCTION STATS
    FCALL echo 1 a b c
    FCALL reads 1 a
    FCALL_RO reads 1 a
    FCALL_RO echo 0
    FCALL nope 0
    FCALL echo 5 a
    FCALL echo -1 a
    FCALL echo x a
    FUNCTION LOAD "#!lua name=lib\nredis.register_function('echo', function() end)"
    FUNCTION LOAD REPLACE "#!lua name=lib\nredis.register_function('echo', function() error('boom') end)"
    FCALL echo 0
    FUNCTION LOAD "#!lua name=third\nredis.register_function('reads', function() end)"
    FUNCTION LOAD "#!lua name=third\nredis.register_function('sets', function(keys) return redis.call('set', keys[1], 'v') end)"
    FCALL sets 1 k
    GET k
    MULTI
    FCALL sets 1 l
    EXEC
    FUNCTION DELETE third
    FUNCTION DELETE third
    FCALL sets 1 k
    FUNCTION KILL
    FUNCTION FLUSH foo
    FLUSHALL
    FUNCTION STATS
    FUNCTION FLUSH
    FUNCTION LIST
    `
  )
  alike(
    "invalid libraries are rejected with a reason",
    String.raw`
    FUNCTION LOAD "return 1"
    FUNCTION LOAD "#!lua\nx"
    FUNCTION LOAD "#!js name=a\nx"
    FUNCTION LOAD "#!lua name=a-b\nx"
    FUNCTION LOAD "#!lua name=a foo=b\nx"
    FUNCTION LOAD "#!lua name=a name=b\nx"
    FUNCTION LOAD "#!lua name=a\nlocal x = 1"
    FUNCTION LOAD "#!lua name=a\nx = 1"
    FUNCTION LOAD "#!lua name=a\nif"
    FUNCTION LOAD "#!lua name=a\nredis.call('get', 'x')"
    FUNCTION LOAD "#!lua name=a\nredis.register_function('f', 1)"
    FUNCTION LOAD "#!lua name=a\nredis.register_function(1, function() end)"
    FUNCTION LOAD "#!lua name=a\nredis.register_function('f')"
    FUNCTION LOAD "#!lua name=a\nredis.register_function('a b', function() end)"
    FUNCTION LOAD "#!lua name=a\nredis.register_function('f', function() end) redis.register_function('f', function() end)"
    FUNCTION LOAD "#!lua name=a\nredis.register_function{function_name='f', foo=1}"
    FUNCTION LOAD "#!lua name=a\nredis.register_function{function_name='f'}"
    FUNCTION LOAD "#!lua name=a\nredis.register_function{callback=function() end}"
    FUNCTION LOAD "#!lua name=a\nredis.register_function{function_name='f', callback=function() end, flags={'foo'}}"
    FUNCTION LOAD "#!lua name=a\nredis.register_function{function_name='f', callback=function() end, flags='no-writes'}"
    FUNCTION LOAD foo "#!lua name=a\nx"
    FUNCTION LIST FOO
    FUNCTION LIST LIBRARYNAME
    FUNCTION RESTORE x
    FUNCTION RESTORE x FOO
    FUNCTION FOO
    `
  )
  it("a dump is restored under each policy", async () => {
    const connection = await open(where().fake.port)
    const code = "#!lua name=kept\nredis.register_function('kept', function() return 1 end)"
    await connection.send([["FUNCTION", "FLUSH"], ["FUNCTION", "LOAD", code]])
    const [dump] = await connection.send([["FUNCTION", "DUMP"]])
    const results = await connection.send([
      ["FUNCTION", "RESTORE", String(dump)],
      ["FUNCTION", "RESTORE", String(dump), "REPLACE"],
      ["FUNCTION", "RESTORE", String(dump), "FLUSH"],
      ["FCALL", "kept", "0"],
      ["FUNCTION", "FLUSH"]
    ])
    assert.deepStrictEqual(results.map(toPlain), ["-ERR Library 'kept' already exists", "OK", "OK", 1, "OK"])
    connection.close()
  })
})
