/**
 * How late the server removes an expired key that nobody accesses, like Redis's active expiry. `server` draws a delay
 * for each key when its expiry is set, and `keyspace` removes the key once that delay has passed.
 */

/** In milliseconds. */
export type ExpiryDelay = readonly [minimum: number, maximum: number]

export const defaultExpiryDelay: ExpiryDelay = [0, 100]

/** When a key that expires at `deadlineMillis` is removed, in microseconds. A key lives through its last millisecond. */
export const removalMicros = (
  deadlineMillis: number,
  [minimum, maximum]: ExpiryDelay,
  draws: { readonly random: () => number }
): number => {
  const delayMillis = maximum <= minimum ? minimum : minimum + (maximum - minimum) * draws.random()
  return (deadlineMillis + 1) * 1000 + Math.floor(delayMillis * 1000)
}
