/** Renders a value of any type and size as short text, for `SimbaError` messages and invalid options. */

const longest = 200

const cut = (text: string): string => text.length > longest ? `${text.slice(0, longest)}...` : text

const isPlain = (input: object): boolean => [Object.prototype, null].includes(Object.getPrototypeOf(input))

const show = (input: unknown, depth: number): string => {
  if (typeof input === "string") return JSON.stringify(cut(input))
  if (typeof input === "function") return "a function"
  if (typeof input !== "object" || input === null) return String(input)
  if (!Array.isArray(input) && !isPlain(input)) return Object.prototype.toString.call(input)
  if (depth === 3) return "..."
  const items = Array.isArray(input)
    ? input.slice(0, 8).map((item) => show(item, depth + 1))
    : Object.entries(input).slice(0, 8).map(([key, item]) => `${JSON.stringify(cut(key))}:${show(item, depth + 1)}`)
  const rest = (Array.isArray(input) ? input : Object.keys(input)).length > items.length ? ",..." : ""
  return Array.isArray(input) ? `[${items.join(",")}${rest}]` : `{${items.join(",")}${rest}}`
}

/** Renders the value. Strings appear in quotes. */
export const excerpt = (input: unknown): string => cut(show(input, 0))
