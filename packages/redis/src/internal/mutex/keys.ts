/**
 * The names of keys and channels, built here and nowhere else.
 *
 * All keys of one mutex share the hash tag `{<mutex>}`, so that they live in one slot of a Cluster and ACLs can name
 * them by prefix. The owner key, the wait queue, and the channels of a mutex and of a contender are the same as in
 * Simba.
 */
import type { MutexName } from "@effect-simba/core/MutexName"

/** String: the owner's lease id. Expires with the lease. */
export const owner = (mutex: MutexName): string => `simba:{${mutex}}`

/** Sorted set of lease ids by ticket. */
export const queue = (mutex: MutexName): string => `simba:{${mutex}}:contender`

/** String: the last fencing token. */
export const fence = (mutex: MutexName): string => `simba:{${mutex}}:fence`

/** String: the Simba contender whose turn it is, while contenders of effect-simba hold back. */
export const reserved = (mutex: MutexName): string => `simba:{${mutex}}:reserved`

/** The keys of an acquire or a release, in the scripts' order. */
export const operands = (mutex: MutexName) => [owner(mutex), queue(mutex), fence(mutex), reserved(mutex)] as const

/** The channel on which every acquisition is announced. */
export const mutexChannel = (mutex: MutexName): string => `simba:{${mutex}}`

/**
 * The channel on which a Simba contender is notified that it is its turn, and on which it notifies a waiter of
 * effect-simba. An effect-simba waiter subscribes there only while Simba contenders take part. The scripts build the
 * same name from the owner key.
 */
export const contenderChannel = (mutex: MutexName, id: string): string => `simba:{${mutex}}:${id}`

/** Hash: the state of the fleet's jobs, with fields `<attribute>:<job>`. */
export const jobs = (mutex: MutexName): string => `simba:{${mutex}}:jobs`

/**
 * The channel of a layer, for its waiters and leases, named by the random part of its lease ids. The layer is
 * subscribed for its whole life; if nobody is subscribed, the waiter is dead. The scripts build the same name from the
 * ids.
 */
export const inboxChannel = (key: string): string => `simba:inbox:${key}`

/** The `SCAN` patterns that find mutexes. */
export const pattern = "simba:{*"

const ofMutex = /^simba:\{([^]*)\}(?::contender)?$/

/** The mutex of this owner key or wait queue; undefined for any other key. */
export const mutexOf = (key: string): string | undefined => ofMutex.exec(key)?.[1]

/**
 * String: the largest fencing token that a fenced resource has accepted. In the resource's slot, unless its name has a
 * `}` but no hash tag: on a Cluster such a name cannot be fenced.
 */
export const largestToken = (resource: string): string =>
  /^[^{]*\{[^}]+\}/.test(resource) ? `${resource}:simba-token` : `{${resource}}:simba-token`
