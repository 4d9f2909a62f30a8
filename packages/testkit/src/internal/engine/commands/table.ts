/**
 * The table of all commands, by name.
 */
import type { Command } from "../registry.ts"
import { clientCommands } from "./client.ts"
import { configCommands } from "./config.ts"
import { connectionCommands } from "./connection.ts"
import { hashCommands } from "./hashes.ts"
import { keyCommands } from "./keys.ts"
import { listCommands } from "./lists.ts"
import { pubsubCommands } from "./pubsub.ts"
import { scriptingCommands } from "./scripting.ts"
import { serverCommands } from "./server.ts"
import { setCommands } from "./sets.ts"
import { sortedSetAlgebraCommands } from "./sortedSetAlgebra.ts"
import { sortedSetRangeCommands } from "./sortedSetRanges.ts"
import { sortedSetCommands } from "./sortedSets.ts"
import { streamGroupReadingCommands } from "./streamGroupReading.ts"
import { streamGroupCommands } from "./streamGroups.ts"
import { streamInfoCommands } from "./streamInfo.ts"
import { streamPendingCommands } from "./streamPending.ts"
import { streamReadingCommands } from "./streamReading.ts"
import { streamCommands } from "./streams.ts"
import { streamTrimmingCommands } from "./streamTrimming.ts"
import { stringCommands } from "./strings.ts"
import { transactionCommands } from "./transactions.ts"

export const commands: ReadonlyMap<string, Command> = new Map(
  [
    ...keyCommands,
    ...stringCommands,
    ...hashCommands,
    ...listCommands,
    ...setCommands,
    ...sortedSetCommands,
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
    ...scriptingCommands,
    ...connectionCommands,
    ...clientCommands,
    ...configCommands,
    ...serverCommands
  ].map((command) => [command.name, command])
)
