/**
 * Decides how many data streams this member hands over, and to which member. Each member decides for itself, from the
 * reply to its last heartbeat. `rebalancer` executes the decisions.
 *
 * A member's fair share is its fraction of the total capacity, applied to all owned streams and rounded down (floor) or
 * up (ceiling). A member above its ceiling hands over to a member below its ceiling. Once nobody has been above the
 * ceiling for a while, a member above its floor hands over to a member below its floor. A donor therefore never drops
 * below its share, and a receiver never exceeds its share. Each hand-over reduces the sum of all surpluses above
 * ceilings and deficits below floors. This sum limits the number of hand-overs, and when it is zero, nothing moves.
 *
 * A member's view of the fleet is always slightly out of date. The following rules prevent members from handing over
 * too much as a result:
 *
 * - all members derive the same pairs of donors and receivers from one view, and each acts only for itself;
 * - a stream that was handed over stays registered as the donor's until the receiver must have registered it. The
 *   stream is counted twice rather than not at all, so shares are estimated too large rather than too small;
 * - the donor immediately counts the stream as the receiver's;
 * - a stream that was handed over is not handed on for a while, unless the membership changes (see `isMovable`);
 * - a large surplus moves a quarter at a time, and the last streams move one by one.
 *
 * Streams without an owner do not belong to any share. Members take them regardless of this plan.
 */
import type { Member } from "../StreamStore.ts"

/**
 * - `settle`: the pause after a membership change. Also how long all members must have been at or below their ceilings
 *   before one of them hands over.
 * - `rest`: the pause after a hand-over.
 * - `transit`: how long a stream that was handed over stays registered as the donor's. By then, either the receiver has
 *   adopted and registered the stream, or it is an orphan.
 * - `stay`: how long a stream that was handed over must not be handed on.
 * - `batch`: the maximum number of data streams in one decision.
 */
export interface Settings {
  readonly settle: number
  readonly rest: number
  readonly transit: number
  readonly stay: number
  readonly batch: number
}

/** Times in milliseconds. */
export const settingsFor = (heartbeat: number, confirm: number): Settings => ({
  settle: confirm + 4 * heartbeat,
  rest: heartbeat,
  transit: confirm + 3 * heartbeat,
  stay: 10 * (confirm + 4 * heartbeat),
  batch: 100
})

export interface State {
  readonly membership: string
  readonly quietUntil: number
  /** Since when nobody has been above the ceiling. Infinity while a member is above its ceiling. */
  readonly levelSince: number
  readonly sent: ReadonlyArray<{ readonly to: string; readonly until: number }>
}

export const initial: State = { membership: "", quietUntil: -Infinity, levelSince: Infinity, sent: [] }

/**
 * - `members`: from the reply to the last heartbeat. Its `owned` for this member is ignored.
 * - `owned`: how many streams this member owns now.
 * - `leaving`: for each owned stream that is revoked and expected to end soon, the session of its receiver.
 * - `movable`: how many owned streams may be handed over.
 */
export interface View {
  readonly members: ReadonlyArray<Member>
  readonly session: string
  readonly owned: number
  readonly leaving: ReadonlyArray<string>
  readonly movable: number
}

/** How many data streams to hand over, and to whom. */
export interface Decision {
  readonly to: Member
  readonly count: number
}

interface Party {
  readonly member: Member
  readonly owned: number
  readonly floor: number
  readonly ceiling: number
}

const partiesOf = (view: View, sent: State["sent"]): ReadonlyArray<Party> => {
  const inTransit = new Map<string, number>()
  for (const to of [...sent.map(({ to }) => to), ...view.leaving]) inTransit.set(to, (inTransit.get(to) ?? 0) + 1)
  const counted = view.members.map((member) => ({
    member,
    owned: member.session === view.session
      ? view.owned - view.leaving.length
      : member.owned + (inTransit.get(member.session) ?? 0)
  }))
  const capacity = counted.reduce((sum, { member }) => sum + member.capacity, 0)
  const owned = counted.reduce((sum, party) => sum + party.owned, 0)
  // Streams beyond the total capacity do not belong to any share, and stay where they are
  const shared = Math.min(owned, capacity)
  return counted.map((party) => {
    const share = capacity === 0 ? 0 : shared * party.member.capacity / capacity
    return { ...party, floor: Math.floor(share), ceiling: Math.ceil(share) }
  })
}

