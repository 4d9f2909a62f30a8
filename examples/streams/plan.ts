/** Who takes part, and what happens. */

export const producers = ["pia", "quinn"]
export const consumers = ["ada", "ben", "cleo"]

/** Of each producer. */
export const streams = 4
export const messages = 60

/** How long a message takes its consumer, and how far apart they are written. */
export const work = "100 millis"
export const pace = "80 millis"

/** Once everything has an owner, one consumer is killed; another one comes; and when it is there, a third one leaves. */
export const killed = "cleo"
export const joins = "dan"
export const leaves = "ben"

/** Of the consumers: together they have room for all, and for little more. */
export const options = {
  capacity: 3,
  leaseDuration: "2 seconds",
  heartbeatInterval: "1 second",
  sweepInterval: "1 second",
  gracePeriod: "2 seconds"
} as const
