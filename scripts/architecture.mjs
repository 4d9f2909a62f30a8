// Draws docs/architecture.svg from the imports of packages/*/src: a box for each folder, an arrow for each use. Fails
// if modules import each other in a cycle.
//
//   node scripts/architecture.mjs            write
//   node scripts/architecture.mjs --check    fail if the picture is out of date
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative, resolve, sep } from "node:path"
import { filesBelow, packageFolders, root, shown } from "./lib/workspace.mjs"

/** The columns of boxes, from left to right. Each folder must be listed here, or the script fails. */
const columns = [
  ["cli/bin", "cli/internal"],
  ["redis", "redis/internal/mutex", "redis/internal/client", "redis/internal/client/ioredis"],
  ["redis/streams", "redis/streams/internal"],
  ["core", "core/internal/leadership", "core/internal/mutex", "core/internal/lease", "core/internal"],
  ["core/streams", "core/streams/internal"],
  [
    "testkit",
    "testkit/internal/suite",
    "testkit/internal/contentionScript",
    "testkit/internal/checkers",
    "testkit/internal/simulation"
  ],
  [
    "testkit/streams",
    "testkit/streams/internal",
    "testkit/streams/internal/suite",
    "testkit/streams/internal/checkers",
    "testkit/internal/client",
    "testkit/internal/socket"
  ],
  [
    "fake-redis",
    "fake-redis/bin",
    "fake-redis/internal",
    "fake-redis/internal/commands",
    "fake-redis/internal/data",
    "fake-redis/internal/lua",
    "fake-redis/internal/socket"
  ]
]
const colors = { cli: "#7c3aed", core: "#2563eb", redis: "#b91c1c", testkit: "#15803d", "fake-redis": "#a16207" }
const packages = { cli: [0, 0], redis: [1, 2], core: [3, 4], testkit: [5, 6], "fake-redis": [7, 7] }

/** The package's name on npm. */
const titleOf = (name) => name === "cli" ? "effect-simba" : `@effect-simba/${name}`

const width = 232
const gap = { x: 60, y: 34 }
const margin = 30
const lineHeight = 14
const characters = 34

/**
 * Modules that may import each other's types, such as a service and the module that makes it. No other cycle is
 * allowed.
 */
const allowedCycles = [
  ["core/MutexStore", "core/internal/mutex/memoryStore"],
  [
    "core/Mutex",
    "core/internal/mutex/layerParts",
    "core/internal/mutex/ownerWatch",
    "core/internal/mutex/service",
    "core/Contender",
    "core/internal/leadership/contender",
    "core/internal/leadership/contention",
    "core/internal/leadership/contenderState"
  ],
  [
    "core/Leadership",
    "core/internal/leadership/jobRun",
    "core/internal/leadership/jobRunner",
    "core/internal/leadership/jobSpec",
    "core/internal/leadership/jobPlan"
  ],
  [
    "core/streams/StreamClient",
    "core/streams/internal/client",
    "core/streams/internal/handlerRunner",
    "core/streams/internal/administration"
  ],
  [
    "core/streams/StreamMessages",
    "core/streams/internal/messageDecoder",
    "core/streams/internal/messageReader",
    "core/streams/internal/messageLoop",
    "core/streams/internal/concurrentLoop"
  ],
  ["testkit/ContentionScript", "testkit/internal/contentionScript/steps"],
  [
    "server",
    "client",
    "context",
    "command",
    "blockedClients",
    "errorStates",
    "aclLog",
    "admission",
    "busyScript",
    "clientInfo",
    "monitors",
    "statistics",
    "subscribers",
    "tracker",
    "watches"
  ].map((name) => `fake-redis/internal/${name}`)
]

const importPattern = /^(?:import|export) (?:type )?(?:\w+|\{[^}]*\}|\* as \w+) from "([^"]+)"/gm
const folderOf = (path) => shown(dirname(path)).replace("packages/", "").replace("/src", "")
const isPublic = (folder) => !folder.includes("internal")

const moduleOf = (path) => `${folderOf(path)}/${basename(path, ".ts")}`
const isOfTypes = (statement) =>
  /^(import|export) type /.test(statement) || /^import \{(\s*type \w+( as \w+)?,?)+\s*\}/.test(statement)

