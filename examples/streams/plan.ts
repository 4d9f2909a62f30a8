/** Who takes part in the demo, what happens, and how long everything lasts. */

export const producers = ["pia", "quinn"]
export const consumers = ["ada", "ben", "cleo"]

/** How many data streams each producer announces, and how many messages each stream gets. */
export const streams = 4
export const messages = 60

/** The time between two messages of a stream, and the time that a consumer takes for one. */
export const pace = "80 millis"
export const work = "100 millis"

/** Started once a stream has an owner. */
export const joins = "dan"

/** Killed in the middle of a stream: this many of its messages are processed by then, and at least as many are left. */
export const killed = "cleo"
export const middle = 20

/** Asked to end once the streams of the killed consumer have new owners. */
export const leaves = "ben"

/** Room for all streams on three consumers, plus one stream. */
export const options = {
  capacity: 3,
  leaseDuration: "2 seconds",
  heartbeatInterval: "1 second",
  sweepInterval: "1 second",
  gracePeriod: "2 seconds"
} as const

/** Longer than the default, because a busy machine replies late. */
export const commandTimeout = "5 seconds"

/** The demo fails if it has not finished by then. It takes a fraction of that. */
export const limit = "2 minutes"
