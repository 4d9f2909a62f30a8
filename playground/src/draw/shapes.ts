/** The shapes of a picture, as plain data. They are drawn on a canvas or written as an SVG file. */

/** Colours by their meaning. A palette defines them. */
export type Ink =
  | "paper"
  | "panel"
  | "ink"
  | "soft"
  | "faint"
  | "lead"
  | "leadSoft"
  | "wait"
  | "waitSoft"
  | "lost"
  | "good"
  | "message"
  | "onLead"

export type Shape =
  & { readonly hit?: Hit | undefined; readonly alpha?: number | undefined }
  & (
    | {
      readonly kind: "rect"
      readonly x: number
      readonly y: number
      readonly w: number
      readonly h: number
      readonly fill?: Ink | undefined
      readonly stroke?: Ink | undefined
      readonly width?: number | undefined
      readonly radius?: number | undefined
      readonly dash?: boolean | undefined
      /** The ink of diagonal lines that fill the shape. */
      readonly hatch?: Ink | undefined
    }
    | {
      readonly kind: "line"
      /** Coordinates, alternating between x and y. */
      readonly points: ReadonlyArray<number>
      readonly ink: Ink
      readonly width?: number | undefined
      readonly dash?: boolean | undefined
      /** Whether to fill the area instead of drawing the line. */
      readonly isArea?: boolean | undefined
    }
    | {
      readonly kind: "circle"
      readonly x: number
      readonly y: number
      readonly r: number
      readonly fill?: Ink | undefined
      readonly stroke?: Ink | undefined
      readonly width?: number | undefined
      readonly dash?: boolean | undefined
    }
    | {
      /** An arc, clockwise from the top. Angles are fractions of a full turn. */
      readonly kind: "arc"
      readonly x: number
      readonly y: number
      readonly r: number
      readonly turn: number
      readonly ink: Ink
      readonly width: number
    }
    | {
      readonly kind: "text"
      readonly x: number
      readonly y: number
      readonly text: string
      readonly ink: Ink
      readonly size: number
      readonly isBold?: boolean | undefined
      readonly isItalic?: boolean | undefined
      readonly align?: "start" | "middle" | "end" | undefined
    }
  )

/** A shape's area, and the text that is shown while the pointer is on it. */
export interface Hit {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
  readonly title: string
  readonly lines: ReadonlyArray<string>
}

export type Palette = Readonly<Record<Ink, string>>

/**
 * Blue, amber and vermilion are from the palette of Okabe and Ito, which colour-blind readers can distinguish. They
 * also differ in lightness.
 */
export const light: Palette = {
  paper: "#fdfcf9",
  panel: "#f5f3ed",
  ink: "#22262b",
  soft: "#5d646d",
  faint: "#dcd9d1",
  lead: "#0a5fa0",
  leadSoft: "#bcd8ee",
  wait: "#9a6200",
  waitSoft: "#f6e2b8",
  lost: "#bb3a12",
  good: "#00694f",
  message: "#8a4a86",
  onLead: "#ffffff"
}

export const dark: Palette = {
  paper: "#15181b",
  panel: "#1c2024",
  ink: "#e9e6df",
  soft: "#a1a9b2",
  faint: "#363c42",
  lead: "#5fb0ea",
  leadSoft: "#1f4662",
  wait: "#e5a93a",
  waitSoft: "#4d3b16",
  lost: "#f58462",
  good: "#41c7a1",
  message: "#cf9bcb",
  onLead: "#0b1116"
}

export const sans = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
