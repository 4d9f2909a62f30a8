/**
 * Measures how small the bundles could become: removes one feature after the other and measures the bundle each time,
 * then puts back one feature at a time.
 *
 * The reduced bundles cannot run. A module that implements a removed feature is replaced by empty functions, whose
 * calls the bundler drops. Code that is mixed with other features stays, such as the Lua for inspections.
 */
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import { type Plugin, rolldown } from "rolldown"
import { parseAst } from "rolldown/parseAst"
import { annotatePure } from "../../scripts/lib/annotate-pure.mjs"

const packages = fileURLToPath(new URL("../../packages/", import.meta.url))
const entry = `${packages}entry.js`

interface Feature {
  readonly feature: string
  /** The modules that implement it, by their path below `packages`. */
  readonly modules?: RegExp
  /** Functions whose calls only serve it. */
  readonly calls?: RegExp
  /** Functions that it wraps around their last argument, which stays. */
  readonly wrappers?: RegExp
  /** Whether it consists of the texts that people read. */
  readonly texts?: boolean
  /** Its code in modules that serve other features too, and what replaces that code. */
  readonly code?: ReadonlyArray<readonly [module: string, code: string | RegExp, replaced: string]>
}

/** In the order of their removal. */
const features: ReadonlyArray<Feature> = [
  {
    feature: "scheduled jobs and their storage",
    modules: /core\/src\/(?:Jobs|JobStore|internal\/leadership\/(?:job|cron|memoryJobs|malformedJobs))|mutex\/jobStore/,
    code: [
      ["core/src/index.ts", "export * as Leadership", "export { whileLeader }"],
      ["core/src/index.ts", /export \* as Jobs.*/, ""],
      ["core/src/MutexStore.ts", /jobs: \{.*?\n {4}\}/s, ""]
    ]
  },
  {
    feature: "metrics",
    modules: /MutexMetrics|metricsRecorder|internal\/metrics|connectionsDown/,
    calls: /recorder\.(?:update|modify|count|least)$|^Metric\.(?:update|modify)$/,
    code: [["core/src/index.ts", /export \* as MutexMetrics.*/, ""]]
  },
  { feature: "spans", modules: /internal\/tracing/, calls: /^tracing\./, wrappers: /^tracing\.span/ },
  {
    feature: "log lines, server checks",
    modules: /internal\/log|client\/log|outageLog|overrunMonitor|selfDeadlock|noticeQueue|serverChecks/,
    calls: /^log\.|^Effect\.annotateLogs$|^runLog$|^annotate$/
  },
  { feature: "detection of failovers", modules: /ioredis\/(?:failover|pace)/ },
  {
    feature: "Cluster",
    modules: /ioredis\/(?:cluster|slotRefresh|duplicateMessages)|clusterSlot/,
    code: [["redis/src/internal/mutex/store.ts", /topology\._tag === "Single"/, "true"]]
  },
  {
    feature: "doctor",
    modules: /doctorCommands/,
    code: [["redis/src/index.ts", /export \* as RedisDoctor.*/, ""]]
  },
  { feature: "error messages", modules: /operationPhrases|internal\/excerpt|ioredis\/causes/, texts: true },
  {
    feature: "validation of options and names",
    modules: /optionChecks|optionNames|nameRules|nameSchema|environment|durationVariable|podName|refusedCommands/
  },
  {
    feature: "observers, events, inspection, forced releases",
    modules: /ownerWatch|OwnerEvent|lease\/observers|client\/scan|MutexState\.ts/,
    code: [
      ["core/src/internal/mutex/service.ts", /inspect: \(name.*?(?=\n {2}\}\n {2}return service)/s, ""],
      ["redis/src/internal/mutex/store.ts", /const (?:readOwner|forceRelease) = call.*/g, ""],
      ["redis/src/internal/mutex/store.ts", /owner: \(mutex\) => behind.*?(?=inbox:)/s, ""],
      ["redis/src/internal/mutex/store.ts", /inspect: \(mutex.*?(?=jobs:)/s, ""]
    ]
  }
]

/** Without it, the second bundle only acquires, waits, renews and releases on one server, and contends for leadership. */
const everythingElse: Feature = {
  feature: "everything else but `acquire`, `withLock` and contenders",
  modules: /nestedLocks|fallbackSubscriber|MutexSchedule|RedisFence/,
  code: [
    ["core/src/internal/mutex/service.ts", /acquireAll: .*?(?=\n {2}\}\n {2}return service)/s, ""],
    ["core/src/internal/mutex/service.ts", /const whileHeld = .*?(?=const obtainIfAvailable)/s, ""]
  ]
}

/** Replaces dynamic imports: to inline them, Rolldown would wrap modules in functions, from which nothing is dropped. */
const withStaticImports = (code: string) => {
  const imports: Array<string> = []
  const rest = code.replace(/import\((".+?")\)/g, (_, path: string) => {
    imports.push(`import * as driver${imports.length} from ${path}\n`)
    return `Promise.resolve(driver${imports.length - 1})`
  })
  return imports.join("") + rest
}

