/** Writes shapes as an SVG file. */
import { type Ink, type Palette, sans, type Shape } from "./shapes.ts"

const escape = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

const round = (value: number) => String(Math.round(value * 10) / 10)

const attributes = (values: Readonly<Record<string, string | number | undefined>>) =>
  Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [` ${name}="${typeof value === "number" ? round(value) : escape(value)}"`]
  ).join("")

const dashed = (dash: boolean | undefined) => dash === true ? "4 3" : undefined

const write = (palette: Palette, shape: Shape, id: string): string => {
  const colour = (ink: Ink | undefined) => ink === undefined ? undefined : palette[ink]
  const opacity = shape.alpha === undefined || shape.alpha === 1
    ? undefined
    : String(Math.round(shape.alpha * 100) / 100)
  switch (shape.kind) {
    case "rect": {
      const box = {
        x: shape.x,
        y: shape.y,
        width: Math.max(0, shape.w),
        height: shape.h,
        rx: shape.radius === undefined ? undefined : Math.min(shape.radius, Math.max(0, shape.w) / 2)
      }
      const line = {
        stroke: colour(shape.stroke),
        "stroke-width": shape.stroke === undefined ? undefined : shape.width ?? 1,
        "stroke-dasharray": dashed(shape.dash)
      }
      const plain = `<rect${attributes({ ...box, fill: colour(shape.fill) ?? "none", ...line, opacity })}/>`
      if (shape.hatch === undefined) return plain
      return `${plain}<rect${attributes({ ...box, fill: `url(#${id}-${shape.hatch})`, opacity })}/>`
    }
    case "line": {
      const points: Array<string> = []
      for (let i = 0; i < shape.points.length; i += 2) {
        points.push(`${round(shape.points[i]!)},${round(shape.points[i + 1]!)}`)
      }
      if (shape.isArea === true) {
        return `<polygon${attributes({ points: points.join(" "), fill: colour(shape.ink), opacity })}/>`
      }
      return `<polyline${
        attributes({
          points: points.join(" "),
          fill: "none",
          stroke: colour(shape.ink),
          "stroke-width": shape.width ?? 1,
          "stroke-dasharray": dashed(shape.dash),
          opacity
        })
      }/>`
    }
    case "circle":
      return `<circle${
        attributes({
          cx: shape.x,
          cy: shape.y,
          r: shape.r,
          fill: colour(shape.fill) ?? "none",
          stroke: colour(shape.stroke),
          "stroke-width": shape.stroke === undefined ? undefined : shape.width ?? 1,
          "stroke-dasharray": dashed(shape.dash),
          opacity
        })
      }/>`
    case "arc": {
      const angle = 2 * Math.PI * Math.min(shape.turn, 0.9999) - Math.PI / 2
      const end = `${round(shape.x + shape.r * Math.cos(angle))} ${round(shape.y + shape.r * Math.sin(angle))}`
      const path = `M ${round(shape.x)} ${round(shape.y - shape.r)} A ${round(shape.r)} ${round(shape.r)} 0 ${
        shape.turn > 0.5 ? 1 : 0
      } 1 ${end}`
      return `<path${
        attributes({ d: path, fill: "none", stroke: colour(shape.ink), "stroke-width": shape.width, opacity })
      }/>`
    }
    case "text":
      return `<text${
        attributes({
          x: shape.x,
          y: shape.y,
          "font-size": shape.size,
          fill: colour(shape.ink),
          "font-weight": shape.isBold === true ? "600" : undefined,
          "font-style": shape.isItalic === true ? "italic" : undefined,
          "text-anchor": shape.align === "start" ? undefined : shape.align,
          opacity
        })
      }>${escape(shape.text)}</text>`
  }
}

export interface Picture {
  readonly width: number
  readonly height: number
  readonly title: string
  readonly shapes: ReadonlyArray<Shape>
  /** A prefix for the ids of patterns, which must differ between pictures on the same page. */
  readonly id?: string | undefined
}

export const svg = ({ height, id = "hatch", shapes, title, width }: Picture, palette: Palette): string => {
  const hatches = new Set(
    shapes.flatMap((shape) => shape.kind === "rect" && shape.hatch !== undefined ? [shape.hatch] : [])
  )
  const patterns = [...hatches].map((ink) =>
    `<pattern id="${id}-${ink}" width="8" height="8" patternUnits="userSpaceOnUse">` +
    `<path d="M-2 2L2 -2M0 8L8 0M6 10L10 6" stroke="${palette[ink]}" stroke-width="1.2"/></pattern>`
  )
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(width)} ${
      round(height)
    }" font-family="${sans}" role="img" aria-label="${escape(title)}">`,
    ...patterns.length === 0 ? [] : [`<defs>${patterns.join("")}</defs>`],
    `<rect width="${round(width)}" height="${round(height)}" fill="${palette.paper}"/>`,
    ...shapes.map((shape) => write(palette, shape, id)),
    "</svg>",
    ""
  ].join("\n")
}
