/** Compares the bytes that both servers write in RESP2 and RESP3: types, nils, pushes and confirmations. */
import { openRaw } from "../rawSocket.ts"
import { alike } from "./servers.ts"

/**
 * Each line contains the inline commands for one connection. Their replies have a defined order and are the same on
 * every server. Each line unsubscribes from its channels, because RESP2 allows few commands on a subscribed connection.
 */
const both: ReadonlyArray<string> = [
  "HSET h a 1 ; HGETALL h ; HRANDFIELD h 1 WITHVALUES ; HGET h no ; HMGET h a no ; CONFIG GET maxmemory",
  "SADD s a ; SMEMBERS s ; SINTER s s ; SPOP s 1 ; SPOP s ; SMEMBERS s",
  "ZADD z 1.5 a 2 b 1e300 c -inf d ; ZRANGE z 0 -1 WITHSCORES ; ZSCORE z a ; ZSCORE z no ; ZMSCORE z a no ; ZPOPMIN z ; ZPOPMAX z 1",
  "ZADD z 1 a ; ZADD z INCR 2 a ; ZADD z NX INCR 2 a ; ZINCRBY z 1 a ; ZUNION 1 z WITHSCORES ; ZRANDMEMBER z 1 WITHSCORES ; ZMPOP 1 z MIN ; ZMPOP 1 z MIN",
  "ZADD z 1 a ; BZPOPMIN z 1 ; BZPOPMIN z 0.01 ; ZADD z 1 a 2 b ; BZMPOP 1 1 z MAX COUNT 2",
  "LPOP l ; LPOP l 1 ; BLPOP l 0.01 ; BLMOVE l m LEFT LEFT 0.01 ; LMPOP 1 l LEFT ; RPUSH l a b ; LMPOP 1 l LEFT COUNT 2",
  "XADD x 1-1 a b ; XREAD STREAMS x 0 ; XREAD STREAMS x 9 ; XGROUP CREATE x g 0 ; XREADGROUP GROUP g c STREAMS x > ; XPENDING x g ; XINFO GROUPS x",
  "XADD x 1-1 a b ; XINFO STREAM x ; XINFO STREAM x FULL ; XRANGE x - + ; XAUTOCLAIM x g c 0 0",
  "MULTI ; HSET h a 1 ; HGETALL h ; GET no ; LPOP l 1 ; EXEC",
  "WATCH k ; SET k 1 ; MULTI ; GET k ; EXEC",
  "MULTI ; NOPE ; EXEC",
  "SUBSCRIBE a ; PUBLISH a hello ; PING ; GET k ; UNSUBSCRIBE ; UNSUBSCRIBE ; PSUBSCRIBE p* ; PUNSUBSCRIBE ; SSUBSCRIBE s ; SUNSUBSCRIBE",
  "SUBSCRIBE a ; MULTI ; PUBLISH a x ; PING ; SET k 1 ; PUBLISH a y ; EXEC ; PING ; UNSUBSCRIBE",
  "CLIENT REPLY OFF ; SUBSCRIBE a ; PING ; PSUBSCRIBE p* ; PUBLISH a hidden ; UNSUBSCRIBE a ; PUNSUBSCRIBE p* ; CLIENT REPLY ON",
  "CLIENT REPLY SKIP ; SUBSCRIBE a ; CLIENT REPLY SKIP ; UNSUBSCRIBE a ; PING",
  "CLIENT TRACKING ON ; GET k ; SET k 1 ; SET k 2 ; CLIENT TRACKINGINFO ; CLIENT GETREDIR",
  "CLIENT TRACKING ON OPTIN ; CLIENT CACHING YES ; CLIENT TRACKINGINFO ; CLIENT CACHING NO ; CLIENT TRACKING OFF ; CLIENT TRACKINGINFO",
  "CLIENT REPLY OFF ; PING ; CLIENT REPLY ON ; CLIENT REPLY SKIP ; PING ; PING",
  "EVAL \"return {1, 'a', false, {ok='OK'}, {err='BAD x'}, true, 1.9}\" 0",
  "EVAL \"return {double=3.25}\" 0 ; EVAL \"return {map={a=1}}\" 0 ; EVAL \"return {set={a=true}}\" 0 ; EVAL \"return {big_number='12'}\" 0",
  "EVAL \"redis.setresp(3) return true\" 0 ; EVAL \"redis.setresp(3) return redis.call('get', 'no')\" 0 ; EVAL \"return {verbatim_string={string='hi', format='txt'}}\" 0",
  "HSET h a 1 ; EVAL \"redis.setresp(3) return redis.call('hgetall', 'h')\" 0 ; EVAL \"redis.setresp(4)\" 0",
  "SET a ohmytext ; SET b mynewtext ; LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN ; LCS a b ; LCS a b LEN",
  "COMMAND GETKEYS MSET a 1 b 2 ; COMMAND INFO nope ; PUBSUB NUMSUB a ; OBJECT ENCODING no",
  "RESET ; PING",
  "HELLO 9 ; HELLO x ; HELLO 2 FOO ; HELLO 2 AUTH no way"
]

const withoutIds = (text: string): string => text.replace(/id\r\n:[0-9]+\r\n/g, "id\r\n:1\r\n")

for (const protocol of [2, 3]) {
  alike(`RESP${protocol}`, both, async (where) => {
    const results: Record<string, string> = {}
    for (const commands of both) {
      const client = await openRaw(where)
      client.write(`FLUSHALL\r\nHELLO ${protocol}\r\n${commands.split(" ; ").join("\r\n")}\r\n`)
      // Mark the end with ECHO: Redis drops a blocked client that closes its half of the connection
      client.write("ECHO the-end\r\n")
      results[commands] = withoutIds(await client.until((text) => text.endsWith("the-end\r\n")))
      client.socket.destroy()
    }
    return results
  })
}