/** The module's exports as functions that do nothing. */
const emptied = (code: string) =>
  [...code.matchAll(/^export (?:declare |abstract )?(?:const|function|class|let) (\w+)/gm)]
    .map(([, name]) => `export function ${name}() {}`).join("\n")

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === "string"

const isText = (text: string) => /[a-z,:]{2,} (?:[a-z]{2,}|\$\{)|\} [a-z]{2,}/.test(text)

/** What replaces a node; undefined if it stays. */
const replacement = (node: Node, code: string, removed: ReadonlyArray<Feature>): string | undefined => {
  if (node.type === "CallExpression") {
    const { end, start } = node["callee"] as Node
    const callee = code.slice(start, end)
    if (removed.some(({ wrappers }) => wrappers?.test(callee))) {
      const last = (node["arguments"] as ReadonlyArray<Node>).at(-1)!
      return `(${edited(last, code, removed)})`
    }
    if (removed.some(({ calls }) => calls?.test(callee))) return "(void 0)"
  }
  if (!removed.some(({ texts }) => texts)) return undefined
  const quasis = node.type === "TemplateLiteral" ? node["quasis"] as ReadonlyArray<Node> : undefined
  return (node.type === "Literal" || quasis !== undefined) && isText(code.slice(node.start, node.end))
    ? `""`
    : undefined
}

/** The code of a node without the features. */
const edited = (node: Node, code: string, removed: ReadonlyArray<Feature>): string => {
  const edits: Array<{ readonly start: number; readonly end: number; readonly text: string }> = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (!isNode(value) || value.type.startsWith("TS") && value.type.endsWith("Type")) return
    const text = replacement(value, code, removed)
    if (text !== undefined) edits.push({ start: value.start, end: value.end, text })
    else Object.values(value).forEach(visit)
  }
  visit(node)
  let at = node.start
  let result = ""
  for (const { end, start, text } of edits.sort((a, b) => a.start - b.start)) {
    result += code.slice(at, start) + text
    at = end
  }
  return result + code.slice(at, node.end)
}

const without = (removed: ReadonlyArray<Feature>, program: string): Plugin => ({
  name: "without",
  resolveId: (id) => {
    const [, name, module = "index"] = /^@effect-simba\/(\w+)(?:\/(.*))?$/.exec(id) ?? []
    return id === entry ? id : name === undefined ? undefined : `${packages}${name}/src/${module}.ts`
  },
  load: async (id) => {
    if (id === entry) return program
    if (!id.startsWith(packages)) return undefined
    const path = id.slice(packages.length)
    let code = withStaticImports(await readFile(id, "utf8"))
    if (removed.some(({ modules }) => modules?.test(path))) return emptied(code)
    if (path.endsWith(".generated.ts")) return code
    for (const [module, from, to] of removed.flatMap(({ code = [] }) => code)) {
      if (module !== path) continue
      const next = code.replace(from, to)
      if (next === code) throw new Error(`${path} does not contain ${from}`)
      code = next
    }
    const parsed = parseAst(code, { lang: "ts" }) as unknown as Node
    return edited({ ...parsed, start: 0, end: code.length }, code, removed)
  }
})

/** A program's code without the features, for another bundler to minify. */
const codeOf = async (program: string, removed: ReadonlyArray<Feature>): Promise<string> => {
  const build = await rolldown({
    input: entry,
    platform: "node",
    external: /^(?:effect|ioredis|node:)/,
    treeshake: { moduleSideEffects: false },
    experimental: { nativeMagicString: true },
    plugins: [without(removed, program), annotatePure]
  })
  const { output } = await build.generate({ codeSplitting: false, comments: { annotation: true } })
  await build.close()
  return output[0].code
}

interface Bundles<Bundle> {
  readonly locks: Bundle
  readonly withoutStreams: Bundle
}

export interface Ablation<Bundle> {
  readonly feature: string
  /** Without this feature and all before it. */
  readonly left: Bundles<Bundle>
  /** With this feature, and without the others. */
  readonly alone?: Bundles<Bundle>
}

const operations = `export { acquire, withLock } from "@effect-simba/core/Mutex"
export { layer } from "@effect-simba/redis/RedisMutex"`
const leadership = `export { Service } from "@effect-simba/core/Contender"`
const indexes = `export * as core from "@effect-simba/core"
export * as redis from "@effect-simba/redis"`

export const ablation = async <Bundle>(
  measure: (code: string) => Promise<Bundle>
): Promise<ReadonlyArray<Ablation<Bundle>>> => {
  const bundles = async (removed: ReadonlyArray<Feature>, second = indexes): Promise<Bundles<Bundle>> => ({
    locks: await measure(await codeOf(operations, removed)),
    withoutStreams: await measure(await codeOf(second, removed))
  })
  const rows: Array<Ablation<Bundle>> = [{ feature: "nothing", left: await bundles([]) }]
  for (const [at, removed] of features.entries()) {
    rows.push({
      feature: removed.feature,
      left: await bundles(features.slice(0, at + 1)),
      alone: await bundles(features.filter((feature) => feature !== removed))
    })
  }
  const left = await bundles([...features, everythingElse], `${operations}\n${leadership}`)
  return [...rows, { feature: everythingElse.feature, left }]
}
