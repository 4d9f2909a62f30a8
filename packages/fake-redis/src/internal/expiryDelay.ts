/**
 * The delay between an expired key's deadline and its removal, if nobody accesses it, as in Redis's active expiry.
 * `server` draws a delay when a key's expiry is set, and `keyspace` removes the key once that delay has passed.
 */

/** The range of the random delay, in milliseconds. */
export type ExpiryDelay = readonly [minimum: number, maximum: number]

export const defaultExpiryDelay: ExpiryDelay = [0, 100]

/**
 * When a key that expires at `deadlineMillis` is removed, in microseconds. The key still exists during the millisecond
 * of its deadline.
 */
export const removalMicros = (
  deadlineMillis: number,
  [minimum, maximum]: ExpiryDelay,
  draws: { readonly random: () => number }
): number => {
  const delayMillis = maximum <= minimum ? minimum : minimum + (maximum - minimum) * draws.random()
  return (deadlineMillis + 1) * 1000 + Math.floor(delayMillis * 1000)
}
