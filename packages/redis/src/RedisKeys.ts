/**
 * The names of keys and channels, built here and nowhere else.
 *
 * All keys of one mutex share the hash tag `{<mutex>}`, so that they live in one slot of a Cluster and ACLs can name
 * them by prefix. The owner key, the wait queue and the channels are those of Simba.
 *
 * @since 0.1.0
 */
import type { MutexName } from "@effect-simba/core/Names"

/**
 * String: the owner's wire id. Expires with the lease.
 *
 * @category keys
 * @since 0.1.0
 */
export const owner = (mutex: MutexName): string => `simba:{${mutex}}`

/**
 * Sorted set of wire ids by ticket.
 *
 * @category keys
 * @since 0.1.0
 */
export const queue = (mutex: MutexName): string => `simba:{${mutex}}:contender`

/**
 * String: the last fencing token.
 *
 * @category keys
 * @since 0.1.0
 */
export const fence = (mutex: MutexName): string => `simba:{${mutex}}:fence`

/**
 * String: the stock Simba contender that was told to come, while ours hold back for it.
 *
 * @category keys
 * @since 0.1.0
 */
export const reserved = (mutex: MutexName): string => `simba:{${mutex}}:reserved`

/**
 * The channel on which every acquisition is announced.
 *
 * @category channels
 * @since 0.1.0
 */
export const mutexChannel = (mutex: MutexName): string => `simba:{${mutex}}`

/**
 * The channel on which one contender is told that it is its turn. The scripts build the same name from the owner key.
 *
 * @category channels
 * @since 0.1.0
 */
export const contenderChannel = (mutex: MutexName, id: string): string => `simba:{${mutex}}:${id}`

/**
 * String: the last period in which a job of the fleet ran.
 *
 * @category keys
 * @since 0.1.0
 */
export const tick = (mutex: MutexName, job: string): string => `simba:{${mutex}}:tick:${job}`

/**
 * Where a layer of ours is told what concerns one of its leases, by the part that its wire ids share.
 *
 * @category channels
 * @since 0.1.0
 */
export const inboxChannel = (key: string): string => `simba:inbox:${key}`

/**
 * What `SCAN` matches to find mutexes.
 *
 * @category keys
 * @since 0.1.0
 */
export const pattern = "simba:{*"

// Not the tick of a job whose name ends as those keys do
const ofMutex = /^simba:\{((?:(?!\}:tick:)[^])*)\}(?::contender)?$/

/**
 * The mutex whose owner key or wait queue this is, if it is one.
 *
 * @category keys
 * @since 0.1.0
 */
export const mutexOf = (key: string): string | undefined => ofMutex.exec(key)?.[1]

/**
 * String: the largest fencing token that a fenced resource has seen. In the slot of the resource, unless its name has a
 * `}` but no hash tag: on a Cluster such a name cannot be fenced.
 *
 * @category keys
 * @since 0.1.0
 */
export const seenToken = (resource: string): string =>
  /^[^{]*\{[^}]+\}/.test(resource) ? `${resource}:simba-token` : `{${resource}}:simba-token`
