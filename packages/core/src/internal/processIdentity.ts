/** Who and where this process is, on runtimes that can say so (Node, Bun, Deno), without importing any of them. */

interface ProcessLike {
  readonly pid?: number
  readonly env?: Record<string, string | undefined>
  readonly getBuiltinModule?: (id: string) => { readonly hostname?: () => string } | undefined
}

const processLike = (): ProcessLike => (globalThis as { readonly process?: ProcessLike }).process ?? {}

export const pid = (): number => processLike().pid ?? 0

export const name = (): string => {
  const self = processLike()
  const host = self.getBuiltinModule?.("node:os")?.hostname?.() ?? self.env?.["HOSTNAME"] ?? ""
  // The name becomes part of a contender's name, where "@@" and a trailing "@" have a meaning
  return host.replaceAll("@", "-").trim() || "localhost"
}
