/**
 * Builds the names of all mutex keys and channels.
 *
 * All of a mutex's keys share the hash tag `{<mutex>}`. This puts them in one Cluster slot, and lets ACLs match them by
 * prefix. The owner key, the wait queue, and the mutex and contender channels have the same names as in Simba.
 */
import type { MutexName } from "@effect-simba/core/MutexName"

/** String: the owner's lease id. Expires with the lease. */
export const owner = (mutex: MutexName): string => `simba:{${mutex}}`

/** Sorted set of lease ids by ticket. */
export const queue = (mutex: MutexName): string => `simba:{${mutex}}:contender`

/** String: the last fencing token. */
export const fence = (mutex: MutexName): string => `simba:{${mutex}}:fence`

/** String: the Simba contender whose turn it is. While the key exists, effect-simba contenders hold back. */
export const reserved = (mutex: MutexName): string => `simba:{${mutex}}:reserved`

/** The keys for an acquire or a release, in the order that the scripts expect. */
export const operands = (mutex: MutexName) => [owner(mutex), queue(mutex), fence(mutex), reserved(mutex)] as const

/** The channel to which every acquisition is published. */
export const mutexChannel = (mutex: MutexName): string => `simba:{${mutex}}`

/**
 * In Simba's protocol, the channel on which a contender is notified that its turn has come. An effect-simba waiter
 * subscribes to it only while Simba contenders take part. The scripts build the same name from the owner key.
 */
export const contenderChannel = (mutex: MutexName, id: string): string => `simba:{${mutex}}:${id}`

/**
 * Hash: the state of the fleet's jobs, with fields named `<attribute>:<job>`. Two fields apply to all jobs: `paused`,
 * which exists while they are paused, and `leaving`, the lease id of the leader that was asked to step down.
 */
export const jobs = (mutex: MutexName): string => `simba:{${mutex}}:jobs`

/**
 * A layer's channel, for messages to its waiters and about its leases. `key` is the random part of the layer's lease
 * ids. The layer stays subscribed until it closes. If nobody is subscribed, all of the layer's waiters are dead.
 * The scripts build the same name from the ids.
 */
export const inboxChannel = (key: string): string => `simba:inbox:${key}`

/**
 * The `SCAN` pattern for all mutex keys. It may match keys that belong to other programs, which `mutexOf` filters out.
 */
export const pattern = "simba:{*"

const ofMutex = /^simba:\{([^]*)\}(?::contender)?$/

/** Returns the mutex to which an owner key or a wait queue belongs; undefined for any other key. */
export const mutexOf = (key: string): string | undefined => ofMutex.exec(key)?.[1]

/**
 * String: the largest fencing token that a resource has accepted. `RedisFence` rejects writes with a smaller one. The
 * key is in the resource's slot, unless the resource's name contains a `}` but no hash tag. Such a resource cannot be
 * fenced on a Cluster.
 */
export const largestToken = (resource: string): string =>
  /^[^{]*\{[^}]+\}/.test(resource) ? `${resource}:simba-token` : `{${resource}}:simba-token`
