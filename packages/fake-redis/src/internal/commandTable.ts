/** All commands by name. */
import type { Command } from "./command.ts"
import { aclCommands } from "./commands/acl.ts"
import { bitfieldCommands } from "./commands/bitfields.ts"
import { bitmapCommands } from "./commands/bitmaps.ts"
import { clientCommands } from "./commands/client.ts"
import { commandCommands } from "./commands/command.ts"
import { configCommands } from "./commands/config.ts"
import { connectionCommands } from "./commands/connection.ts"
import { diagnosticCommands } from "./commands/diagnostics.ts"
import { dumpCommands } from "./commands/dumps.ts"
import { functionCommands } from "./commands/functions.ts"
import { geoCommands } from "./commands/geo.ts"
import { hashCommands } from "./commands/hashes.ts"
import { hyperLogLogCommands } from "./commands/hyperLogLogs.ts"
import { keyCommands } from "./commands/keys.ts"
import { lcsCommands } from "./commands/lcs.ts"
import { listCommands } from "./commands/lists.ts"
import { streamPendingCommands } from "./commands/pendingEntries.ts"
import { pubsubCommands } from "./commands/pubsub.ts"
import { scriptCommands } from "./commands/scripts.ts"
import { serverCommands } from "./commands/server.ts"
import { setCommands } from "./commands/sets.ts"
import { sortCommands } from "./commands/sort.ts"
import { sortedSetAlgebraCommands } from "./commands/sortedSetAlgebra.ts"
import { sortedSetPopCommands } from "./commands/sortedSetPops.ts"
import { sortedSetRangeCommands } from "./commands/sortedSetRanges.ts"
import { sortedSetCommands } from "./commands/sortedSets.ts"
import { streamGroupReadingCommands } from "./commands/streamGroupReads.ts"
import { streamGroupCommands } from "./commands/streamGroups.ts"
import { streamInfoCommands } from "./commands/streamInfo.ts"
import { streamReadingCommands } from "./commands/streamReads.ts"
import { streamCommands } from "./commands/streams.ts"
import { streamTrimmingCommands } from "./commands/streamTrim.ts"
import { stringCommands } from "./commands/strings.ts"
import { transactionCommands } from "./commands/transactions.ts"

export const commands: ReadonlyMap<string, Command> = new Map(
  [
    ...keyCommands,
    ...dumpCommands,
    ...stringCommands,
    ...bitmapCommands,
    ...bitfieldCommands,
    ...hyperLogLogCommands,
    ...geoCommands,
    ...sortCommands,
    ...lcsCommands,
    ...hashCommands,
    ...listCommands,
    ...setCommands,
    ...sortedSetCommands,
    ...sortedSetPopCommands,
    ...sortedSetRangeCommands,
    ...sortedSetAlgebraCommands,
    ...streamCommands,
    ...streamTrimmingCommands,
    ...streamReadingCommands,
    ...streamGroupCommands,
    ...streamGroupReadingCommands,
    ...streamPendingCommands,
    ...streamInfoCommands,
    ...pubsubCommands,
    ...transactionCommands,
    ...scriptCommands,
    ...functionCommands,
    ...connectionCommands,
    ...clientCommands,
    ...aclCommands,
    ...configCommands,
    ...serverCommands,
    ...commandCommands,
    ...diagnosticCommands
  ].map((command) => [command.name, command])
)
