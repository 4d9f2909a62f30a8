/** Who takes part in the demo, what happens, and how long everything lasts. */

export const producers = ["pia", "quinn"]
export const consumers = ["ada", "ben", "cleo"]

/** Data streams per producer, and messages per stream. */
export const streams = 4
export const messages = 60

/** The interval between two messages in a stream, and how long a consumer works on one. */
export const pace = "80 millis"
export const work = "100 millis"

/** The consumer that starts once a stream has an owner. */
export const joins = "dan"

/**
 * The consumer that is killed in the middle of a stream, once it has processed at least `middle` messages, while at
 * least `middle` remain.
 */
export const killed = "cleo"
export const middle = 20

/** The consumer that is shut down once the killed consumer's streams have new owners. */
export const leaves = "ben"

/** Three consumers can own nine streams: all eight, with one to spare. */
export const options = {
  capacity: 3,
  leaseDuration: "2 seconds",
  heartbeatInterval: "1 second",
  sweepInterval: "1 second",
  gracePeriod: "2 seconds"
} as const

/** Longer than the default, because replies are slow on a busy machine. */
export const commandTimeout = "5 seconds"

/** The demo fails if it takes longer than this. It normally takes a fraction of this time. */
export const limit = "2 minutes"
