/** Describes store operations in `SimbaError` messages. Third-party stores may have other operations. */

const phrases: Readonly<Record<string, string>> = {
  // Mutexes
  acquire: "Acquiring the mutex",
  confirm: "Confirming the mutex grant",
  guard: "Renewing the lease",
  release: "Releasing the lease",
  owner: "Reading who owns the mutex",
  inspect: "Reading the state",
  events: "Following the mutex's owners",
  list: "Listing the mutexes",
  "force release": "Taking the mutex from its owner",
  "read jobs": "Reading the jobs",
  "claim a run": "Claiming a job run",
  "end a run": "Recording the end of a run",
  "fenced script": "Writing to the fenced resource",
  simba: "The call",
  // Data streams
  take: "Taking data streams",
  renew: "Renewing data-stream leases",
  done: "Ending the data stream",
  fail: "Counting a data-stream failure",
  "hand over": "Handing over data streams",
  adopt: "Adopting data streams that were handed over",
  "list hand-overs": "Finding data streams that were handed over",
  announce: "Announcing data streams",
  read: "Reading announcements",
  pending: "Finding unfinished announcements",
  prepare: "Creating the consumer group",
  heartbeat: "Registering this consumer",
  "remove old data": "Removing old consumers and finished announcements",
  leave: "Leaving the service",
  redrive: "Redriving dead letters",
  checkpoint: "Reading the checkpoint",
  commit: "Committing the checkpoint",
  "keep checkpoints": "Keeping checkpoints from expiring",
  "read messages": "Reading messages",
  // Connections
  connect: "Connecting to Redis",
  "connect the subscriber": "Connecting the subscriber",
  subscribe: "Subscribing",
  "ping the subscriber": "Checking the subscriber connection",
  ping: "Checking the connection",
  "check the server": "Examining the server",
  "load a script": "Loading a script",
  "count subscribers": "Counting subscribers"
}

/** The operation as the subject of a sentence. */
export const phraseOf = (operation: string): string => phrases[operation] ?? `The operation "${operation}"`
