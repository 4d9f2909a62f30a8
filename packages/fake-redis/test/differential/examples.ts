/**
 * Replies that the engine once got wrong, grouped by subject: the commands of one session, and the reply of
 * redis-server 7.0.15 to the last of them. Errors begin with a dash.
 */
type Row = readonly [name: string, commands: ReadonlyArray<ReadonlyArray<string>>, reply: unknown]

const WRONGTYPE = "-WRONGTYPE Operation against a key holding the wrong kind of value"

const words: ReadonlyArray<string> = Array.from({ length: 40 }, (_, i) => `w${i}`)

export const examples: Readonly<Record<string, ReadonlyArray<Row>>> = {
  patterns: [
    ["a pattern of two stars does not match an empty text", [["SADD", "s", "", "a"], [
      "SSCAN",
      "s",
      "0",
      "MATCH",
      "**"
    ]], [
      "0",
      ["a"]
    ]],
    ["a star before a class that the pattern does not close", [["SADD", "s", "ab", "ba"], [
      "SSCAN",
      "s",
      "0",
      "MATCH",
      "*[^a"
    ]], ["0", ["ab"]]]
  ],
  "sorted sets": [
    ["an empty exclusive score bound is zero", [["ZADD", "z", "1", "a"], ["ZCOUNT", "z", "(", "2"]], 1],
    ["a small sorted set has no negative zero", [["ZADD", "z", "-0", "a"], ["ZSCORE", "z", "a"]], "0"],
    [
      "bounds are checked before the key's type",
      [["SET", "z", "1"], ["ZRANGEBYSCORE", "z", "abc", "1"]],
      "-ERR min or max is not a float"
    ],
    ["LIMIT skips before it checks the far bound", [
      ["ZADD", "z", "1", "b", "2", "a", "3", "c"],
      ["ZRANGEBYLEX", "z", "[b", "[c", "LIMIT", "1", "1"]
    ], ["a"]]
  ],
  "pages of a scan": [
    ["a set of words comes in pages, however small", [
      ["SADD", "k", ...words],
      ["EVAL", "local r = redis.call('SSCAN', KEYS[1], 0, 'COUNT', 1); return r[1] ~= '0' and #r[2] < 40", "1", "k"]
    ], 1],
    ["a set of integers comes whole", [
      ["SADD", "k", "1", "2", "3", "4"],
      ["SSCAN", "k", "0", "COUNT", "1"]
    ], ["0", ["1", "2", "3", "4"]]],
    ["a hash with a long value comes in pages", [
      ["HSET", "k", ...words.flatMap((word) => [word, "v"]), "long", "x".repeat(65)],
      ["EVAL", "local r = redis.call('HSCAN', KEYS[1], 0, 'COUNT', 1); return r[1] ~= '0' and #r[2] < 80", "1", "k"]
    ], 1],
    ["the setting decides from which size on a sorted set comes in pages", [
      ["CONFIG", "SET", "zset-max-ziplist-entries", "39"],
      ["ZADD", "k", ...words.flatMap((word) => ["1", word])],
      ["EVAL", "local r = redis.call('ZSCAN', KEYS[1], 0, 'COUNT', 1); return r[1] ~= '0' and #r[2] < 80", "1", "k"]
    ], 1]
  ],
  settings: [
    ["writes need replicas where the setting asks for them", [
      ["CONFIG", "SET", "min-replicas-to-write", "1"],
      ["SET", "k", "v"]
    ], "-NOREPLICAS Not enough good replicas to write."],
    ["a script is refused its writes, not its reads", [
      ["CONFIG", "SET", "min-slaves-to-write", "1"],
      ["EVAL", "redis.call('GET', KEYS[1]); return redis.pcall('SET', KEYS[1], '1').err", "1", "k"]
    ], "NOREPLICAS Not enough good replicas to write."],
    [
      "save points are checked",
      [["CONFIG", "SET", "save", "foo"]],
      "-ERR CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters"
    ],
    [
      "a number has its range",
      [["CONFIG", "SET", "timeout", "-1"]],
      "-ERR CONFIG SET failed (possibly related to argument 'timeout') - argument must be between 0 and 2147483647 inclusive"
    ],
    ["~ trims by nodes of as many entries as the setting says", [
      ["CONFIG", "SET", "stream-node-max-entries", "2"],
      ["XADD", "x", "1-1", "a", "b"],
      ["XADD", "x", "2-1", "a", "b"],
      ["XADD", "x", "3-1", "a", "b"],
      ["CONFIG", "SET", "stream-node-max-entries", "100"],
      ["XTRIM", "x", "MAXLEN", "~", "1"]
    ], 2]
  ],
  streams: [
    ["ids that differ in the last of 64 bits are two entries", [
      ["XADD", "x", "1125899906842624123-9007199254740992", "a", "1"],
      ["XADD", "x", "1125899906842624123-9007199254740993", "a", "2"],
      ["XRANGE", "x", "(1125899906842624123-9007199254740992", "+"]
    ], [["1125899906842624123-9007199254740993", ["a", "2"]]]],
    ["the next id after 2^53 is one more", [
      ["XADD", "x", "9007199254740992-9007199254740992", "a", "1"],
      ["XADD", "x", "9007199254740992-*", "a", "2"]
    ], "9007199254740992-9007199254740993"],
    ["stream ids may have leading zeros", [["XADD", "x", "7-1", "a", "b"], ["XDEL", "x", "007-1"]], 1],
    [
      "XADD checks the id before the fields",
      [["XADD", "x", "abc", "a"]],
      "-ERR wrong number of arguments for 'xadd' command"
    ],
    ["reading nothing leaves no consumer", [
      ["XADD", "x", "1-1", "a", "b"],
      ["XGROUP", "CREATE", "x", "g", "0"],
      ["XDEL", "x", "1-1"],
      ["XREADGROUP", "GROUP", "g", "c", "STREAMS", "x", ">"],
      ["XINFO", "CONSUMERS", "x", "g"]
    ], []],
    ["a tombstone before the first entry does not blur the lag", [
      ["XADD", "x", "5-1", "a", "b"],
      ["XGROUP", "CREATE", "x", "g", "0", "ENTRIESREAD", "0"],
      ["XSETID", "x", "9", "ENTRIESADDED", "100", "MAXDELETEDID", "1"],
      ["XINFO", "GROUPS", "x"]
    ], [["name", "g", "consumers", 0, "pending", 0, "last-delivered-id", "0-0", "entries-read", 0, "lag", 100]]],
    [
      "XSETID may set an id below the largest deleted id",
      [["XADD", "x", "5-1", "a", "b"], ["XDEL", "x", "5-1"], ["XSETID", "x", "3-1"]],
      "OK"
    ],
    [
      "XADD parses its id before it checks the combination of its options",
      [["XADD", "x", "MAXLEN", "5", "LIMIT", "3", "abc", "a", "b"]],
      "-ERR Invalid stream ID specified as stream command argument"
    ],
    [
      "LIMIT 0 needs no trimming strategy, but does need ~",
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
    ["BLMOVE that is refused takes nothing", [
      ["RPUSH", "l", "1"],
      ["SET", "d", "v"],
      ["BLMOVE", "l", "d", "LEFT", "RIGHT", "0"],
      ["LRANGE", "l", "0", "-1"]
    ], ["1"]],
    ["BLMOVE of nothing does not look at its destination", [
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
    ["SWAPDB spoils the transaction of who watches a key that the other database has", [
      ["SELECT", "1"],
      ["SET", "k", "1"],
      ["SELECT", "0"],
      ["WATCH", "k"],
      ["SWAPDB", "0", "1"],
      ["MULTI"],
      ["EXEC"]
    ], null],
    ["SWAPDB spoils the transaction of who watches a key that this database has", [
      ["SET", "k", "1"],
      ["WATCH", "k"],
      ["SWAPDB", "0", "1"],
      ["MULTI"],
      ["EXEC"]
    ], null],
    ["SWAPDB is no change to a watched key that neither database has", [
      ["SET", "other", "1"],
      ["WATCH", "k"],
      ["SWAPDB", "0", "1"],
      ["MULTI"],
      ["GET", "k"],
      ["EXEC"]
    ], [null]],
    ["EXEC with arguments forgets what is watched", [
      ["WATCH", "k"],
      ["SET", "k", "1"],
      ["EXEC", "x"],
      ["MULTI"],
      ["GET", "k"],
      ["EXEC"]
    ], ["1"]],
    ["consumer groups and XSETID are no change to who watches the stream", [
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
    ["XGROUP CREATE is a change to who watches the stream that it makes", [
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
    ["floats are added with 80 bits", [["SET", "f", "10.5"], ["INCRBYFLOAT", "f", "0.1"]], "10.6"],
    ["floats may be hexadecimal", [["INCRBYFLOAT", "f", "0x1p3"]], "8"],
    [
      "a float out of range is refused",
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
  "what is refused": [
    [
      "an unknown command is quoted with its arguments",
      [["FOO", "a", "b"]],
      "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' "
    ]
  ]
}

/** The initial values of the settings that the tests change. */
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
