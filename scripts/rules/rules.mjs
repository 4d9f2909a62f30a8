// The protocol's rules, and how to break each one: replace the text `from` in a file with `to`. `plan` is the
// simulator plan to run, `scopes` are the explorer's programs in which the rule matters, and `tests` are the module's
// tests. A `reason` says why no schedule can reveal the broken rule.
const core = "packages/core/src/internal"
const mutexLua = "packages/redis/src/internal/mutex/lua/include"
const streamLua = "packages/redis/src/streams/internal/lua"
const unit = (folder, ...names) => names.map((name) => `packages/core/test/${folder}/${name}.test.ts`)
const memory = (...names) => names.map((name) => `packages/redis/test/memory/${name}.test.ts`)

const mutex = (rule, file, from, to, tests, scopes) => ({
  rule,
  file,
  from,
  to,
  tests,
  plan: "mutex",
  ...(Array.isArray(scopes) ? { scopes } : { scopes: [], reason: scopes })
})
const streams = (rule, file, from, to, tests, scopes) => ({
  rule,
  file: `${streamLua}/${file}`,
  from,
  to,
  tests: memory(...tests),
  plan: "streams",
  scopes
})

const storeTests = ["streamStore", "streamForeignWrites"]

const grant = `${core}/mutex/grantMessage.ts`
const grantTests = unit("mutex", "grantByMessage", "fleetPlace")

