/** Draws shapes on a canvas. */
import { type Palette, sans, type Shape } from "./shapes.ts"

type Context = CanvasRenderingContext2D

const hatches = new Map<string, CanvasPattern>()

const hatchOf = (context: Context, colour: string): CanvasPattern | string => {
  const known = hatches.get(colour)
  if (known !== undefined) return known
  const tile = document.createElement("canvas")
  tile.width = tile.height = 8
  const pen = tile.getContext("2d")!
  pen.strokeStyle = colour
  pen.lineWidth = 1.2
  for (const shift of [-8, 0, 8]) {
    pen.moveTo(shift, 8)
    pen.lineTo(shift + 8, 0)
  }
  pen.stroke()
  const pattern = context.createPattern(tile, "repeat")
  if (pattern === null) return colour
  hatches.set(colour, pattern)
  return pattern
}

const outline = (context: Context, shape: Shape & { readonly kind: "rect" }) => {
  context.beginPath()
  const { h, radius = 0, w, x, y } = shape
  if (radius > 0) context.roundRect(x, y, Math.max(0, w), h, Math.min(radius, Math.max(0, w) / 2, h / 2))
  else context.rect(x, y, Math.max(0, w), h)
}

const paint = (context: Context, palette: Palette, shape: Shape) => {
  switch (shape.kind) {
    case "rect": {
      outline(context, shape)
      if (shape.fill !== undefined) {
        context.fillStyle = palette[shape.fill]
        context.fill()
      }
      if (shape.hatch !== undefined) {
        context.fillStyle = hatchOf(context, palette[shape.hatch])
        context.fill()
      }
      if (shape.stroke !== undefined) {
        context.strokeStyle = palette[shape.stroke]
        context.lineWidth = shape.width ?? 1
        context.setLineDash(shape.dash === true ? [4, 3] : [])
        context.stroke()
      }
      return
    }
    case "line": {
      const { points } = shape
      context.beginPath()
      context.moveTo(points[0]!, points[1]!)
      for (let i = 2; i < points.length; i += 2) context.lineTo(points[i]!, points[i + 1]!)
      if (shape.isArea === true) {
        context.fillStyle = palette[shape.ink]
        context.fill()
        return
      }
      context.strokeStyle = palette[shape.ink]
      context.lineWidth = shape.width ?? 1
      context.setLineDash(shape.dash === true ? [4, 3] : [])
      context.stroke()
      return
    }
    case "circle": {
      context.beginPath()
      context.arc(shape.x, shape.y, shape.r, 0, 2 * Math.PI)
      if (shape.fill !== undefined) {
        context.fillStyle = palette[shape.fill]
        context.fill()
      }
      if (shape.stroke !== undefined) {
        context.strokeStyle = palette[shape.stroke]
        context.lineWidth = shape.width ?? 1
        context.setLineDash(shape.dash === true ? [4, 3] : [])
        context.stroke()
      }
      return
    }
    case "arc": {
      context.beginPath()
      context.arc(shape.x, shape.y, shape.r, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * shape.turn)
      context.strokeStyle = palette[shape.ink]
      context.lineWidth = shape.width
      context.setLineDash([])
      context.stroke()
      return
    }
    case "text": {
      context.fillStyle = palette[shape.ink]
      context.font = `${shape.isItalic === true ? "italic " : ""}${
        shape.isBold === true ? "600 " : ""
      }${shape.size}px ${sans}`
      context.textAlign = shape.align === "middle" ? "center" : shape.align ?? "start"
      context.textBaseline = "alphabetic"
      context.fillText(shape.text, shape.x, shape.y)
    }
  }
}

/** Draws shapes on the whole canvas, whose size the style sheet defines. */
export const draw = (canvas: HTMLCanvasElement, palette: Palette, shapes: ReadonlyArray<Shape>): void => {
  const ratio = window.devicePixelRatio || 1
  const { clientHeight: height, clientWidth: width } = canvas
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
  }
  const context = canvas.getContext("2d")
  if (context === null) return
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  for (const shape of shapes) {
    context.globalAlpha = shape.alpha ?? 1
    paint(context, palette, shape)
  }
  context.globalAlpha = 1
}

/** Returns the topmost shape at a point, as its hit area. */
export const at = (shapes: ReadonlyArray<Shape>, x: number, y: number): Shape["hit"] => {
  for (let i = shapes.length - 1; i >= 0; i--) {
    const { hit } = shapes[i]!
    if (hit !== undefined && x >= hit.x && x <= hit.x + hit.w && y >= hit.y && y <= hit.y + hit.h) return hit
  }
  return undefined
}
