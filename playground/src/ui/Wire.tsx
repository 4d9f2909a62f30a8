/** Shows the traffic with the server as a log that can be filtered. */
import { useState } from "preact/hooks"
import type { History } from "../view/history.ts"
import { type Kind, lines } from "../view/wire.ts"

export const Wire = ({ history }: { readonly history: History }) => {
  const [isOpen, setOpen] = useState(false)
  const [kind, setKind] = useState<Kind>("all")
  const [who, setWho] = useState("")
  const [filter, setFilter] = useState("")
  const [chosen, choose] = useState<number>()
  return (
    <details class="wire" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>The wire: {history.events.length} events</summary>
      {isOpen && (
        <>
          <div class="filters">
            <label>
              Show{" "}
              <select value={kind} onChange={(event) => setKind(event.currentTarget.value as Kind)}>
                <option value="all">everything</option>
                <option value="commands">commands</option>
                <option value="messages">messages</option>
                <option value="changes">owners, faults and notes</option>
              </select>
            </label>
            <label>
              from{" "}
              <select value={who} onChange={(event) => setWho(event.currentTarget.value)}>
                <option value="">all</option>
                {history.lanes.map(({ name }) => <option key={name} value={name}>{name}</option>)}
              </select>
            </label>
            <label>
              with{" "}
              <input
                type="search"
                value={filter}
                placeholder="text"
                onInput={(event) => setFilter(event.currentTarget.value)}
              />
            </label>
          </div>
          <ol class="log" tabIndex={0} aria-label="Log, newest first">
            {lines(history, kind, who, filter).map((line) => (
              <li key={line.key} class={line.kind}>
                <button
                  type="button"
                  aria-expanded={chosen === line.key}
                  onClick={() => choose(chosen === line.key ? undefined : line.key)}
                >
                  <time>{(line.at / 1000).toFixed(3)}</time>
                  <b>{line.who}</b>
                  <span class={chosen === line.key ? "whole" : ""}>
                    {line.text}
                    {line.reply !== "" && <i>→ {line.reply}</i>}
                  </span>
                </button>
              </li>
            ))}
          </ol>
        </>
      )}
    </details>
  )
}
