/**
 * The names of the keys and channels of stream ownership, built here and nowhere else.
 *
 * The load-balancer stream, its group and the leases of entries are the same as in redis-stream-client-go. On Redis
 * Cluster all keys of a service are in one slot if the service and its data streams carry the same hash tag.
 */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { leaseSeparator, type Ownership, type ServiceName } from "@effect-simba/core/streams/StreamStore"
import * as Schema from "effect/Schema"

/** Stream: the load-balancer stream, on which data streams are announced. */
export const input = (service: ServiceName): string => `${service}-input`

/** The name of the consumer group of the load-balancer stream. */
export const group = (service: ServiceName): string => `${service}-group`

/** String: the consumer and the epoch that hold this entry. Expires with the lease. */
export const entryLease = (stream: StreamName, entry: EntryId): string => `${stream}${leaseSeparator}${entry}`

/** String: the consumer, the epoch and the token that hold the data stream, under whichever entry. Expires with the lease. */
export const streamLease = (stream: StreamName): string => `mutex:${stream}`

/** The value of an entry lease. */
export const entryValue = ({ consumer, epoch }: Pick<Ownership, "consumer" | "epoch">): string =>
  `${consumer}@@${epoch}`

/** The value of a stream lease. */
export const streamValue = (ownership: Pick<Ownership, "consumer" | "epoch" | "token">): string =>
  `${entryValue(ownership)}@@${ownership.token}`

/** String: the last fencing token of the data stream. Expires 7 days after it was last taken. */
export const fence = (stream: StreamName): string => `simba:fence:${stream}`

/**
 * String: the last committed message, and the entry under which the data stream ended there. Expires 7 days after the
 * last commit or claim.
 */
export const checkpoint = (stream: StreamName): string => `simba:checkpoint:${stream}`

/** A data stream's keys, by their names in scripts. */
export const ofLease = ({ entry, stream }: { readonly stream: StreamName; readonly entry: EntryId }) => ({
  entryLease: entryLease(stream, entry),
  streamLease: streamLease(stream),
  checkpoint: checkpoint(stream),
  fence: fence(stream)
})

/** Stream: the dead letters of the load-balancer stream. Expires 30 days after the last. */
export const deadLetters = (service: ServiceName): string => `simba:dead:${input(service)}`

/** Stream: the messages of a data stream that could not be processed. Expires 30 days after the last. */
export const deadMessages = (stream: StreamName): string => `simba:dead:${stream}`

/** Hash: the letter of each message in the dead letters of a data stream. Expires 30 days after the last. */
export const deadIds = (stream: StreamName): string => `simba:dead-ids:${stream}`

/**
 * Hash: for each entry, how often its handlers failed. Under `<entry>:busy` who runs it, under `<entry>:last` which
 * failure was counted last, and under `<entry>:yielded` the last yielded epochs. Expires 7 days after last use.
 */
export const failures = (service: ServiceName): string => `simba:failures:${input(service)}`

/** Hash: data streams, the entries that announced them, and repetitions since. Expires 7 days after last use. */
export const announced = (service: ServiceName): string => `simba:announced:${input(service)}`

/** Hash: data streams that are paused, and under the empty name the service. Never expires. */
export const paused = (service: ServiceName): string => `simba:paused:${input(service)}`

/** Hash: the members of the fleet, by consumer and session. Expires when none has sent a heartbeat for its expiry. */
export const members = (service: ServiceName): string => `simba:members:${input(service)}`

/** Sorted set: hand-overs that are not confirmed yet, by the end of the confirm period. Expires with the last. */
export const handOvers = (service: ServiceName): string => `simba:given:${input(service)}`

/** The channel on which members publish yields and hand-overs. */
export const signalChannel = (service: ServiceName): string => `simba:streams:${input(service)}`

/** The channel on which Redis publishes which keys of a database expired. */
export const expiredChannel = (db: number): string => `__keyevent@${db}__:expired`

const isStream = Schema.is(StreamName)
const isEntry = Schema.is(EntryId)

/** The data stream and the entry whose lease this key holds; undefined for any other key. */
export const ofEntryLease = (
  key: string
): { readonly stream: StreamName; readonly entry: EntryId } | undefined => {
  const at = key.lastIndexOf(leaseSeparator)
  if (at === -1) return undefined
  const stream = key.slice(0, at)
  const entry = key.slice(at + leaseSeparator.length)
  return isStream(stream) && isEntry(entry) ? { stream, entry } : undefined
}