export const rules = [
  mutex(
    "H5: a grant without a larger token is void",
    grant,
    "stamp === undefined || grant.token <= stamp.token",
    "stamp === undefined",
    grantTests,
    ["revived"]
  ),
  mutex(
    "H5: a grant from before the server's clock was set back is void",
    grant,
    "  if (after < 0) return undefined\n",
    "",
    grantTests,
    "not visible in any schedule: without the rule, the lease counts from an earlier instant and ends sooner"
  ),
  mutex(
    "H5: the age of a grant counts from the request before it",
    grant,
    "    monotonic: Math.min(sent.monotonic + after, now.monotonic),\n    wall: Math.min(sent.wall + after, now.wall)\n",
    "    ...now\n",
    grantTests,
    ["clocks"]
  ),
  mutex(
    "H5: a granted lease ends earlier for its owner than on the server",
    grant,
    "grant.millis - marginMillis(after + grant.millis)",
    "grant.millis",
    grantTests,
    ["clocks"]
  ),
  mutex(
    "H5: a grant with less than half of its period left is void",
    grant,
    "lease.left(now) < grant.millis / 2 ? undefined : lease",
    "lease",
    grantTests,
    ["clocks"]
  ),
  mutex(
    "H5: a grant that follows a gap in the subscription is only a hint",
    `${core}/mutex/placePlan.ts`,
    "if (place.heard === undefined || (place.heard._tag === \"YourTurn\" && wakeUp._tag === \"YourTurn\")) place.heard = wakeUp",
    "place.heard = wakeUp",
    unit("mutex", "placePlan", "fleetPlace"),
    "not visible in any schedule: the rules of order and age also apply to this grant"
  ),
  mutex(
    "H5: the confirmation of a grant is sent before the work starts",
    `${core}/mutex/localQueue.ts`,
    "if (lease.isUnconfirmed) this.layer.leases.confirm(lease)",
    "",
    unit("mutex", "grantByMessage", "freshLease"),
    ["paused"]
  ),
  mutex(
    "H5: only a waiter that queued within a confirm period is fresh",
    `${mutexLua}/handOver.lua`,
    " and age >= 0 and age <= confirm * 1000",
    "",
    memory("mutexScripts", "mutexStore"),
    ["silent"]
  ),
  mutex(
    "L1: a lease ends earlier for its owner than on the server",
    `${core}/optionChecks.ts`,
    "Math.max(100, leaseMillis * 0.05)",
    "0",
    unit("mutex", "withLock", "heldLease", "leaseOptions"),
    ["renewed"]
  ),
  mutex(
    "L1: a renewed lease counts from before the request",
    `${core}/lease/leaseRenewer.ts`,
    "extend(renewed, sent)",
    "extend(renewed, now)",
    [...unit("lease", "leaseRenewer"), ...unit("mutex", "heldLease", "withLock")],
    ["renewed"]
  ),
  mutex(
    "L1: a lease ends at the earlier of its monotonic and wall deadlines",
    `${core}/lease/leaseDeadline.ts`,
    "const wall = this.wallDeadline - now.wall",
    "const wall = monotonic",
    [...unit("lease", "leaseRenewer", "endedLease"), ...unit("mutex", "heldLease", "withLock", "release")],
    ["paused"]
  ),
  mutex(
    "L2: a failed renewal is retried",
    `${core}/lease/leaseRenewer.ts`,
    "if (group.isOpen()) retryAfter(group, now, delay)",
    "",
    [...unit("lease", "leaseRenewer"), ...unit("mutex", "heldLease", "withLock")],
    ["renewed"]
  ),
  mutex(
    "L3: a loss interrupts protected work",
    `${core}/lease/ownedLease.ts`,
    "this.protectedWork?.interrupt()",
    "",
    unit("mutex", "heldLease", "withLock"),
    ["renewed"]
  ),
  mutex(
    "L4: a release waits until the work has ended",
    `${core}/mutex/heldLeases.ts`,
    "return ending === undefined ? sendRelease(lease) : Effect.andThen(ending, sendRelease(lease))",
    "return sendRelease(lease)",
    unit("mutex", "release", "withLock", "heldLease"),
    ["detached"]
  ),
  mutex(
    "L5: the guard decides when a lease is renewed",
    `${core}/lease/leaseDeadline.ts`,
    "this.nextRenewal = Math.ceil(this.renewed.monotonic + Math.min(this.longestPace, paceMillis))",
    "",
    [...unit("lease", "leaseRenewer"), ...unit("mutex", "mutexSchedule", "heldLease")],
    "no schedule can reveal it: it only affects how often a lease is renewed"
  ),
  mutex(
    "L6: due leases share a request",
    `${core}/mutex/heldLeases.ts`,
    "batchSize: 500",
    "batchSize: 1",
    [...unit("lease", "leaseRenewer"), ...unit("mutex", "heldLease", "withLock")],
    "no schedule can reveal it: it only affects how many requests are sent"
  ),
  streams(
    "the end of a data stream is recorded",
    "markDone.lua",
    "if committed and endedBy ~= entry then",
    "if false then",
    storeTests,
    ["ended"]
  ),
  streams(
    "an announcement that may fail again is not dead-lettered",
    "takeLeases.lua",
    "if not repeated and count >= tonumber(maxFailures) and age >= tonumber(period) then",
    "if not repeated and count > 0 then",
    storeTests,
    ["hanging", "stream"]
  ),
  streams(
    "an announcement that has failed too often is dead-lettered",
    "takeLeases.lua",
    "if not repeated and count >= tonumber(maxFailures) and age >= tonumber(period) then",
    "if false then",
    storeTests,
    ["hanging"]
  ),
  streams("an expired lease counts as a failure", "takeLeases.lua", "    count = count + 1\n", "", storeTests, [
    "hanging"
  ]),
  streams(
    "takeLeases: a data stream with another owner is not taken",
    "takeLeases.lua",
    "  if streamOwner and not token then\n    return occupied(streamLease, streamOwner)\n  elseif",
    "  if",
    storeTests,
    ["twice"]
  ),
  streams(
    "takeLeases: an entry with another owner is not taken",
    "takeLeases.lua",
    "  elseif entryOwner and entryOwner ~= value and\n    (streamOwner or not isLapsing(entryLease, entryOwner)) then\n    return occupied(entryLease, entryOwner)\n",
    "",
    storeTests,
    ["go"]
  ),
  ...["markDone", "yieldLeases", "handOverLeases", "recordFailures", "deadLetterAnnouncements"].map((script) =>
    streams(
      `${script} rejects a stale owner`,
      `${script}.lua`,
      "--- @include include/ownerCheck.lua",
      {
        inline: "include/ownerCheck.lua",
        from:
          "if redis.call('GET', entryLease) ~= value or redis.call('GET', streamLease) ~= value .. '@@' .. token then",
        to: "if false then"
      },
      storeTests,
      [script === "handOverLeases" ? "rebalance" : "late"]
    )
  ),
  streams(
    "commitCheckpoints rejects a stale owner",
    "commitCheckpoints.lua",
    "if redis.call('GET', streamLease) ~= leaseValue then",
    "if false then",
    [...storeTests, "streamMessages"],
    ["late"]
  ),
  streams(
    "deadLetterMessage rejects a stale owner",
    "deadLetterMessage.lua",
    "if redis.call('GET', streamLease) ~= leaseValue then",
    "if false then",
    storeTests,
    ["late"]
  ),
  streams(
    "renewLeases rejects a stale owner",
    "renewLeases.lua",
    "if entryIsMine and streamIsMine then",
    "if entryOwner or streamOwner then",
    storeTests,
    ["severed"]
  )
]
