/** Draws line charts as SVG text. */

export interface Axis {
  readonly label: string
  readonly isLogarithmic: boolean
}

export interface Chart {
  readonly id: string
  readonly title: string
  readonly x: Axis
  readonly y: Axis
  readonly series: ReadonlyArray<{
    readonly name: string
    readonly points: ReadonlyArray<readonly [x: number, y: number]>
  }>
}

const width = 790
const height = 420
const edge = { left: 78, right: 270, top: 44, bottom: 52 }
// Colour-blind readers can distinguish these colours, and the dash patterns help, too
const colours = ["#0b61a4", "#d1495b", "#2e8b57", "#b8860b", "#6a4c93", "#5c6770", "#008b8b", "#a0522d"]
const dashes = ["", "6 3", "2 3", "8 3 2 3"]

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Shortens a peer's settings to "fast"; the tables list them in full. */
const short = (name: string) => name.replace(/ \(.*\)$/, ", fast")

const shown = (value: number) => value >= 1000 ? value.toLocaleString("en-GB") : String(Number(value.toPrecision(3)))

const linearTicks = (most: number): ReadonlyArray<number> => {
  const power = 10 ** Math.floor(Math.log10(most / 4))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => most / step <= 5) ?? power
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step)
}

const logarithmicTicks = (least: number, most: number): ReadonlyArray<number> => {
  const from = Math.floor(Math.log10(least) + 1e-9)
  const to = Math.ceil(Math.log10(most) - 1e-9)
  return Array.from({ length: Math.max(to, from + 1) - from + 1 }, (_, i) => 10 ** (from + i))
}

interface Scale {
  readonly ticks: ReadonlyArray<number>
  readonly at: (value: number) => number
}

const scaleOf = ({ isLogarithmic }: Axis, values: ReadonlyArray<number>, from: number, to: number): Scale => {
  const most = Math.max(...values)
  const ticks = isLogarithmic ? logarithmicTicks(Math.min(...values), most) : linearTicks(most)
  const measure = isLogarithmic ? Math.log10 : (value: number) => value
  const first = measure(ticks[0]!)
  const last = measure(ticks.at(-1)!)
  return { ticks, at: (value) => from + (to - from) * (measure(value) - first) / (last - first) }
}

const fixed = (value: number) => value.toFixed(1)

const grid = (chart: Chart, x: Scale, y: Scale): ReadonlyArray<string> => {
  const right = width - edge.right
  const bottom = height - edge.bottom
  return [
    ...y.ticks.flatMap((tick) => [
      `<line class="grid" x1="${edge.left}" x2="${right}" y1="${fixed(y.at(tick))}" y2="${fixed(y.at(tick))}"/>`,
      `<text x="${edge.left - 8}" y="${fixed(y.at(tick) + 4)}" text-anchor="end">${shown(tick)}</text>`
    ]),
    ...x.ticks.flatMap((tick) => [
      `<line class="grid" x1="${fixed(x.at(tick))}" x2="${fixed(x.at(tick))}" y1="${edge.top}" y2="${bottom}"/>`,
      `<text x="${fixed(x.at(tick))}" y="${bottom + 18}" text-anchor="middle">${shown(tick)}</text>`
    ]),
    `<text x="${(edge.left + right) / 2}" y="${height - 12}" text-anchor="middle">${escaped(chart.x.label)}</text>`,
    `<text transform="translate(16 ${(edge.top + bottom) / 2}) rotate(-90)" text-anchor="middle">` +
    `${escaped(chart.y.label)}</text>`,
    `<text class="title" x="${edge.left}" y="24">${escaped(chart.title)}</text>`
  ]
}

const line = ({ name, points }: Chart["series"][number], index: number, x: Scale, y: Scale): ReadonlyArray<string> => {
  const colour = colours[index % colours.length]!
  const dash = dashes[index % dashes.length]!
  const path = points.map(([px, py]) => `${fixed(x.at(px))},${fixed(y.at(py))}`).join(" ")
  const legend = edge.top + 12 + 20 * index
  const left = width - edge.right + 14
  return [
    `<polyline fill="none" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}" points="${path}"/>`,
    ...points.map(([px, py]) => `<circle cx="${fixed(x.at(px))}" cy="${fixed(y.at(py))}" r="3" fill="${colour}"/>`),
    `<line x1="${left}" x2="${left + 24}" y1="${legend}" y2="${legend}" stroke="${colour}" stroke-width="2" ` +
    `stroke-dasharray="${dash}"/>`,
    `<text x="${left + 30}" y="${legend + 4}">${escaped(short(name))}</text>`
  ]
}

const style = `text { font: 12px system-ui, sans-serif; fill: #24292f } .title { font-size: 15px; font-weight: 600 }
.grid { stroke: #d8dee4; stroke-width: 1 }`

/** Draws a chart. Omits points that cannot be drawn, such as zero on a logarithmic axis. */
export const svg = (chart: Chart): string => {
  const drawable = (axis: Axis, value: number) => Number.isFinite(value) && (!axis.isLogarithmic || value > 0)
  const series = chart.series
    .map(({ name, points }) => ({
      name,
      points: points.filter(([x, y]) => drawable(chart.x, x) && drawable(chart.y, y))
    }))
    .filter(({ points }) => points.length > 0)
  const points = series.flatMap(({ points }) => points)
  const x = scaleOf(chart.x, points.map(([x]) => x), edge.left, width - edge.right)
  const y = scaleOf(chart.y, points.map(([, y]) => y), height - edge.bottom, edge.top)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(chart.title)}</title>`,
    `<style>${style}</style>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...grid(chart, x, y),
    ...series.flatMap((one, index) => line(one, index, x, y)),
    "</svg>",
    ""
  ].join("\n")
}
