/** The scripts of stream ownership. Each decides by the time of the server, and touches no key that is not in KEYS. */
import { type Each, script } from "../../internal/client/script.ts"
import * as lua from "./scripts.generated.ts"

type LeaseKeys = [entryLease: string, streamLease: string, checkpoint: string, fence: string]

/** Of leases that the caller holds, or once held. */
export type HeldKeys = readonly [
  input: string,
  failures: string,
  announced: string,
  deadLetters: string,
  handOvers: string,
  ...each: Each<LeaseKeys>
]
type HeldSlots = [stream: string, entry: string, consumer: string, value: string, token: number]
export type HeldArgs = readonly [group: string, signals: string, ...each: Each<HeldSlots>]

// Announcements

/** Makes the group of a service. Replies `1` if it was made. */
export const createGroup = script<
  readonly [input: string],
  readonly [group: string]
>(lua.createGroup)

/** Announces data streams. Where an announcement is unfinished, it is noted as repeated. */
export const announceStreams = script<
  readonly [input: string, announced: string, ...each: Each<[stream: string]>],
  readonly [group: string, ...each: Each<[stream: string, payload: string]>]
>(lua.announceStreams)

/** Finds the unfinished entry by which a data stream was announced here last. */
export const findAnnouncement = script<
  readonly [input: string, announced: string],
  readonly [group: string, stream: string]
>(lua.findAnnouncement)

/** Reads whether an entry is unfinished. */
export const readEntryState = script<
  readonly [input: string],
  readonly [group: string, entry: string]
>(lua.readEntryState)

/** Reads pending entries. Removes those that are deleted. */
export const readPending = script<
  readonly [input: string, failures: string],
  readonly [group: string, ...each: Each<[entry: string]>]
>(lua.readPending)

// Leases

/** Takes data streams that nobody has, any number in one call. */
export const takeLeases = script<
  readonly [input: string, failures: string, announced: string, deadLetters: string, ...each: Each<LeaseKeys>],
  readonly [
    group: string,
    ...each: Each<
      [
        stream: string,
        entry: string,
        value: string,
        consumer: string,
        lease: number,
        minIdle: number,
        maxFailures: number,
        period: number,
        pause: number
      ]
    >
  ]
>(lua.takeLeases)

/** Renews leases of one consumer, any number in one call. Replies for those that were not renewed. */
export const renewLeases = script<
  readonly [input: string, failures: string, ...each: Each<[entryLease: string, streamLease: string]>],
  readonly [
    group: string,
    consumer: string,
    lease: number,
    ...each: Each<[entry: string, epoch: string, token: number, handler: string]>
  ]
>(lua.renewLeases)

/** Gives data streams back unfinished: anybody may take them at once. */
export const yieldLeases = script<HeldKeys, HeldArgs>(lua.yieldLeases)

/** Marks data streams done. A repeated announcement becomes a new one. */
export const markDone = script<HeldKeys, HeldArgs>(lua.markDone)

/** Counts failures of handlers, once for each attempt. Replies the failures in a row, and the time since the first. */
export const recordFailures = script<
  HeldKeys,
  readonly [
    group: string,
    signals: string,
    ...each: Each<[...HeldSlots, attempt: number | "", pause: number, progress: "1" | ""]>
  ]
>(lua.recordFailures)

// Hand-overs

/** Hands data streams over to other members. */
export const handOverLeases = script<
  HeldKeys,
  readonly [
    group: string,
    signals: string,
    ...each: Each<[...HeldSlots, receiver: string, session: string, confirm: number]>
  ]
>(lua.handOverLeases)

/** Lists the hand-overs to a member that may be unconfirmed. */
export const listHandOvers = script<
  readonly [handOvers: string],
  readonly [session: string]
>(lua.listHandOvers)

/** Begins the work under hand-overs, where the lease is still the receiver's. */
export const adoptHandOvers = script<HeldKeys, HeldArgs>(lua.adoptHandOvers)

// Checkpoints

/** Moves the checkpoints of data streams forward. */
export const commitCheckpoints = script<
  readonly [failures: string, ...each: Each<[streamLease: string, checkpoint: string, stream: string]>],
  readonly [
    retention: number,
    ...each: Each<[held: string, entry: string, id: string, last: "1" | "", offset: number | ""]>
  ]
