/** What a picture consists of, as plain data: a canvas draws it, or it is written as an SVG file. */

/** Colours by their meaning; a palette defines them. */
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
      /** Diagonal lines in this ink. */
      readonly hatch?: Ink | undefined
    }
    | {
      readonly kind: "line"
      /** x and y alternate. */
      readonly points: ReadonlyArray<number>
      readonly ink: Ink
      readonly width?: number | undefined
      readonly dash?: boolean | undefined
      /** Fills the area instead. */
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
      /** Clockwise from the top, in turns. */
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

/** The text that is shown while the pointer is on a shape. */
export interface Hit {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
  readonly title: string
  readonly lines: ReadonlyArray<string>
}

export type Palette = Readonly<Record<Ink, string>>

/** Blue, amber and vermilion after Okabe and Ito: colour-blind readers can distinguish them, also by lightness. */
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
