/** Who takes part, and what happens. */

export const producers = ["pia", "quinn"]
export const consumers = ["ada", "ben", "cleo"]

/** Of each producer. */
export const streams = 4
export const messages = 60

/** How long a message takes its consumer, and how far apart they are written. */
export const work = "100 millis"
export const pace = "80 millis"

/** Started once a stream has an owner. */
export const joins = "dan"

/** Killed in the middle of a stream: so many of its messages are processed by then, and at least as many are left. */
export const killed = "cleo"
export const middle = 20

/** Asked to end once the streams of the killed consumer have new owners. */
export const leaves = "ben"

/** Of the consumers: together they have room for all, and for little more. */
export const options = {
  capacity: 3,
  leaseDuration: "2 seconds",
  heartbeatInterval: "1 second",
  sweepInterval: "1 second",
  gracePeriod: "2 seconds"
} as const

/** Far longer than it takes. */
export const limit = "2 minutes"