>(lua.commitCheckpoints)

/** Reads whether a data stream ended at its checkpoint. */
export const readEnd = script<
  readonly [checkpoint: string, stream: string],
  readonly [entry: string]
>(lua.readEnd)

/** Moves the checkpoint of a data stream to any message. Replies `Owned` where an operator does not force it. */
export const seekCheckpoint = script<
  readonly [streamLease: string, checkpoint: string],
  readonly [held: string, entry: string, force: "1" | "", id: string, offset: number | "", retention: number]
>(lua.seekCheckpoint)

/** Reads how far data streams reach. */
export const readExtents = script<
  readonly [...each: Each<[stream: string]>],
  readonly []
>(lua.readExtents)

/** Reads how many messages follow the checkpoints of data streams. */
export const readLags = script<
  readonly [...each: Each<[stream: string, checkpoint: string]>],
  readonly [most: number]
>(lua.readLags)

/** Removes processed messages of a data stream. Replies how many; 0 when none is left. */
export const trimMessages = script<
  readonly [stream: string, checkpoint: string],
  readonly [keep: number]
>(lua.trimMessages)

/** Keeps checkpoints, any number in one call. */
export const keepCheckpoints = script<
  readonly [...each: Each<[checkpoint: string]>],
  readonly [retention: number]
>(lua.keepCheckpoints)

// Dead letters

/** Moves entries to the dead letters of their service. */
export const deadLetterAnnouncements = script<
  HeldKeys,
  readonly [group: string, signals: string, ...each: Each<[...HeldSlots, reason: string]>]
>(lua.deadLetterAnnouncements)

/** Moves an entry that cannot be read to the dead letters. Replies `0` if it is not pending at that consumer. */
export const deadLetterMalformed = script<
  readonly [input: string, failures: string, deadLetters: string],
  readonly [group: string, entry: string, consumer: string, reason: string]
>(lua.deadLetterMalformed)

/** Adds a message to the dead letters of its data stream, once. */
export const deadLetterMessage = script<
  readonly [streamLease: string, stream: string, deadMessages: string, deadIds: string],
  readonly [held: string, id: string, reason: string, token: number, ...fields: ReadonlyArray<string>]
>(lua.deadLetterMessage)

/** Moves a dead message to the end of its data stream. Replies `0` if there is no such letter. */
export const redriveMessage = script<
  readonly [stream: string, deadMessages: string, deadIds: string],
  readonly [letter: string]
>(lua.redriveMessage)

/** Announces a dead letter again. Replies `0` if there is no such letter. */
export const redriveDeadLetter = script<
  readonly [input: string, deadLetters: string, announced: string, checkpoint: string],
  readonly [group: string, letter: string, stream: string, text: string]
>(lua.redriveDeadLetter)

// The service

/** Notes that a member is alive. Replies the members. */
export const recordHeartbeat = script<
  readonly [members: string],
  readonly [member: string, capacity: number, owned: number, expiry: number]
>(lua.recordHeartbeat)

/** Removes a consumer that leaves. Replies `0` if something is pending at it. */
export const removeConsumer = script<
  readonly [input: string],
  readonly [group: string, consumer: string]
>(lua.removeConsumer)

/** Removes consumers that are silent and have nothing pending. Replies how many. */
export const removeSilentConsumers = script<
  readonly [input: string, announced: string, failures: string],
  readonly [group: string, idle: number]
>(lua.removeSilentConsumers)

/** Deletes finished entries that their consumers left, a page. */
export const removeFinishedEntries = script<
  readonly [input: string],
  readonly [group: string, after: string, count: number]
>(lua.removeFinishedEntries)

/** Forgets failures and announcements of entries that are gone, a page. */
export const forgetFinishedEntries = script<
  readonly [input: string, announced: string, failures: string],
  readonly [failuresCursor: string, announcedCursor: string, count: number]
>(lua.forgetFinishedEntries)

/** Counts the entries, dead letters, consumers and members of a service. */
export const inspectService = script<
  readonly [input: string, deadLetters: string, members: string],
  readonly [group: string]
>(lua.inspectService)