const folders = new Map()
const uses = new Map()
const modules = new Map()
for (
  const path of packageFolders.flatMap((folder) => filesBelow(join(folder, "src"), (name) => name.endsWith(".ts")))
) {
  if (basename(path) === "index.ts") continue
  const folder = folderOf(path)
  folders.set(folder, [...(folders.get(folder) ?? []), basename(path, ".ts")])
  const imports = []
  modules.set(moduleOf(path), imports)
  for (const [statement, specifier] of readFileSync(path, "utf8").matchAll(importPattern)) {
    const [, name, module] = /^@effect-simba\/([\w-]+)\/(.+)$/.exec(specifier) ?? []
    const target = specifier.startsWith(".")
      ? resolve(dirname(path), specifier)
      : name === undefined
      ? undefined
      : join(root, "packages", name, "src", `${module}.ts`)
    if (target !== undefined) imports.push({ module: moduleOf(target), isOfTypes: isOfTypes(statement) })
    const other = target === undefined ? folder : folderOf(target)
    if (other !== folder) uses.set(`${folder} > ${other}`, { from: folder, to: other })
  }
}

/** The shortest chain of imports from one module to another, or undefined if there is none. */
const way = (from, to, isFollowed) => {
  const ways = new Map([[from, [from]]])
  for (const [module, steps] of ways) {
    if (module === to) return steps
    for (const used of modules.get(module)?.filter(isFollowed) ?? []) {
      if (!ways.has(used.module)) ways.set(used.module, [...steps, used.module])
    }
  }
}
const isAllowed = (cycle) => allowedCycles.some((allowed) => cycle.every((name) => allowed.includes(name)))
const found = [...modules].flatMap(([name, imports]) =>
  imports.flatMap((used) => {
    const ofValues = used.isOfTypes ? undefined : way(used.module, name, (next) => !next.isOfTypes)
    const cycle = ofValues ?? way(used.module, name, () => true)
    return cycle === undefined || ofValues === undefined && isAllowed(cycle) ? [] : [[name, ...cycle].join(" > ")]
  })
)
if (found.length > 0) {
  console.error("import cycle:", found.reduce((a, b) => b.length < a.length ? b : a))
  process.exit(1)
}

const wrap = (words) => {
  const lines = [""]
  for (const word of words) {
    const last = lines.at(-1)
    if (last === "") lines[lines.length - 1] = word
    else if (`${last}, ${word}`.length <= characters) lines[lines.length - 1] = `${last}, ${word}`
    else {
      lines[lines.length - 1] = `${last},`
      lines.push(word)
    }
  }
  return lines
}

const missing = [...folders.keys()].filter((folder) => !columns.flat().includes(folder))
if (missing.length > 0) {
  console.error(`scripts/architecture.mjs: add these folders to \`columns\`: ${missing.join(", ")}`)
  process.exit(1)
}

const boxes = new Map()
columns.forEach((column, index) => {
  let y = margin + 40
  for (const folder of column.filter((name) => folders.has(name))) {
    const lines = wrap(folders.get(folder))
    const height = 30 + lines.length * lineHeight
    boxes.set(folder, { folder, lines, x: margin + index * (width + gap.x), y, height, column: index })
    y += height + gap.y
  }
})
const bottom = Math.max(...[...boxes.values()].map(({ height, y }) => y + height))

/**
 * The path of an arrow. It starts at the side that faces the other box. Within a column, it runs along the left side.
 */
const curve = (a, b) => {
  const [ay, by] = [a.y + a.height / 2, b.y + b.height / 2]
  if (a.column === b.column) {
    const isNext = columns[a.column].indexOf(b.folder) - columns[a.column].indexOf(a.folder) === 1
    if (isNext) return `M${a.x + width / 2},${a.y + a.height} V${b.y - 5}`
    return `M${a.x},${ay} C${a.x - 26},${ay} ${b.x - 26},${by} ${b.x - 5},${by}`
  }
  const [start, end, bend] = a.x < b.x ? [a.x + width, b.x - 5, 40] : [a.x, b.x + width + 5, -40]
  return `M${start},${ay} C${start + bend},${ay} ${end - bend},${by} ${end},${by}`
}

