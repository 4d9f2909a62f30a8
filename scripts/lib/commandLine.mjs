// Reads a script's options. `--help` prints the script's header comment. After a mistake, prints one line and exits with
// code 2 before any work starts.
import { readFileSync } from "node:fs"
import { parseArgs } from "node:util"

/** A script's header comment, without comment markers. */
const headOf = (path) => {
  const lines = readFileSync(path, "utf8").replace(/^#!.*\n/, "").split("\n")
  const after = lines.findIndex((line) => !/^(\/\/|\/\*\*| \*)/.test(line))
  return lines.slice(0, after).map((line) => line.replace(/^(\/\*\*| \*\/|\/\/| \*) ?/, "").replace(/ \*\/$/, ""))
    .join("\n").trim()
}

const fail = (message) => {
  console.error(`${message}; --help explains the options`)
  process.exit(2)
}

const parsed = (config) => {
  try {
    return parseArgs({ ...config, options: { ...config.options, help: { type: "boolean", short: "h" } } })
  } catch (error) {
    return fail(error.message.split(/\.\s/)[0])
  }
}

/**
 * Parses the command line. `whole` lists the options that are whole numbers, `counts` those that say how much to run
 * and must not be 0, and `positive` those that may have fractions. `names` contains the options that are
 * comma-separated names, with the allowed names, and `name` those that are a single name.
 */
export const commandLine = (config, { counts = [], name = {}, names = {}, positive = [], whole = [] } = {}) => {
  const { positionals, values } = parsed(config)
  if (values.help) {
    console.log(headOf(process.argv[1]))
    process.exit()
  }
  for (const [option, value] of Object.entries(values)) {
    const number = value === "" ? NaN : Number(value)
    if (whole.includes(option) && !(Number.isSafeInteger(number) && number >= 0)) {
      fail(`--${option} must be a non-negative integer, not "${value}"`)
    }
    if (counts.includes(option) && !(Number.isSafeInteger(number) && number > 0)) {
      fail(`--${option} must be a positive integer, not "${value}"`)
    }
    if (positive.includes(option) && !(number > 0)) fail(`--${option} must be a positive number, not "${value}"`)
    const allowed = name[option] ?? names[option]
    if (allowed === undefined) continue
    const unknown = (name[option] === undefined ? value.split(",") : [value]).find((one) => !allowed.includes(one))
    if (unknown !== undefined) fail(`unknown ${option} "${unknown}", expected one of: ${allowed.join(", ")}`)
  }
  return { positionals, values }
}
