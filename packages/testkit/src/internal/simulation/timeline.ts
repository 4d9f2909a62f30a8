/** Shows the holders of each resource over time, as text or as a picture. */
import type { Event } from "./history.ts"

export interface Holding {
  readonly resource: string
  readonly id: string
  readonly token: number | undefined
  readonly from: number
  readonly to: number
  readonly end: string
}

export const holdings = (events: ReadonlyArray<Event>): ReadonlyArray<Holding> => {
  const open = new Map<string, { readonly id: string; readonly token: number | undefined; readonly from: number }>()
  const done: Array<Holding> = []
  let last = 0
  for (const event of events) {
    last = event.at
    if (event._tag !== "Owner") continue
    const before = open.get(event.resource)
    if (before !== undefined) {
      const end = event.command === undefined ? "expired or lost" : `by a command from ${event.command.client}`
      done.push({ resource: event.resource, ...before, to: event.at, end })
    }
    if (event.to === undefined) open.delete(event.resource)
    else open.set(event.resource, { id: event.to, token: event.token, from: event.at })
  }
  for (const [resource, before] of open) done.push({ resource, ...before, to: last, end: "still held" })
  return done.sort((a, b) => a.from - b.from)
}

const seconds = (millis: number) => (millis / 1000).toFixed(3)

export const asText = (events: ReadonlyArray<Event>): string => {
  const lines: Array<string> = []
  for (const { end, from, id, resource, to, token } of holdings(events)) {
    lines.push(
      `${seconds(from).padStart(9)} s  ${resource.padEnd(8)} ${id.padEnd(24)} held ${seconds(to - from)} s` +
        `${token === undefined ? "" : `, token ${token}`}, ${end}`
    )
  }
  return lines.join("\n")
}

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\"", "&quot;")

const colours = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#997700"]

/** One row per resource and one colour per holder. A holder's name is the text after the last colon in its id. */
export const asSvg = (events: ReadonlyArray<Event>, title: string): string => {
  const held = holdings(events)
  const end = Math.max(1, events.length === 0 ? 0 : events[events.length - 1]!.at)
  const left = 90
  const width = 1200
  const x = (at: number) => (left + (width - left - 10) * at / end).toFixed(1)
  const resources = [...new Set(held.map(({ resource }) => resource))].sort()
  const nameOf = (id: string) => id.slice(id.lastIndexOf(":") + 1)
  const names = [...new Set(held.map(({ id }) => nameOf(id)))].sort()
  const rows = [...resources.map((resource) => ({ label: resource, resource })), {
    label: "faults",
    resource: undefined
  }]
  const height = 60 + rows.length * 34
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="monospace" font-size="11">`,
    `<text x="8" y="16">${escape(title)}</text>`
  ]
  names.forEach((name, index) => {
    const colour = colours[index % colours.length]!
    out.push(`<rect x="${left + index * 90}" y="24" width="10" height="10" fill="${colour}"/>`)
    out.push(`<text x="${left + 14 + index * 90}" y="33">${escape(name)}</text>`)
  })
  rows.forEach(({ label, resource }, row) => {
    const y = 44 + row * 34
    out.push(`<text x="8" y="${y + 18}">${escape(label)}</text>`)
    out.push(`<line x1="${left}" x2="${width - 10}" y1="${y + 28}" y2="${y + 28}" stroke="#dddddd"/>`)
    if (resource === undefined) {
      for (const event of events) {
        if (event._tag !== "Fault") continue
        const text = escape(`${seconds(event.at)} s ${event.target} ${event.fault} ${event.text}`)
        out.push(
          `<line x1="${x(event.at)}" x2="${x(event.at)}" y1="${y + 4}" y2="${y + 28}" stroke="#cc3311">` +
            `<title>${text}</title></line>`
        )
      }
      return
    }
    for (const item of held) {
      if (item.resource !== resource) continue
      const colour = colours[names.indexOf(nameOf(item.id)) % colours.length]!
      const wide = Math.max(1, Number(x(item.to)) - Number(x(item.from))).toFixed(1)
      const text = escape(`${item.id} ${seconds(item.from)} s to ${seconds(item.to)} s, token ${item.token ?? "none"}`)
      out.push(
        `<rect x="${x(item.from)}" y="${
          y + 6
        }" width="${wide}" height="20" fill="${colour}"><title>${text}</title></rect>`
      )
    }
  })
  for (let i = 0; i <= 10; i++) {
    out.push(`<text x="${x(end * i / 10)}" y="${height - 4}">${seconds(end * i / 10)}</text>`)
  }
  out.push("</svg>")
  return out.join("\n")
}