interface Amount {
  readonly party: Party
  readonly streams: number
}

/** The parties with a positive amount, largest first. All members break ties in the same way. */
const amounts = (parties: ReadonlyArray<Party>, streams: (party: Party) => number): ReadonlyArray<Amount> =>
  parties.map((party) => ({ party, streams: streams(party) })).filter((amount) => amount.streams > 0).sort((a, b) =>
    b.streams - a.streams || (a.party.member.session < b.party.member.session ? -1 : 1)
  )

/**
 * Assigns the donors' surplus to the receivers, both in order. Returns the first receiver for the donor with this
 * session, and how many streams that receiver gets.
 */
const pairOf = (
  session: string,
  donors: ReadonlyArray<Amount>,
  receivers: ReadonlyArray<Amount>
): Decision | undefined => {
  const mine = donors.findIndex(({ party }) => party.member.session === session)
  if (mine === -1) return undefined
  let before = donors.slice(0, mine).reduce((sum, { streams }) => sum + streams, 0)
  for (const { party, streams } of receivers) {
    if (before < streams) return { to: party.member, count: Math.min(donors[mine]!.streams, streams - before) }
    before -= streams
  }
  return undefined
}

const above = ({ ceiling, owned }: Party) => owned - ceiling

/** What to hand over now, if anything. `now` is monotonic, in milliseconds. */
export const plan = (state: State, view: View, now: number, settings: Settings): Decision | undefined => {
  if (view.movable <= 0 || now < state.quietUntil) return undefined
  const parties = partiesOf(view, state.sent)
  const overfull = amounts(parties, above)
  if (overfull.length > 0) {
    const pair = pairOf(view.session, overfull, amounts(parties, ({ ceiling, owned }) => ceiling - owned))
    if (pair === undefined) return undefined
    return { to: pair.to, count: Math.max(1, Math.min(Math.floor(pair.count / 4), settings.batch, view.movable)) }
  }
  if (now - state.levelSince < settings.settle) return undefined
  return pairOf(
    view.session,
    amounts(parties, ({ floor, owned }) => owned > floor ? 1 : 0),
    amounts(parties, ({ floor, owned }) => floor - owned)
  )
}

const membershipOf = (members: ReadonlyArray<Member>): string =>
  members.map(({ capacity, session }) => `${session}/${capacity}`).sort().join(" ")

/** When a stream was handed over, and the `membership` at that time. */
export interface Arrival {
  readonly membership: string
  readonly at: number
}

/**
 * Whether a stream may be handed over. A stream that was handed over under the present membership must stay for a
 * while.
 */
export const isMovable = (state: State, arrival: Arrival | undefined, now: number, settings: Settings): boolean =>
  arrival === undefined || arrival.membership !== state.membership || now - arrival.at >= settings.stay

/** The state after a heartbeat. */
export const observe = (state: State, view: View, now: number, settings: Settings): State => {
  const membership = membershipOf(view.members)
  const changed = membership !== state.membership
  const sent = state.sent.filter(({ until }) => until > now)
  const level = partiesOf(view, sent).every((party) => above(party) <= 0)
  return {
    membership,
    quietUntil: changed ? now + settings.settle : state.quietUntil,
    levelSince: !level ? Infinity : changed ? now : Math.min(state.levelSince, now),
    sent
  }
}

/** The state after one stream was handed over to the member with this session. */
export const handedOver = (state: State, to: string, now: number, settings: Settings): State => ({
  ...state,
  quietUntil: Math.max(state.quietUntil, now + settings.rest),
  sent: [...state.sent, { to, until: now + settings.transit }]
})

/** How many streams to register at the next heartbeat. */
export const registered = (state: State, owned: number, now: number): number =>
  owned + state.sent.filter(({ until }) => until > now).length
