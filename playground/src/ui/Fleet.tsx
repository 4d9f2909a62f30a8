/** The list of processes with actions for each, and actions for the server. */
import * as address from "../address.ts"
import type { Player } from "../player.ts"
import type { Verb } from "../world/acts.ts"
import { maxProcesses, minProcesses, type Part } from "../world/world.ts"
import { useChanges } from "./hooks.ts"

const ordinal = (place: number) => `${place}${["th", "st", "nd", "rd"][place > 3 ? 0 : place]}`

const stateOf = (part: Part, streams: boolean): string => {
  if (part.state === "dead") return "crashed"
  const paused = part.state === "paused" ? "paused, " : ""
  if (streams) return `${paused}${part.streams} data streams`
  if (part.activity === "leading") {
    const token = part.ordinal === undefined ? "" : `, token #${part.ordinal}`
    return `${paused}leading${
      part.timeLeft === undefined ? "" : `, ${(part.timeLeft / 1000).toFixed(1)} s left`
    }${token}`
  }
  if (part.activity === "waiting") {
    return `${paused}waiting${part.place === undefined ? "" : `, ${ordinal(part.place)}`}`
  }
  return `${paused}${part.activity}`
}

const Row = (
  { part, player, streams }: { readonly part: Part; readonly player: Player; readonly streams: boolean }
) => {
  const { name } = part
  const button = (verb: Verb, text: string, isOff = false, value?: number) => (
    <button
      type="button"
      disabled={isOff}
      aria-label={`${name}: ${text}`}
      onClick={() => player.perform({ verb, target: name, value })}
    >
      {text}
    </button>
  )
  const isDead = part.state === "dead"
  const wants = streams ? part.streams > 0 : part.activity === "waiting" || part.activity === "leading"
  return (
    <tr class={player.selected === name ? "selected" : ""}>
      <th scope="row">
        <span class={`dot ${isDead ? "dead" : streams ? part.streams > 0 ? "leading" : "idle" : part.activity}`} />
        {name}
        {part.isSimba && <small>Simba</small>}
      </th>
      <td class="state" data-process={name}>{stateOf(part, streams)}</td>
      <td class="actions">
        {!part.isSimba && button("acquire", streams ? "join" : "acquire", isDead || wants)}
        {!part.isSimba && button("release", streams ? "leave" : "release", isDead || !wants)}
        {isDead ? button("start", "start") : button("crash", "crash")}
        {part.state === "paused" ? button("resume", "resume") : button("pause", "pause", isDead)}
        {part.isCut || part.delay > 0 ? button("heal", "heal link") : button("cut", "cut link", isDead)}
        {button("slow", "slow link", isDead || part.isCut || part.delay > 0, 250)}
        {button("skew", "skew clock", isDead, 60_000)}
      </td>
    </tr>
  )
}

export const Fleet = ({ player }: { readonly player: Player }) => {
  useChanges(player)
  const { world } = player
  if (world === undefined) return null
  const parts = world.parts()
  const streams = world.scenario.fleet._tag === "Streams"
  const serve = (verb: Verb, text: string, isOff = false) => (
    <button
      type="button"
      disabled={isOff}
      onClick={() => player.perform({ verb })}
    >
      {text}
    </button>
  )
  return (
    <section class="fleet" aria-label="Processes">
      <div class="server-actions">
        <strong>Redis</strong>
        {serve("restart", "restart")}
        {serve("failover", "fail over")}
        {serve("drop-subscribers", "drop subscribers")}
        <strong>Fleet</strong>
        {serve("add", "add a process", parts.length >= maxProcesses)}
        {world.scenario.id === "free" && (
          <label>
            start with{" "}
            <select
              value={world.clients ?? world.scenario.clients}
              onChange={(event) => {
                location.hash = address.ofScenario("free", world.seed, [], Number(event.currentTarget.value))
              }}
            >
              {Array.from(
                { length: maxProcesses - minProcesses + 1 },
                (_, index) => <option key={index} value={index + minProcesses}>{index + minProcesses}</option>
              )}
            </select>
          </label>
        )}
        {!streams && (
          <button
            type="button"
            onClick={() => {
              for (const { name, state } of parts) {
                if (state !== "dead") player.perform({ verb: "contend", target: name })
              }
            }}
          >
            let all contend
          </button>
        )}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Table of processes">
        <table>
          <tbody>{parts.map((part) => <Row key={part.name} part={part} player={player} streams={streams} />)}</tbody>
        </table>
      </div>
    </section>
  )
}
