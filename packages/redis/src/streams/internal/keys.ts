/**
 * Builds the names of all keys and channels for stream ownership.
 *
 * The load-balancer stream, its group and the entry leases have the same names as in redis-stream-client-go. On a Redis
 * Cluster, all of a service's keys are in one slot if the names of the service and its data streams contain the same
 * hash tag.
 */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { leaseSeparator, type Ownership, type ServiceName } from "@effect-simba/core/streams/StreamStore"
import * as Schema from "effect/Schema"

/** Stream: the load-balancer stream, to which data streams are announced. */
export const input = (service: ServiceName): string => `${service}-input`

/** The name of the load-balancer stream's consumer group. */
export const group = (service: ServiceName): string => `${service}-group`

/** String: the consumer and the epoch that own this entry. Expires with the lease. */
export const entryLease = (stream: StreamName, entry: EntryId): string => `${stream}${leaseSeparator}${entry}`

/**
 * String: the consumer, the epoch and the token that own the data stream, regardless of its entry. Expires with the
 * lease.
 */
export const streamLease = (stream: StreamName): string => `mutex:${stream}`

/** An entry lease's value. */
export const entryValue = ({ consumer, epoch }: Pick<Ownership, "consumer" | "epoch">): string =>
  `${consumer}@@${epoch}`

/** A stream lease's value. */
export const streamValue = (ownership: Pick<Ownership, "consumer" | "epoch" | "token">): string =>
  `${entryValue(ownership)}@@${ownership.token}`

/** String: the data stream's last fencing token. Expires 7 days after the data stream was last taken. */
export const fence = (stream: StreamName): string => `simba:fence:${stream}`

/**
 * String: the last committed message, its offset, and the entry under which the data stream ended there. Kept for
 * `checkpointRetention` after the last commit, and for at least 7 days after the last claim.
 */
export const checkpoint = (stream: StreamName): string => `simba:checkpoint:${stream}`

/** A data stream's keys, by the names that scripts use. */
export const ofLease = ({ entry, stream }: { readonly stream: StreamName; readonly entry: EntryId }) => ({
  entryLease: entryLease(stream, entry),
  streamLease: streamLease(stream),
  checkpoint: checkpoint(stream),
  fence: fence(stream)
})

/** Stream: the load-balancer stream's dead letters. Expires 30 days after the last one is added. */
export const deadLetters = (service: ServiceName): string => `simba:dead:${input(service)}`

/**
 * Stream: a data stream's dead letters, which are messages that could not be processed. Expires 30 days after the last
 * one is added.
 */
export const deadMessages = (stream: StreamName): string => `simba:dead:${stream}`

/**
 * Hash: the id of the dead letter for each dead-lettered message in a data stream. Expires 30 days after the last one
 * is added.
 */
export const deadIds = (stream: StreamName): string => `simba:dead-ids:${stream}`

/**
 * Hash: the number of handler failures for each entry. `<entry>:busy` is the owner that is running a handler,
 * `<entry>:last` the last counted failure, and `<entry>:yielded` the last yielded epochs. Expires 7 days after its last
 * use.
 */
export const failures = (service: ServiceName): string => `simba:failures:${input(service)}`

/**
 * Hash: each data stream's last announcement, in the format described in `announcement.lua`. Expires 7 days after its
 * last use.
 */
export const announced = (service: ServiceName): string => `simba:announced:${input(service)}`

/** Hash: the paused data streams. The empty name means the whole service. Never expires. */
export const paused = (service: ServiceName): string => `simba:paused:${input(service)}`

/** Hash: the fleet's members, by consumer and session. Expires when all heartbeats are overdue. */
export const members = (service: ServiceName): string => `simba:members:${input(service)}`

/** Sorted set: unconfirmed hand-overs, by the end of their confirm period. Expires together with the last one. */
export const handOvers = (service: ServiceName): string => `simba:given:${input(service)}`

/** The channel to which members publish yields and hand-overs. */
export const signalChannel = (service: ServiceName): string => `simba:streams:${input(service)}`

/** The channel to which Redis publishes a database's expired keys. */
export const expiredChannel = (db: number): string => `__keyevent@${db}__:expired`

const isStream = Schema.is(StreamName)
const isEntry = Schema.is(EntryId)

/** Extracts the data stream and the entry from an entry lease's key. Returns undefined for any other key. */
export const ofEntryLease = (
  key: string
): { readonly stream: StreamName; readonly entry: EntryId } | undefined => {
  const at = key.lastIndexOf(leaseSeparator)
  if (at === -1) return undefined
  const stream = key.slice(0, at)
  const entry = key.slice(at + leaseSeparator.length)
  return isStream(stream) && isEntry(entry) ? { stream, entry } : undefined
}
