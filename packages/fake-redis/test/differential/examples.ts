/**
 * Replies that the engine once got wrong, grouped by subject. Each example consists of one session's commands and
 * redis-server 7.0.15's reply to the last of them. Errors begin with a dash.
 */
import { sha1 } from "../../src/internal/sha1.ts"

type Row = readonly [name: string, commands: ReadonlyArray<ReadonlyArray<string>>, reply: unknown]

const WRONGTYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"

const words: ReadonlyArray<string> = Array.from({ length: 40 }, (_, i) => `w${i}`)

export const examples: Readonly<Record<string, ReadonlyArray<Row>>> = {
  patterns: [
    ["two stars do not match an empty string", [["SADD", "s", "", "a"], [
      "SSCAN",
      "s",
      "0",
      "MATCH",
      "**"
    ]], [
      "0",
      ["a"]
    ]],
    ["a star may precede an unclosed class", [["SADD", "s", "ab", "ba"], [
      "SSCAN",
      "s",
      "0",
      "MATCH",
      "*[^a"
    ]], ["0", ["ab"]]]
  ],
  "sorted sets": [
    ["ZRANGE takes only one kind of range", [
      ["ZADD", "z", "1", "a"],
      ["ZRANGE", "z", "0", "-1", "BYLEX", "BYSCORE"]
    ], "-ERR syntax error"],
    [
      "GEOPOS casts any score to 64 bits",
      [
        ["ZADD", "z", "-inf", "a", "-1", "b", "9007199254740993", "c", "1e19", "d", "1e20", "e", "3.7", "f"],
        ["GEOPOS", "z", "a", "b", "c", "d", "e", "f"]
      ],
      [
        ["180", "-85.05112751263942528"],
        ["180", "85.0511287799999991"],
        ["180", "-85.05112751263942528"],
        ["180", "85.0511287799999991"],
        ["-179.99999731779098511", "-85.05112751263942528"],
        ["-179.99999195337295532", "-85.05112497791824921"]
      ]
    ],
    ["an empty exclusive score bound is zero", [["ZADD", "z", "1", "a"], ["ZCOUNT", "z", "(", "2"]], 1],
    [
      "a sorted set in the compact encoding has no negative zero",
      [["ZADD", "z", "-0", "a"], ["ZSCORE", "z", "a"]],
      "0"
    ],
    [
      "bounds are checked before the key's type",
      [["SET", "z", "1"], ["ZRANGEBYSCORE", "z", "abc", "1"]],
      "-ERR min or max is not a float"
    ],
    ["LIMIT applies its offset before the far bound is checked", [
      ["ZADD", "z", "1", "b", "2", "a", "3", "c"],
      ["ZRANGEBYLEX", "z", "[b", "[c", "LIMIT", "1", "1"]
    ], ["a"]]
  ],
  "arguments to Lua's libraries": Object.entries({
    "return bit.band()": "bad argument #1 to 'band' (number expected, got no value)",
    "return bit.lshift(1, 'x')": "bad argument #2 to 'lshift' (number expected, got string)",
    "return string.format('%s')": "bad argument #2 to 'format' (no value)",
    "return string.format('%d%y', -2^40, 1)": "invalid option '%y' to 'format'",
    "return string.format('%100d', -1)": "invalid format (width or precision too long)",
    "return math.random(0)": "bad argument #1 to 'random' (interval is empty)",
    "return struct.pack('i4')": "bad argument #2 to 'pack' (number expected, got nil)",
    "return struct.pack('b', 'x')": "bad argument #2 to 'pack' (number expected, got string)",
    "return cmsgpack.unpack({})": "bad argument #1 to 'unpack' (string expected, got table)",
    "return cjson.encode({ [true] = 2 })": "Cannot serialise boolean: table key must be a number or string"
  }).map(([source, message]): Row => [
    source,
    [["EVAL", source, "0"]],
    `-ERR user_script:1: ${message} script: ${sha1(source)}, on @user_script:1.`
  ]),
  "errors and results of Lua's libraries": [
    ...Object.entries({
      "return redis.sha1hex()": "wrong number of arguments",
      "return redis.log(9, 'x')": "Invalid debug level.",
      "return redis.setresp(4)": "RESP version must be 2 or 3.",
      "return redis.set_repl(9)": "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
      "return redis.acl_check_cmd()": "Please specify at least one argument for this redis lib call"
    }).map(([source, message]): Row => [
      source,
      [["EVAL", source, "0"]],
      `-ERR ${message} script: ${sha1(source)}, on @user_script:1.`
    ]),
    ["a string has only the fields of the string library", [["EVAL", "return tostring(('x').err)", "0"]], "nil"],
    ["a table has the digest of an empty text", [["EVAL", "return redis.sha1hex({})", "0"]], sha1("")],
    ["an unsigned 64-bit MessagePack integer is read as signed", [
      ["EVAL", "return tostring(cmsgpack.unpack('\\207' .. ('\\255'):rep(8)))", "0"]
    ], "-1"],
    ["a limit of zero unpacks everything, without an offset", [
      ["EVAL", "return { cmsgpack.unpack_limit('\\1\\2\\3', 0) }", "0"]
    ], [1, 2, 3]],
    ["a limit applies to what follows the offset", [
      ["EVAL", "return { cmsgpack.unpack_limit('\\1\\2\\3', 1, 1) }", "0"]
    ], [2, 2]],
    ["an unknown engine", [["EVAL", "#!js\nreturn 1", "0"]], "-ERR Unexpected engine in script shebang: #!js"]
  ],
  libraries: [
    ...["string", "tostring", "cjson", "redis.call", "redis.setresp", "redis.sha1hex"].map((name): Row => {
      const last = name.replace("redis.", "")
      return [
        `${name} does not exist while a library loads`,
        [["FUNCTION", "LOAD", "REPLACE", `#!lua name=l\nredis.register_function('f', ${name})`]],
        `-ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable '${last}'`
      ]
    }),
    ...["breakpoint", "debug", "replicate_commands"].map((name): Row => [
      `functions have no redis.${name}`,
      [
        [
          "FUNCTION",
          "LOAD",
          "REPLACE",
          `#!lua name=l\nredis.register_function('f', function() return type(redis.${name}) end)`
        ],
        ["FCALL", "f", "0"]
      ],
      "nil"
    ]),
    ["a library reads its own constants, and functions use libraries", [
      [
        "FUNCTION",
        "LOAD",
        "REPLACE",
        "#!lua name=l\nlocal level = redis.LOG_WARNING\nredis.register_function('f', function() return level .. string.rep('a', 2) end)"
      ],
      ["FCALL", "f", "0"]
    ], "3aa"]
  ],
  "scan pages": [
    ["SSCAN returns even a small set of words in pages", [
      ["SADD", "k", ...words],
      ["EVAL", "local r = redis.call('SSCAN', KEYS[1], 0, 'COUNT', 1); return r[1] ~= '0' and #r[2] < 40", "1", "k"]
    ], 1],
    ["SSCAN returns a set of integers in a single page", [
      ["SADD", "k", "1", "2", "3", "4"],
      ["SSCAN", "k", "0", "COUNT", "1"]
    ], ["0", ["1", "2", "3", "4"]]],
    ["HSCAN returns a hash with a long value in pages", [
      ["HSET", "k", ...words.flatMap((word) => [word, "v"]), "long", "x".repeat(65)],
      ["EVAL", "local r = redis.call('HSCAN', KEYS[1], 0, 'COUNT', 1); return r[1] ~= '0' and #r[2] < 80", "1", "k"]
    ], 1],
    ["zset-max-ziplist-entries is the largest size that ZSCAN returns in a single page", [
      ["CONFIG", "SET", "zset-max-ziplist-entries", "39"],
      ["ZADD", "k", ...words.flatMap((word) => ["1", word])],
      ["EVAL", "local r = redis.call('ZSCAN', KEYS[1], 0, 'COUNT', 1); return r[1] ~= '0' and #r[2] < 80", "1", "k"]
    ], 1]
  ],
  settings: [
    ["WAIT refuses a negative timeout", [["WAIT", "0", "-1"]], "-ERR timeout is negative"],
    ["CONFIG GET returns a name as it was written", [["CONFIG", "GET", "MaxMemory"]], ["MaxMemory", "0"]],
    ["min-replicas-to-write refuses writes on a server without replicas", [
      ["CONFIG", "SET", "min-replicas-to-write", "1"],
      ["SET", "k", "v"]
    ], "-NOREPLICAS Not enough good replicas to write."],
    ["min-slaves-to-write refuses a script's writes, but not its reads", [
      ["CONFIG", "SET", "min-slaves-to-write", "1"],
      ["EVAL", "redis.call('GET', KEYS[1]); return redis.pcall('SET', KEYS[1], '1').err", "1", "k"]
    ], "NOREPLICAS Not enough good replicas to write."],
    [
      "invalid save points are refused",
      [["CONFIG", "SET", "save", "foo"]],
      "-ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters"
    ],
    [
      "an out-of-range number is refused",
      [["CONFIG", "SET", "timeout", "-1"]],
      "-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive"
    ],
    ["~ trims whole nodes of up to stream-node-max-entries entries", [
      ["CONFIG", "SET", "stream-node-max-entries", "2"],
      ["XADD", "x", "1-1", "a", "b"],
      ["XADD", "x", "2-1", "a", "b"],
      ["XADD", "x", "3-1", "a", "b"],
      ["CONFIG", "SET", "stream-node-max-entries", "100"],
      ["XTRIM", "x", "MAXLEN", "~", "1"]
    ], 2]
  ],
  streams: [
    ["ids that differ only in the last of 64 bits are distinct", [
      ["XADD", "x", "1125899906842624123-9007199254740992", "a", "1"],
      ["XADD", "x", "1125899906842624123-9007199254740993", "a", "2"],
      ["XRANGE", "x", "(1125899906842624123-9007199254740992", "+"]
    ], [["1125899906842624123-9007199254740993", ["a", "2"]]]],
    ["a generated id beyond 2^53 is exactly one more than the last", [
      ["XADD", "x", "9007199254740992-9007199254740992", "a", "1"],
      ["XADD", "x", "9007199254740992-*", "a", "2"]
    ], "9007199254740992-9007199254740993"],
    ["stream ids may have leading zeros", [["XADD", "x", "7-1", "a", "b"], ["XDEL", "x", "007-1"]], 1],
    [
      "XADD checks the number of arguments before the id",
      [["XADD", "x", "abc", "a"]],
      "-ERR wrong number of arguments for 'xadd' command"
    ],
    ["XREADGROUP does not create a consumer if it returns nothing", [
      ["XADD", "x", "1-1", "a", "b"],
      ["XGROUP", "CREATE", "x", "g", "0"],
      ["XDEL", "x", "1-1"],
      ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">"],
      ["XINFO", "CONSUMERS", "x", "g"]
    ], []],
    ["the lag is known if all deleted entries precede the first entry", [
      ["XADD", "x", "5-1", "a", "b"],
      ["XGROUP", "CREATE", "x", "g", "0", "ENTRIESREAD", "0"],
      ["XSETID", "x", "9", "ENTRIESADDED", "100", "MAXDELETEDID", "1"],
      ["XINFO", "GROUPS", "x"]
    ], [["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", 0, "lag", 100]]],
    [
      "XSETID accepts an id below the largest deleted id",
      [["XADD", "x", "5-1", "a", "b"], ["XDEL", "x", "5-1"], ["XSETID", "x", "3-1"]],
      "OK"
    ],
    [
      "XADD parses the id before it checks how its options combine",
      [["XADD", "x", "MAXLEN", "5", "LIMIT", "3", "abc", "a", "b"]],
      "-ERR Invalid stream ID specified as stream command argument"
    ],
    [
      "LIMIT 0 does not need a trimming strategy, but does need ~",
      [["XADD", "x", "LIMIT", "0", "1-1", "a", "b"]],
      "-ERR syntax error, LIMIT cannot be used without the special ~ option"
    ],
    [
      "approximate trimming removes even the last node if all of its entries exceed the limit",
      [["XADD", "x", "MAXLEN", "~", "0", "1-1", "a", "b"], ["XLEN", "x"]],
      0
    ]
  ],
  lists: [
    ["BLMOVE refuses a destination of the wrong type", [
      ["RPUSH", "l", "1"],
      ["SET", "d", "v"],
      ["BLMOVE", "l", "d", "LEFT", "RIGHT", "0"]
    ], WRONGTYPE],
    ["a refused BLMOVE removes nothing", [
      ["RPUSH", "l", "1"],
      ["SET", "d", "v"],
      ["BLMOVE", "l", "d", "LEFT", "RIGHT", "0"],
      ["LRANGE", "l", "0", "-1"]
    ], ["1"]],
    ["BLMOVE ignores the type of its destination if the source is empty", [
      ["SET", "d", "v"],
      ["MULTI"],
      ["BLMOVE", "l", "d", "LEFT", "RIGHT", "0"],
      ["EXEC"]
    ], [null]]
  ],
  transactions: [
    [
      "EXEC with arguments discards the transaction",
      [["MULTI"], ["EXEC", "x"]],
      "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"
    ],
    [
      "a subcommand is checked before it is queued",
      [["MULTI"], ["SCRIPT", "nope"]],
      "-ERR unknown subcommand 'nope'. Try SCRIPT HELP."
    ],
    ["SWAPDB aborts a transaction that watches a key that exists in the other database", [
      ["SELECT", "1"],
      ["SET", "k", "1"],
      ["SELECT", "0"],
      ["WATCH", "k"],
      ["SWAPDB", "0", "1"],
      ["MULTI"],
      ["EXEC"]
    ], null],
    ["SWAPDB aborts a transaction that watches a key that exists in this database", [
      ["SET", "k", "1"],
      ["WATCH", "k"],
      ["SWAPDB", "0", "1"],
      ["MULTI"],
      ["EXEC"]
    ], null],
    ["SWAPDB does not abort a transaction that watches a key that exists in neither database", [
      ["SET", "other", "1"],
      ["WATCH", "k"],
      ["SWAPDB", "0", "1"],
      ["MULTI"],
      ["GET", "k"],
      ["EXEC"]
    ], [null]],
    ["EXEC with arguments unwatches all keys", [
      ["WATCH", "k"],
      ["SET", "k", "1"],
      ["EXEC", "x"],
      ["MULTI"],
      ["GET", "k"],
      ["EXEC"]
    ], ["1"]],
    ["changes to consumer groups and XSETID do not abort a transaction that watches the stream", [
      ["XADD", "x", "1-1", "a", "b"],
      ["WATCH", "x"],
      ["XGROUP", "CREATE", "x", "g", "0"],
      ["XGROUP", "SETID", "x", "g", "0"],
      ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">"],
      ["XGROUP", "DELCONSUMER", "x", "g", "c"],
      ["XGROUP", "DESTROY", "x", "g"],
      ["XSETID", "x", "5-1"],
      ["MULTI"],
      ["EXEC"]
    ], []],
    ["XGROUP CREATE aborts a transaction that watches the stream that it creates", [
      ["WATCH", "x"],
      ["XGROUP", "CREATE", "x", "g", "0", "MKSTREAM"],
      ["MULTI"],
      ["EXEC"]
    ], null]
  ],
  numbers: [
    ["counters are 64-bit", [["SET", "n", "9223372036854775806"], ["INCR", "n"], ["GET", "n"]], "9223372036854775807"],
    [
      "counters overflow",
      [["SET", "n", "9223372036854775807"], ["INCR", "n"]],
      "-ERR increment or decrement would overflow"
    ],
    ["floats are added with 80-bit precision", [["SET", "f", "10.5"], ["INCRBYFLOAT", "f", "0.1"]], "10.6"],
    ["floats may be hexadecimal", [["INCRBYFLOAT", "f", "0x1p3"]], "8"],
    [
      "an out-of-range float is refused",
      [["SET", "f", "1e5000"], ["INCRBYFLOAT", "f", "1"]],
      "-ERR value is not a valid float"
    ],
    [
      "MOVE reads its database as a C int",
      [["SET", "k", "1"], ["MOVE", "k", "9007199254740993"]],
      "-ERR value is out of range, value must between -2147483648 and 2147483647"
    ],
    [
      "hexadecimal floats have a 64-bit mantissa",
      [["SET", "f", "0x19223372036854775807"], ["INCRBYFLOAT", "f", "1"]],
      "118690058399437163028480"
    ]
  ],
  "errors": [
    [
      "the error for an unknown command quotes it with its arguments",
      [["FOO", "a", "b"]],
      "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' "
    ]
  ]
}

/** The initial values of all settings that the tests change. */
export const initialSettings: ReadonlyArray<string> = [
  "CONFIG",
  "SET",
  "notify-keyspace-events",
  "",
  "min-replicas-to-write",
  "0",
  "stream-node-max-bytes",
  "4096",
  "stream-node-max-entries",
  "100",
  "zset-max-listpack-entries",
  "128",
  "set-max-intset-entries",
  "512",
  "hash-max-listpack-entries",
  "512",
  "hash-max-listpack-value",
  "64",
  "zset-max-listpack-value",
  "64",
  "list-max-listpack-size",
  "-2"
]