const packageOf = (folder) => folder.split("/")[0]
const edgesOf = (name) => {
  const [first, last] = packages[name]
  return { left: margin + first * (width + gap.x) - 14, right: margin + last * (width + gap.x) + width + 14 }
}

const arrow = (name, path, strokeWidth) =>
  `<path d="${path}" stroke="${colors[name]}" stroke-width="${strokeWidth}" marker-end="url(#${name})"/>`

/** Pairs of packages in which the first uses the second. Each pair gets one arrow. */
const betweenPackages = new Set(
  [...uses.values()].map(({ from, to }) => `${packageOf(from)} ${packageOf(to)}`).filter((pair) =>
    !/^(\w+) \1$/.test(pair)
  )
)
/**
 * Private folders use the models in their package's public modules. The caption says so, because arrows would clutter
 * the picture.
 */
const isShown = ({ from, to }) => packageOf(from) === packageOf(to) && (isPublic(from) || !isPublic(to))
const arrows = [
  ...[...uses.values()].filter(isShown).map(({ from, to }) =>
    arrow(packageOf(from), curve(boxes.get(from), boxes.get(to)), 1.4)
  ),
  ...[...betweenPackages].map((pair) => {
    const [from, to] = pair.split(" ")
    const [a, b] = [edgesOf(from), edgesOf(to)]
    return arrow(
      from,
      `M${a.left < b.left ? a.right : a.left},${margin + 8} H${a.left < b.left ? b.left - 6 : b.right + 6}`,
      3
    )
  })
]

const panels = Object.keys(packages).map((name) => {
  const { left: x, right } = edgesOf(name)
  const w = right - x
  return `<rect x="${x}" y="${margin - 14}" width="${w}" height="${bottom - margin + 28}" rx="10" fill="${
    colors[name]
  }" ` +
    `fill-opacity="0.05" stroke="${colors[name]}" stroke-opacity="0.3"/>` +
    `<text x="${x + 14}" y="${margin + 14}" font-size="18" font-weight="bold" fill="${colors[name]}">${
      titleOf(name)
    }</text>`
})
const drawn = [...boxes.values()].map(({ folder, height, lines, x, y }) => {
  const color = colors[folder.split("/")[0]]
  const title = folder.includes("/") ? `${folder.slice(folder.indexOf("/") + 1)}/` : "src/"
  const text = lines.map((line, index) => `<tspan x="${x + 10}" y="${y + 36 + index * lineHeight}">${line}</tspan>`)
  return `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="5" fill="#fff" stroke="${color}" ` +
    `stroke-width="${isPublic(folder) ? 2 : 1}"/>` +
    `<text x="${x + 10}" y="${y + 18}" font-size="13" font-weight="bold" fill="${color}">${title}</text>` +
    `<text font-size="11" fill="#222">${text.join("")}</text>`
})
const markers = Object.entries(colors).map(([name, color]) =>
  `<marker id="${name}" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="6" markerHeight="6" orient="auto-start-reverse">` +
  `<path d="M0,0 L8,4 L0,8 z" fill="${color}"/></marker>`
)
const size = { width: margin * 2 + columns.length * (width + gap.x) - gap.x, height: bottom + 60 }
const picture =
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif">
<rect width="100%" height="100%" fill="#fff"/>
<defs>${markers.join("")}</defs>
${panels.join("\n")}
<g fill="none" stroke-opacity="0.75">
${arrows.sort().join("\n")}
</g>
${drawn.join("\n")}
<text x="${margin}" y="${
    size.height - 14
  }" font-size="12" fill="#444">An arrow leads from a folder to one whose modules it imports. Thick boxes are public. Private folders also import the models of their package's public modules.</text>
</svg>
`

const path = join(root, "docs/architecture.svg")
const present = statSync(path, { throwIfNoEntry: false }) === undefined ? "" : readFileSync(path, "utf8")
if (present !== picture) {
  if (process.argv.includes("--check")) {
    console.error(`${relative(root, path).split(sep).join("/")} does not match the imports: run \`pnpm architecture\``)
    process.exitCode = 1
  } else writeFileSync(path, picture)
}
