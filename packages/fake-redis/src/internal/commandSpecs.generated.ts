// Written by test/differential/commandSpecs.ts from the commands that redis-server 7.0 reports.
export const commandSpecs = `
acl|-2||0,0,0|@slow|||server|6.0.0
acl cat|-2|noscript loading stale|0,0,0|@slow|||server|6.0.0
acl deluser|-3|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl dryrun|-4|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|7.0.0
acl genpass|-2|noscript loading stale|0,0,0|@slow|||server|6.0.0
acl getuser|3|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl help|2|loading stale|0,0,0|@slow|||server|6.0.0
acl list|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl load|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl log|-2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl save|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl setuser|-3|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl users|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|6.0.0
acl whoami|2|noscript loading stale|0,0,0|@slow|||server|6.0.0
append|3|write denyoom fast|1,1,1|@write @string @fast||RW,insert:i1:r0,1,0|string|2.0.0
asking|1|fast|0,0,0|@fast @connection|||cluster|3.0.0
auth|-2|noscript loading stale fast no_auth allow_busy|0,0,0|@fast @connection|||connection|1.0.0
bgrewriteaof|1|admin noscript no_async_loading|0,0,0|@admin @slow @dangerous|||server|1.0.0
bgsave|-1|admin noscript no_async_loading|0,0,0|@admin @slow @dangerous|||server|1.0.0
bitcount|-2|readonly|1,1,1|@read @bitmap @slow||RO,access:i1:r0,1,0|bitmap|2.6.0
bitfield|-2|write denyoom|1,1,1|@write @bitmap @slow||RW,access,update,variable_flags:i1:r0,1,0|bitmap|3.2.0
bitfield_ro|-2|readonly fast|1,1,1|@read @bitmap @fast||RO,access:i1:r0,1,0|bitmap|6.0.0
bitop|-4|write denyoom|2,-1,1|@write @bitmap @slow||OW,update:i2:r0,1,0 RO,access:i3:r-1,1,0|bitmap|2.6.0
bitpos|-3|readonly|1,1,1|@read @bitmap @slow||RO,access:i1:r0,1,0|bitmap|2.8.7
blmove|6|write denyoom noscript blocking|1,2,1|@write @list @slow @blocking||RW,access,delete:i1:r0,1,0 RW,insert:i2:r0,1,0|list|6.2.0
blmpop|-5|write blocking movablekeys|0,0,0|@write @list @slow @blocking||RW,access,delete:i2:n0,1,1|list|7.0.0
blpop|-3|write noscript blocking|1,-2,1|@write @list @slow @blocking||RW,access,delete:i1:r-2,1,0|list|2.0.0
brpop|-3|write noscript blocking|1,-2,1|@write @list @slow @blocking||RW,access,delete:i1:r-2,1,0|list|2.0.0
brpoplpush|4|write denyoom noscript blocking|1,2,1|@write @list @slow @blocking||RW,access,delete:i1:r0,1,0 RW,insert:i2:r0,1,0|list|2.2.0
bzmpop|-5|write blocking movablekeys|0,0,0|@write @sortedset @slow @blocking||RW,access,delete:i2:n0,1,1|sorted-set|7.0.0
bzpopmax|-3|write noscript blocking fast|1,-2,1|@write @sortedset @fast @blocking||RW,access,delete:i1:r-2,1,0|sorted-set|5.0.0
bzpopmin|-3|write noscript blocking fast|1,-2,1|@write @sortedset @fast @blocking||RW,access,delete:i1:r-2,1,0|sorted-set|5.0.0
client|-2||0,0,0|@slow|||connection|2.4.0
client caching|3|noscript loading stale|0,0,0|@slow @connection|||connection|6.0.0
client getname|2|noscript loading stale|0,0,0|@slow @connection|||connection|2.6.9
client getredir|2|noscript loading stale|0,0,0|@slow @connection|||connection|6.0.0
client help|2|loading stale|0,0,0|@slow @connection|||connection|5.0.0
client id|2|noscript loading stale|0,0,0|@slow @connection|||connection|5.0.0
client info|2|noscript loading stale|0,0,0|@slow @connection|nondeterministic_output||connection|6.2.0
client kill|-3|admin noscript loading stale|0,0,0|@admin @slow @dangerous @connection|||connection|2.4.0
client list|-2|admin noscript loading stale|0,0,0|@admin @slow @dangerous @connection|nondeterministic_output||connection|2.4.0
client no-evict|3|admin noscript loading stale|0,0,0|@admin @slow @dangerous @connection|||connection|7.0.0
client pause|-3|admin noscript loading stale|0,0,0|@admin @slow @dangerous @connection|||connection|2.9.50
client reply|3|noscript loading stale|0,0,0|@slow @connection|||connection|3.2.0
client setname|3|noscript loading stale|0,0,0|@slow @connection|||connection|2.6.9
client trackinginfo|2|noscript loading stale|0,0,0|@slow @connection|||connection|6.2.0
client tracking|-3|noscript loading stale|0,0,0|@slow @connection|||connection|6.0.0
client unblock|-3|admin noscript loading stale|0,0,0|@admin @slow @dangerous @connection|||connection|5.0.0
client unpause|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous @connection|||connection|6.2.0
cluster|-2||0,0,0|@slow|||cluster|3.0.0
cluster addslotsrange|-4|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|7.0.0
cluster addslots|-3|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster bumpepoch|2|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|nondeterministic_output||cluster|3.0.0
cluster count-failure-reports|3|admin stale|0,0,0|@admin @slow @dangerous|nondeterministic_output||cluster|3.0.0
cluster countkeysinslot|3|stale|0,0,0|@slow|||cluster|3.0.0
cluster delslotsrange|-4|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|7.0.0
cluster delslots|-3|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster failover|-2|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster flushslots|2|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster forget|3|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster getkeysinslot|4|stale|0,0,0|@slow|nondeterministic_output||cluster|3.0.0
cluster help|2|loading stale|0,0,0|@slow|||cluster|5.0.0
cluster info|2|stale|0,0,0|@slow|nondeterministic_output||cluster|3.0.0
cluster keyslot|3|stale|0,0,0|@slow|||cluster|3.0.0
cluster links|2|stale|0,0,0|@slow|nondeterministic_output||cluster|7.0.0
cluster meet|-4|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster myid|2|stale|0,0,0|@slow|||cluster|3.0.0
cluster nodes|2|stale|0,0,0|@slow|nondeterministic_output||cluster|3.0.0
cluster replicas|3|admin stale|0,0,0|@admin @slow @dangerous|nondeterministic_output||cluster|5.0.0
cluster replicate|3|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster reset|-2|admin noscript stale|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster saveconfig|2|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster set-config-epoch|3|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster setslot|-4|admin stale no_async_loading|0,0,0|@admin @slow @dangerous|||cluster|3.0.0
cluster shards|2|stale|0,0,0|@slow|nondeterministic_output||cluster|7.0.0
cluster slaves|3|admin stale|0,0,0|@admin @slow @dangerous|nondeterministic_output||cluster|3.0.0
cluster slots|2|stale|0,0,0|@slow|nondeterministic_output||cluster|3.0.0
command|-1|loading stale|0,0,0|@slow @connection|nondeterministic_output_order||server|2.8.13
command count|2|loading stale|0,0,0|@slow @connection|||server|2.8.13
command docs|-2|loading stale|0,0,0|@slow @connection|nondeterministic_output_order||server|7.0.0
command getkeysandflags|-4|loading stale|0,0,0|@slow @connection|||server|7.0.0
command getkeys|-4|loading stale|0,0,0|@slow @connection|||server|2.8.13
command help|2|loading stale|0,0,0|@slow @connection|||server|5.0.0
command info|-2|loading stale|0,0,0|@slow @connection|nondeterministic_output_order||server|2.8.13
command list|-2|loading stale|0,0,0|@slow @connection|nondeterministic_output_order||server|7.0.0
config|-2||0,0,0|@slow|||server|2.0.0
config get|-3|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|2.0.0
config help|2|loading stale|0,0,0|@slow|||server|5.0.0
config resetstat|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|2.0.0
config rewrite|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|2.8.0
config set|-4|admin noscript loading stale|0,0,0|@admin @slow @dangerous|request_policy:all_nodes response_policy:all_succeeded||server|2.0.0
copy|-3|write denyoom|1,2,1|@keyspace @write @slow||RO,access:i1:r0,1,0 OW,update:i2:r0,1,0|generic|6.2.0
dbsize|1|readonly fast|0,0,0|@keyspace @read @fast|request_policy:all_shards response_policy:agg_sum||server|1.0.0
debug|-2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|1.0.0
decr|2|write denyoom fast|1,1,1|@write @string @fast||RW,access,update:i1:r0,1,0|string|1.0.0
decrby|3|write denyoom fast|1,1,1|@write @string @fast||RW,access,update:i1:r0,1,0|string|1.0.0
del|-2|write|1,-1,1|@keyspace @write @slow|request_policy:multi_shard response_policy:agg_sum|RM,delete:i1:r-1,1,0|generic|1.0.0
discard|1|noscript loading stale fast allow_busy|0,0,0|@fast @transaction|||transactions|2.0.0
dump|2|readonly|1,1,1|@keyspace @read @slow|nondeterministic_output|RO,access:i1:r0,1,0|generic|2.6.0
echo|2|loading stale fast|0,0,0|@fast @connection|||connection|1.0.0
eval|-3|noscript stale skip_monitor no_mandatory_keys movablekeys|0,0,0|@slow @scripting||RW,access,update:i2:n0,1,1|scripting|2.6.0
eval_ro|-3|readonly noscript stale skip_monitor no_mandatory_keys movablekeys|0,0,0|@slow @scripting||RO,access:i2:n0,1,1|scripting|7.0.0
evalsha|-3|noscript stale skip_monitor no_mandatory_keys movablekeys|0,0,0|@slow @scripting||RW,access,update:i2:n0,1,1|scripting|2.6.0
evalsha_ro|-3|readonly noscript stale skip_monitor no_mandatory_keys movablekeys|0,0,0|@slow @scripting||RO,access:i2:n0,1,1|scripting|7.0.0
exec|1|noscript loading stale skip_slowlog|0,0,0|@slow @transaction|||transactions|1.2.0
exists|-2|readonly fast|1,-1,1|@keyspace @read @fast|request_policy:multi_shard response_policy:agg_sum|RO:i1:r-1,1,0|generic|1.0.0
expire|-3|write fast|1,1,1|@keyspace @write @fast||RW,update:i1:r0,1,0|generic|1.0.0
expireat|-3|write fast|1,1,1|@keyspace @write @fast||RW,update:i1:r0,1,0|generic|1.2.0
expiretime|2|readonly fast|1,1,1|@keyspace @read @fast||RO,access:i1:r0,1,0|generic|7.0.0
failover|-1|admin noscript stale|0,0,0|@admin @slow @dangerous|||server|6.2.0
fcall|-3|noscript stale skip_monitor no_mandatory_keys movablekeys|0,0,0|@slow @scripting||RW,access,update:i2:n0,1,1|scripting|7.0.0
fcall_ro|-3|readonly noscript stale skip_monitor no_mandatory_keys movablekeys|0,0,0|@slow @scripting||RO,access:i2:n0,1,1|scripting|7.0.0
flushall|-1|write|0,0,0|@keyspace @write @slow @dangerous|request_policy:all_shards response_policy:all_succeeded||server|1.0.0
flushdb|-1|write|0,0,0|@keyspace @write @slow @dangerous|request_policy:all_shards response_policy:all_succeeded||server|1.0.0
function|-2||0,0,0|@slow|||scripting|7.0.0
function delete|3|write noscript|0,0,0|@write @slow @scripting|request_policy:all_shards response_policy:all_succeeded||scripting|7.0.0
function dump|2|noscript|0,0,0|@slow @scripting|||scripting|7.0.0
function flush|-2|write noscript|0,0,0|@write @slow @scripting|request_policy:all_shards response_policy:all_succeeded||scripting|7.0.0
function help|2|loading stale|0,0,0|@slow @scripting|||scripting|7.0.0
function kill|2|noscript allow_busy|0,0,0|@slow @scripting|request_policy:all_shards response_policy:one_succeeded||scripting|7.0.0
function list|-2|noscript|0,0,0|@slow @scripting|nondeterministic_output_order||scripting|7.0.0
function load|-3|write denyoom noscript|0,0,0|@write @slow @scripting|request_policy:all_shards response_policy:all_succeeded||scripting|7.0.0
function restore|-3|write denyoom noscript|0,0,0|@write @slow @scripting|request_policy:all_shards response_policy:all_succeeded||scripting|7.0.0
function stats|2|noscript allow_busy|0,0,0|@slow @scripting|nondeterministic_output request_policy:all_shards response_policy:special||scripting|7.0.0
geoadd|-5|write denyoom|1,1,1|@write @geo @slow||RW,update:i1:r0,1,0|geo|3.2.0
geodist|-4|readonly|1,1,1|@read @geo @slow||RO,access:i1:r0,1,0|geo|3.2.0
geohash|-2|readonly|1,1,1|@read @geo @slow||RO,access:i1:r0,1,0|geo|3.2.0
geopos|-2|readonly|1,1,1|@read @geo @slow||RO,access:i1:r0,1,0|geo|3.2.0
georadius|-6|write denyoom movablekeys|1,1,1|@write @geo @slow||RO,access:i1:r0,1,0 OW,update:kSTORE,6:r0,1,0 OW,update:kSTOREDIST,6:r0,1,0|geo|3.2.0
georadius_ro|-6|readonly|1,1,1|@read @geo @slow||RO,access:i1:r0,1,0|geo|3.2.10
georadiusbymember|-5|write denyoom movablekeys|1,1,1|@write @geo @slow||RO,access:i1:r0,1,0 OW,update:kSTORE,5:r0,1,0 OW,update:kSTOREDIST,5:r0,1,0|geo|3.2.0
georadiusbymember_ro|-5|readonly|1,1,1|@read @geo @slow||RO,access:i1:r0,1,0|geo|3.2.10
geosearch|-7|readonly|1,1,1|@read @geo @slow||RO,access:i1:r0,1,0|geo|6.2.0
geosearchstore|-8|write denyoom|1,2,1|@write @geo @slow||OW,update:i1:r0,1,0 RO,access:i2:r0,1,0|geo|6.2.0
get|2|readonly fast|1,1,1|@read @string @fast||RO,access:i1:r0,1,0|string|1.0.0
getbit|3|readonly fast|1,1,1|@read @bitmap @fast||RO,access:i1:r0,1,0|bitmap|2.2.0
getdel|2|write fast|1,1,1|@write @string @fast||RW,access,delete:i1:r0,1,0|string|6.2.0
getex|-2|write fast|1,1,1|@write @string @fast||RW,access,update:i1:r0,1,0|string|6.2.0
getrange|4|readonly|1,1,1|@read @string @slow||RO,access:i1:r0,1,0|string|2.4.0
getset|3|write denyoom fast|1,1,1|@write @string @fast||RW,access,update:i1:r0,1,0|string|1.0.0
hdel|-3|write fast|1,1,1|@write @hash @fast||RW,delete:i1:r0,1,0|hash|2.0.0
hello|-1|noscript loading stale fast no_auth allow_busy|0,0,0|@fast @connection|||connection|6.0.0
hexists|3|readonly fast|1,1,1|@read @hash @fast||RO:i1:r0,1,0|hash|2.0.0
hget|3|readonly fast|1,1,1|@read @hash @fast||RO,access:i1:r0,1,0|hash|2.0.0
hgetall|2|readonly|1,1,1|@read @hash @slow|nondeterministic_output_order|RO,access:i1:r0,1,0|hash|2.0.0
hincrby|4|write denyoom fast|1,1,1|@write @hash @fast||RW,access,update:i1:r0,1,0|hash|2.0.0
hincrbyfloat|4|write denyoom fast|1,1,1|@write @hash @fast||RW,access,update:i1:r0,1,0|hash|2.6.0
hkeys|2|readonly|1,1,1|@read @hash @slow|nondeterministic_output_order|RO,access:i1:r0,1,0|hash|2.0.0
hlen|2|readonly fast|1,1,1|@read @hash @fast||RO:i1:r0,1,0|hash|2.0.0
hmget|-3|readonly fast|1,1,1|@read @hash @fast||RO,access:i1:r0,1,0|hash|2.0.0
hmset|-4|write denyoom fast|1,1,1|@write @hash @fast||RW,update:i1:r0,1,0|hash|2.0.0
hrandfield|-2|readonly|1,1,1|@read @hash @slow|nondeterministic_output|RO,access:i1:r0,1,0|hash|6.2.0
hscan|-3|readonly|1,1,1|@read @hash @slow|nondeterministic_output|RO,access:i1:r0,1,0|hash|2.8.0
hset|-4|write denyoom fast|1,1,1|@write @hash @fast||RW,update:i1:r0,1,0|hash|2.0.0
hsetnx|4|write denyoom fast|1,1,1|@write @hash @fast||RW,insert:i1:r0,1,0|hash|2.0.0
hstrlen|3|readonly fast|1,1,1|@read @hash @fast||RO:i1:r0,1,0|hash|3.2.0
hvals|2|readonly|1,1,1|@read @hash @slow|nondeterministic_output_order|RO,access:i1:r0,1,0|hash|2.0.0
incr|2|write denyoom fast|1,1,1|@write @string @fast||RW,access,update:i1:r0,1,0|string|1.0.0
incrby|3|write denyoom fast|1,1,1|@write @string @fast||RW,access,update:i1:r0,1,0|string|1.0.0
incrbyfloat|3|write denyoom fast|1,1,1|@write @string @fast||RW,access,update:i1:r0,1,0|string|2.6.0
info|-1|loading stale|0,0,0|@slow @dangerous|nondeterministic_output request_policy:all_shards response_policy:special||server|1.0.0
keys|2|readonly|0,0,0|@keyspace @read @slow @dangerous|request_policy:all_shards nondeterministic_output_order||generic|1.0.0
lastsave|1|loading stale fast|0,0,0|@admin @fast @dangerous|nondeterministic_output||server|1.0.0
latency|-2||0,0,0|@slow|||server|2.8.13
latency doctor|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|nondeterministic_output request_policy:all_nodes response_policy:special||server|2.8.13
latency graph|3|admin noscript loading stale|0,0,0|@admin @slow @dangerous|nondeterministic_output request_policy:all_nodes response_policy:special||server|2.8.13
latency help|2|loading stale|0,0,0|@slow|||server|2.8.13
latency histogram|-2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|nondeterministic_output request_policy:all_nodes response_policy:special||server|7.0.0
latency history|3|admin noscript loading stale|0,0,0|@admin @slow @dangerous|nondeterministic_output request_policy:all_nodes response_policy:special||server|2.8.13
latency latest|2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|nondeterministic_output request_policy:all_nodes response_policy:special||server|2.8.13
latency reset|-2|admin noscript loading stale|0,0,0|@admin @slow @dangerous|request_policy:all_nodes response_policy:all_succeeded||server|2.8.13
lcs|-3|readonly|1,2,1|@read @string @slow||RO,access:i1:r1,1,0|string|7.0.0
lindex|3|readonly|1,1,1|@read @list @slow||RO,access:i1:r0,1,0|list|1.0.0
linsert|5|write denyoom|1,1,1|@write @list @slow||RW,insert:i1:r0,1,0|list|2.2.0
llen|2|readonly fast|1,1,1|@read @list @fast||RO:i1:r0,1,0|list|1.0.0
lmove|5|write denyoom|1,2,1|@write @list @slow||RW,access,delete:i1:r0,1,0 RW,insert:i2:r0,1,0|list|6.2.0
lmpop|-4|write movablekeys|0,0,0|@write @list @slow||RW,access,delete:i1:n0,1,1|list|7.0.0
lolwut|-1|readonly fast|0,0,0|@read @fast|||server|5.0.0
lpop|-2|write fast|1,1,1|@write @list @fast||RW,access,delete:i1:r0,1,0|list|1.0.0
lpos|-3|readonly|1,1,1|@read @list @slow||RO,access:i1:r0,1,0|list|6.0.6
lpush|-3|write denyoom fast|1,1,1|@write @list @fast||RW,insert:i1:r0,1,0|list|1.0.0
lpushx|-3|write denyoom fast|1,1,1|@write @list @fast||RW,insert:i1:r0,1,0|list|2.2.0
lrange|4|readonly|1,1,1|@read @list @slow||RO,access:i1:r0,1,0|list|1.0.0
lrem|4|write|1,1,1|@write @list @slow||RW,delete:i1:r0,1,0|list|1.0.0
lset|4|write denyoom|1,1,1|@write @list @slow||RW,update:i1:r0,1,0|list|1.0.0
ltrim|4|write|1,1,1|@write @list @slow||RW,delete:i1:r0,1,0|list|1.0.0
memory|-2||0,0,0|@slow|||server|4.0.0
memory doctor|2||0,0,0|@slow|nondeterministic_output request_policy:all_shards response_policy:special||server|4.0.0
memory help|2|loading stale|0,0,0|@slow|||server|4.0.0
memory malloc-stats|2||0,0,0|@slow|nondeterministic_output request_policy:all_shards response_policy:special||server|4.0.0
memory purge|2||0,0,0|@slow|request_policy:all_shards response_policy:all_succeeded||server|4.0.0
memory stats|2||0,0,0|@slow|nondeterministic_output request_policy:all_shards response_policy:special||server|4.0.0
memory usage|-3|readonly|2,2,1|@read @slow||RO:i2:r0,1,0|server|4.0.0
mget|-2|readonly fast|1,-1,1|@read @string @fast|request_policy:multi_shard|RO,access:i1:r-1,1,0|string|1.0.0
migrate|-6|write movablekeys|3,3,1|@keyspace @write @slow @dangerous|nondeterministic_output|RW,access,delete:i3:r0,1,0 RW,access,delete,incomplete:kKEYS,-2:r-1,1,0|generic|2.6.0
module|-2||0,0,0|@slow|||server|4.0.0
module help|2|loading stale|0,0,0|@slow|||server|5.0.0
module list|2|admin noscript|0,0,0|@admin @slow @dangerous|nondeterministic_output_order||server|4.0.0
module loadex|-3|admin noscript no_async_loading|0,0,0|@admin @slow @dangerous|||server|7.0.0
module load|-3|admin noscript no_async_loading|0,0,0|@admin @slow @dangerous|||server|4.0.0
module unload|3|admin noscript no_async_loading|0,0,0|@admin @slow @dangerous|||server|4.0.0
monitor|1|admin noscript loading stale|0,0,0|@admin @slow @dangerous|||server|1.0.0
move|3|write fast|1,1,1|@keyspace @write @fast||RW,access,update:i1:r0,1,0|generic|1.0.0
mset|-3|write denyoom|1,-1,2|@write @string @slow|request_policy:multi_shard response_policy:all_succeeded|OW,update:i1:r-1,2,0|string|1.0.1
msetnx|-3|write denyoom|1,-1,2|@write @string @slow|request_policy:multi_shard response_policy:agg_min|OW,insert:i1:r-1,2,0|string|1.0.1
multi|1|noscript loading stale fast allow_busy|0,0,0|@fast @transaction|||transactions|1.2.0
object|-2||0,0,0|@slow|||generic|2.2.3
object encoding|3|readonly|2,2,1|@keyspace @read @slow|nondeterministic_output|RO:i2:r0,1,0|generic|2.2.3
object freq|3|readonly|2,2,1|@keyspace @read @slow|nondeterministic_output|RO:i2:r0,1,0|generic|4.0.0
object help|2|loading stale|0,0,0|@keyspace @slow|||generic|6.2.0
object idletime|3|readonly|2,2,1|@keyspace @read @slow|nondeterministic_output|RO:i2:r0,1,0|generic|2.2.3
object refcount|3|readonly|2,2,1|@keyspace @read @slow|nondeterministic_output|RO:i2:r0,1,0|generic|2.2.3
persist|2|write fast|1,1,1|@keyspace @write @fast||RW,update:i1:r0,1,0|generic|2.2.0
pexpire|-3|write fast|1,1,1|@keyspace @write @fast||RW,update:i1:r0,1,0|generic|2.6.0
pexpireat|-3|write fast|1,1,1|@keyspace @write @fast||RW,update:i1:r0,1,0|generic|2.6.0
pexpiretime|2|readonly fast|1,1,1|@keyspace @read @fast||RO,access:i1:r0,1,0|generic|7.0.0
pfadd|-2|write denyoom fast|1,1,1|@write @hyperloglog @fast||RW,insert:i1:r0,1,0|hyperloglog|2.8.9
pfcount|-2|readonly|1,-1,1|@read @hyperloglog @slow||RW,access:i1:r-1,1,0|hyperloglog|2.8.9
pfdebug|3|write denyoom admin|2,2,1|@write @hyperloglog @admin @slow @dangerous||RW,access:i2:r0,1,0|hyperloglog|2.8.9
pfmerge|-2|write denyoom|1,-1,1|@write @hyperloglog @slow||RW,access,insert:i1:r0,1,0 RO,access:i2:r-1,1,0|hyperloglog|2.8.9
pfselftest|1|admin|0,0,0|@hyperloglog @admin @slow @dangerous|||hyperloglog|2.8.9
ping|-1|fast|0,0,0|@fast @connection|request_policy:all_shards response_policy:all_succeeded||connection|1.0.0
psetex|4|write denyoom|1,1,1|@write @string @slow||OW,update:i1:r0,1,0|string|2.6.0
psubscribe|-2|pubsub noscript loading stale|0,0,0|@pubsub @slow|||pubsub|2.0.0
psync|-3|admin noscript no_async_loading no_multi|0,0,0|@admin @slow @dangerous|||server|2.8.0
pttl|2|readonly fast|1,1,1|@keyspace @read @fast|nondeterministic_output|RO,access:i1:r0,1,0|generic|2.6.0
publish|3|pubsub loading stale fast|0,0,0|@pubsub @fast|||pubsub|2.0.0
pubsub|-2||0,0,0|@slow|||pubsub|2.8.0
pubsub channels|-2|pubsub loading stale|0,0,0|@pubsub @slow|||pubsub|2.8.0
pubsub help|2|loading stale|0,0,0|@slow|||pubsub|6.2.0
pubsub numpat|2|pubsub loading stale|0,0,0|@pubsub @slow|||pubsub|2.8.0
pubsub numsub|-2|pubsub loading stale|0,0,0|@pubsub @slow|||pubsub|2.8.0
pubsub shardchannels|-2|pubsub loading stale|0,0,0|@pubsub @slow|||pubsub|7.0.0
pubsub shardnumsub|-2|pubsub loading stale|0,0,0|@pubsub @slow|||pubsub|7.0.0
punsubscribe|-1|pubsub noscript loading stale|0,0,0|@pubsub @slow|||pubsub|2.0.0
quit|-1|noscript loading stale fast no_auth allow_busy|0,0,0|@fast @connection|||connection|1.0.0
randomkey|1|readonly|0,0,0|@keyspace @read @slow|request_policy:all_shards nondeterministic_output||generic|1.0.0
readonly|1|loading stale fast|0,0,0|@fast @connection|||cluster|3.0.0
readwrite|1|loading stale fast|0,0,0|@fast @connection|||cluster|3.0.0
rename|3|write|1,2,1|@keyspace @write @slow||RW,access,delete:i1:r0,1,0 OW,update:i2:r0,1,0|generic|1.0.0
renamenx|3|write fast|1,2,1|@keyspace @write @fast||RW,access,delete:i1:r0,1,0 OW,insert:i2:r0,1,0|generic|1.0.0
replconf|-1|admin noscript loading stale allow_busy|0,0,0|@admin @slow @dangerous|||server|3.0.0
replicaof|3|admin noscript stale no_async_loading|0,0,0|@admin @slow @dangerous|||server|5.0.0
reset|1|noscript loading stale fast no_auth allow_busy|0,0,0|@fast @connection|||connection|6.2.0
restore|-4|write denyoom|1,1,1|@keyspace @write @slow @dangerous||OW,update:i1:r0,1,0|generic|2.6.0
restore-asking|-4|write denyoom asking|1,1,1|@keyspace @write @slow @dangerous||OW,update:i1:r0,1,0|server|3.0.0
role|1|noscript loading stale fast|0,0,0|@admin @fast @dangerous|||server|2.8.12
rpop|-2|write fast|1,1,1|@write @list @fast||RW,access,delete:i1:r0,1,0|list|1.0.0
rpoplpush|3|write denyoom|1,2,1|@write @list @slow||RW,access,delete:i1:r0,1,0 RW,insert:i2:r0,1,0|list|1.2.0
rpush|-3|write denyoom fast|1,1,1|@write @list @fast||RW,insert:i1:r0,1,0|list|1.0.0
rpushx|-3|write denyoom fast|1,1,1|@write @list @fast||RW,insert:i1:r0,1,0|list|2.2.0
sadd|-3|write denyoom fast|1,1,1|@write @set @fast||RW,insert:i1:r0,1,0|set|1.0.0
save|1|admin noscript no_async_loading no_multi|0,0,0|@admin @slow @dangerous|||server|1.0.0
scan|-2|readonly|0,0,0|@keyspace @read @slow|nondeterministic_output request_policy:special||generic|2.8.0
scard|2|readonly fast|1,1,1|@read @set @fast||RO:i1:r0,1,0|set|1.0.0
script|-2||0,0,0|@slow|||scripting|2.6.0
script debug|3|noscript|0,0,0|@slow @scripting|||scripting|3.2.0
script exists|-3|noscript|0,0,0|@slow @scripting|request_policy:all_shards response_policy:agg_logical_and||scripting|2.6.0
script flush|-2|noscript|0,0,0|@slow @scripting|request_policy:all_nodes response_policy:all_succeeded||scripting|2.6.0
script help|2|loading stale|0,0,0|@slow @scripting|||scripting|5.0.0
script kill|2|noscript allow_busy|0,0,0|@slow @scripting|request_policy:all_shards response_policy:one_succeeded||scripting|2.6.0
script load|3|noscript stale|0,0,0|@slow @scripting|request_policy:all_nodes response_policy:all_succeeded||scripting|2.6.0
sdiff|-2|readonly|1,-1,1|@read @set @slow|nondeterministic_output_order|RO,access:i1:r-1,1,0|set|1.0.0
sdiffstore|-3|write denyoom|1,-1,1|@write @set @slow||OW,update:i1:r0,1,0 RO,access:i2:r-1,1,0|set|1.0.0
select|2|loading stale fast|0,0,0|@fast @connection|||connection|1.0.0
set|-3|write denyoom|1,1,1|@write @string @slow||RW,access,update,variable_flags:i1:r0,1,0|string|1.0.0
setbit|4|write denyoom|1,1,1|@write @bitmap @slow||RW,access,update:i1:r0,1,0|bitmap|2.2.0
setex|4|write denyoom|1,1,1|@write @string @slow||OW,update:i1:r0,1,0|string|2.0.0
setnx|3|write denyoom fast|1,1,1|@write @string @fast||OW,insert:i1:r0,1,0|string|1.0.0
setrange|4|write denyoom|1,1,1|@write @string @slow||RW,update:i1:r0,1,0|string|2.2.0
shutdown|-1|admin noscript loading stale no_multi allow_busy|0,0,0|@admin @slow @dangerous|||server|1.0.0
sinter|-2|readonly|1,-1,1|@read @set @slow|nondeterministic_output_order|RO,access:i1:r-1,1,0|set|1.0.0
sintercard|-3|readonly movablekeys|0,0,0|@read @set @slow||RO,access:i1:n0,1,1|set|7.0.0
sinterstore|-3|write denyoom|1,-1,1|@write @set @slow||RW,update:i1:r0,1,0 RO,access:i2:r-1,1,0|set|1.0.0
sismember|3|readonly fast|1,1,1|@read @set @fast||RO:i1:r0,1,0|set|1.0.0
slaveof|3|admin noscript stale no_async_loading|0,0,0|@admin @slow @dangerous|||server|1.0.0
slowlog|-2||0,0,0|@slow|||server|2.2.12
slowlog get|-2|admin loading stale|0,0,0|@admin @slow @dangerous|request_policy:all_nodes nondeterministic_output||server|2.2.12
slowlog help|2|loading stale|0,0,0|@slow|||server|6.2.0
slowlog len|2|admin loading stale|0,0,0|@admin @slow @dangerous|request_policy:all_nodes response_policy:agg_sum nondeterministic_output||server|2.2.12
slowlog reset|2|admin loading stale|0,0,0|@admin @slow @dangerous|request_policy:all_nodes response_policy:all_succeeded||server|2.2.12
smembers|2|readonly|1,1,1|@read @set @slow|nondeterministic_output_order|RO,access:i1:r0,1,0|set|1.0.0
smismember|-3|readonly fast|1,1,1|@read @set @fast||RO,access:i1:r0,1,0|set|6.2.0
smove|4|write fast|1,2,1|@write @set @fast||RW,access,delete:i1:r0,1,0 RW,insert:i2:r0,1,0|set|1.0.0
sort|-2|write denyoom movablekeys|1,1,1|@write @set @sortedset @list @slow @dangerous||RO,access:i1:r0,1,0 RO,access:?:? OW,update:?:?|generic|1.0.0
sort_ro|-2|readonly movablekeys|1,1,1|@read @set @sortedset @list @slow @dangerous||RO,access:i1:r0,1,0 RO,access:?:?|generic|7.0.0
spop|-2|write fast|1,1,1|@write @set @fast|nondeterministic_output|RW,access,delete:i1:r0,1,0|set|1.0.0
spublish|3|pubsub loading stale fast|1,1,1|@pubsub @fast||not_key:i1:r0,1,0|pubsub|7.0.0
srandmember|-2|readonly|1,1,1|@read @set @slow|nondeterministic_output|RO,access:i1:r0,1,0|set|1.0.0
srem|-3|write fast|1,1,1|@write @set @fast||RW,delete:i1:r0,1,0|set|1.0.0
sscan|-3|readonly|1,1,1|@read @set @slow|nondeterministic_output|RO,access:i1:r0,1,0|set|2.8.0
ssubscribe|-2|pubsub noscript loading stale|1,-1,1|@pubsub @slow||not_key:i1:r-1,1,0|pubsub|7.0.0
strlen|2|readonly fast|1,1,1|@read @string @fast||RO:i1:r0,1,0|string|2.2.0
subscribe|-2|pubsub noscript loading stale|0,0,0|@pubsub @slow|||pubsub|2.0.0
substr|4|readonly|1,1,1|@read @string @slow||RO,access:i1:r0,1,0|string|1.0.0
sunion|-2|readonly|1,-1,1|@read @set @slow|nondeterministic_output_order|RO,access:i1:r-1,1,0|set|1.0.0
sunionstore|-3|write denyoom|1,-1,1|@write @set @slow||OW,update:i1:r0,1,0 RO,access:i2:r-1,1,0|set|1.0.0
sunsubscribe|-1|pubsub noscript loading stale|1,-1,1|@pubsub @slow||not_key:i1:r-1,1,0|pubsub|7.0.0
swapdb|3|write fast|0,0,0|@keyspace @write @fast @dangerous|||server|4.0.0
sync|1|admin noscript no_async_loading no_multi|0,0,0|@admin @slow @dangerous|||server|1.0.0
time|1|loading stale fast|0,0,0|@fast|nondeterministic_output||server|2.6.0
touch|-2|readonly fast|1,-1,1|@keyspace @read @fast|request_policy:multi_shard response_policy:agg_sum|RO:i1:r-1,1,0|generic|3.2.1
ttl|2|readonly fast|1,1,1|@keyspace @read @fast|nondeterministic_output|RO,access:i1:r0,1,0|generic|1.0.0
type|2|readonly fast|1,1,1|@keyspace @read @fast||RO:i1:r0,1,0|generic|1.0.0
unlink|-2|write fast|1,-1,1|@keyspace @write @fast|request_policy:multi_shard response_policy:agg_sum|RM,delete:i1:r-1,1,0|generic|4.0.0
unsubscribe|-1|pubsub noscript loading stale|0,0,0|@pubsub @slow|||pubsub|2.0.0
unwatch|1|noscript loading stale fast allow_busy|0,0,0|@fast @transaction|||transactions|2.2.0
wait|3|noscript|0,0,0|@slow @connection|request_policy:all_shards response_policy:agg_min||generic|3.0.0
watch|-2|noscript loading stale fast allow_busy|1,-1,1|@fast @transaction||RO:i1:r-1,1,0|transactions|2.2.0
xack|-4|write fast|1,1,1|@write @stream @fast||RW,update:i1:r0,1,0|stream|5.0.0
xadd|-5|write denyoom fast|1,1,1|@write @stream @fast|nondeterministic_output|RW,update:i1:r0,1,0|stream|5.0.0
xautoclaim|-6|write fast|1,1,1|@write @stream @fast|nondeterministic_output|RW,delete:i1:r0,1,0|stream|6.2.0
xclaim|-6|write fast|1,1,1|@write @stream @fast|nondeterministic_output|RW,update:i1:r0,1,0|stream|5.0.0
xdel|-3|write fast|1,1,1|@write @stream @fast||RW,delete:i1:r0,1,0|stream|5.0.0
xgroup|-2||0,0,0|@slow|||stream|5.0.0
xgroup createconsumer|5|write denyoom|2,2,1|@write @stream @slow||RW,insert:i2:r0,1,0|stream|6.2.0
xgroup create|-5|write denyoom|2,2,1|@write @stream @slow||RW,insert:i2:r0,1,0|stream|5.0.0
xgroup delconsumer|5|write|2,2,1|@write @stream @slow||RW,delete:i2:r0,1,0|stream|5.0.0
xgroup destroy|4|write|2,2,1|@write @stream @slow||RW,delete:i2:r0,1,0|stream|5.0.0
xgroup help|2|loading stale|0,0,0|@stream @slow|||stream|5.0.0
xgroup setid|-5|write|2,2,1|@write @stream @slow||RW,update:i2:r0,1,0|stream|5.0.0
xinfo|-2||0,0,0|@slow|||stream|5.0.0
xinfo consumers|4|readonly|2,2,1|@read @stream @slow|nondeterministic_output|RO,access:i2:r0,1,0|stream|5.0.0
xinfo groups|3|readonly|2,2,1|@read @stream @slow||RO,access:i2:r0,1,0|stream|5.0.0
xinfo help|2|loading stale|0,0,0|@stream @slow|||stream|5.0.0
xinfo stream|-3|readonly|2,2,1|@read @stream @slow||RO,access:i2:r0,1,0|stream|5.0.0
xlen|2|readonly fast|1,1,1|@read @stream @fast||RO:i1:r0,1,0|stream|5.0.0
xpending|-3|readonly|1,1,1|@read @stream @slow|nondeterministic_output|RO,access:i1:r0,1,0|stream|5.0.0
xrange|-4|readonly|1,1,1|@read @stream @slow||RO,access:i1:r0,1,0|stream|5.0.0
xread|-4|readonly blocking movablekeys|0,0,0|@read @stream @slow @blocking||RO,access:kSTREAMS,1:r-1,1,2|stream|5.0.0
xreadgroup|-7|write blocking movablekeys|0,0,0|@write @stream @slow @blocking||RO,access:kSTREAMS,4:r-1,1,2|stream|5.0.0
xrevrange|-4|readonly|1,1,1|@read @stream @slow||RO,access:i1:r0,1,0|stream|5.0.0
xsetid|-3|write denyoom fast|1,1,1|@write @stream @fast||RW,update:i1:r0,1,0|stream|5.0.0
xtrim|-4|write|1,1,1|@write @stream @slow|nondeterministic_output|RW,delete:i1:r0,1,0|stream|5.0.0
zadd|-4|write denyoom fast|1,1,1|@write @sortedset @fast||RW,update:i1:r0,1,0|sorted-set|1.2.0
zcard|2|readonly fast|1,1,1|@read @sortedset @fast||RO:i1:r0,1,0|sorted-set|1.2.0
zcount|4|readonly fast|1,1,1|@read @sortedset @fast||RO,access:i1:r0,1,0|sorted-set|2.0.0
zdiff|-3|readonly movablekeys|0,0,0|@read @sortedset @slow||RO,access:i1:n0,1,1|sorted-set|6.2.0
zdiffstore|-4|write denyoom movablekeys|1,1,1|@write @sortedset @slow||OW,update:i1:r0,1,0 RO,access:i2:n0,1,1|sorted-set|6.2.0
zincrby|4|write denyoom fast|1,1,1|@write @sortedset @fast||RW,access,update:i1:r0,1,0|sorted-set|1.2.0
zinter|-3|readonly movablekeys|0,0,0|@read @sortedset @slow||RO,access:i1:n0,1,1|sorted-set|6.2.0
zintercard|-3|readonly movablekeys|0,0,0|@read @sortedset @slow||RO,access:i1:n0,1,1|sorted-set|7.0.0
zinterstore|-4|write denyoom movablekeys|1,1,1|@write @sortedset @slow||OW,update:i1:r0,1,0 RO,access:i2:n0,1,1|sorted-set|2.0.0
zlexcount|4|readonly fast|1,1,1|@read @sortedset @fast||RO,access:i1:r0,1,0|sorted-set|2.8.9
zmpop|-4|write movablekeys|0,0,0|@write @sortedset @slow||RW,access,delete:i1:n0,1,1|sorted-set|7.0.0
zmscore|-3|readonly fast|1,1,1|@read @sortedset @fast||RO,access:i1:r0,1,0|sorted-set|6.2.0
zpopmax|-2|write fast|1,1,1|@write @sortedset @fast||RW,access,delete:i1:r0,1,0|sorted-set|5.0.0
zpopmin|-2|write fast|1,1,1|@write @sortedset @fast||RW,access,delete:i1:r0,1,0|sorted-set|5.0.0
zrandmember|-2|readonly|1,1,1|@read @sortedset @slow|nondeterministic_output|RO,access:i1:r0,1,0|sorted-set|6.2.0
zrange|-4|readonly|1,1,1|@read @sortedset @slow||RO,access:i1:r0,1,0|sorted-set|1.2.0
zrangebylex|-4|readonly|1,1,1|@read @sortedset @slow||RO,access:i1:r0,1,0|sorted-set|2.8.9
zrangebyscore|-4|readonly|1,1,1|@read @sortedset @slow||RO,access:i1:r0,1,0|sorted-set|1.0.5
zrangestore|-5|write denyoom|1,2,1|@write @sortedset @slow||OW,update:i1:r0,1,0 RO,access:i2:r0,1,0|sorted-set|6.2.0
zrank|3|readonly fast|1,1,1|@read @sortedset @fast||RO,access:i1:r0,1,0|sorted-set|2.0.0
zrem|-3|write fast|1,1,1|@write @sortedset @fast||RW,delete:i1:r0,1,0|sorted-set|1.2.0
zremrangebylex|4|write|1,1,1|@write @sortedset @slow||RW,delete:i1:r0,1,0|sorted-set|2.8.9
zremrangebyrank|4|write|1,1,1|@write @sortedset @slow||RW,delete:i1:r0,1,0|sorted-set|2.0.0
zremrangebyscore|4|write|1,1,1|@write @sortedset @slow||RW,delete:i1:r0,1,0|sorted-set|1.2.0
zrevrange|-4|readonly|1,1,1|@read @sortedset @slow||RO,access:i1:r0,1,0|sorted-set|1.2.0
zrevrangebylex|-4|readonly|1,1,1|@read @sortedset @slow||RO,access:i1:r0,1,0|sorted-set|2.8.9
zrevrangebyscore|-4|readonly|1,1,1|@read @sortedset @slow||RO,access:i1:r0,1,0|sorted-set|2.2.0
zrevrank|3|readonly fast|1,1,1|@read @sortedset @fast||RO,access:i1:r0,1,0|sorted-set|2.0.0
zscan|-3|readonly|1,1,1|@read @sortedset @slow|nondeterministic_output|RO,access:i1:r0,1,0|sorted-set|2.8.0
zscore|3|readonly fast|1,1,1|@read @sortedset @fast||RO,access:i1:r0,1,0|sorted-set|1.2.0
zunion|-3|readonly movablekeys|0,0,0|@read @sortedset @slow||RO,access:i1:n0,1,1|sorted-set|6.2.0
zunionstore|-4|write denyoom movablekeys|1,1,1|@write @sortedset @slow||OW,update:i1:r0,1,0 RO,access:i2:n0,1,1|sorted-set|2.0.0
`.trim()
