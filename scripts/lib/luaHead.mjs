// Parses a script's header. A header has these lines:
//
//   KEYS[1] input                  a key
//   KEYS[4n+2] entryLease          repeated for each item, together with its neighbours
//   ARGV[2] lease: ms              a type, unless it is plain text: `ms`, `number`, or one of several texts
//   ARGV[5..] fields               all remaining arguments
//   Operation a: id, mode          the arguments that operation `a` takes, in order, in a call with several operations
//   Reply: each 'Done' | { Count, last: EntryId }. What it means.
//
// A type is a quoted text, a name, a tuple `{ A, B }`, an array `A[]`, a union, or `each T`, which is an array with a
// `T` or a `{ 'error', message }` for each item. `text` is any text, and `any` is any value. `replies.ts` defines the
// other names.

const token = /\s*('[^']*'|\[\]|[\w-]+|[{}()|,:])/y

/** Parses a type at the start of a text. Returns the type and the rest of the text. */
const typeOf = (text) => {
  let at = 0
  const peek = () => {
    token.lastIndex = at
    return token.exec(text)?.[1]
  }
  const take = () => {
    const found = peek()
    at = token.lastIndex
    return found
  }
  const expect = (wanted) => {
    if (take() !== wanted) throw new Error(`"${wanted}" expected after "${text.slice(0, at)}"`)
  }
  const single = () => {
    const found = take()
    if (found === "{") {
      const parts = []
      while (peek() !== "}") {
        if (parts.length > 0) expect(",")
        const before = at
        if (/^\w/.test(take()) && peek() === ":") take()
        else at = before
        parts.push(union())
      }
      take()
      return { kind: "tuple", parts }
    }
    if (found === "(") {
      const inner = union()
      expect(")")
      return inner
    }
    if (found?.startsWith("'")) return { kind: "literal", value: found.slice(1, -1) }
    if (/^\w/.test(found ?? "")) return { kind: "name", name: found }
    throw new Error(`no type in "${text}"`)
  }
  const list = () => {
    let type = single()
    while (peek() === "[]") {
      take()
      type = { kind: "array", of: type }
    }
    return type
  }
  const union = () => {
    const parts = [list()]
    while (peek() === "|") {
      take()
      parts.push(list())
    }
    return parts.length === 1 ? parts[0] : { kind: "union", parts }
  }
  const isEach = peek() === "each"
  if (isEach) take()
  const type = union()
  return { type: isEach ? { kind: "each", of: type } : type, rest: text.slice(at) }
}

const slotLine = /^(KEYS|ARGV)\[(?:(\d+)|(\d*)n([+-]\d+)?|(\d+)\.\.)\] (\w+)(:? ?.*)$/

/** Sorts a header's KEYS or ARGV into numbered, repeated and remaining ones. */
const slotsOf = (header, problem) => {
  const slots = { KEYS: { fixed: [], each: [], rest: [] }, ARGV: { fixed: [], each: [], rest: [] } }
  for (const line of header) {
    if (!/^(?:KEYS|ARGV)\b/.test(line)) continue
    const match = slotLine.exec(line)
    if (match === null) {
      problem(`cannot read "${line}"`)
      continue
    }
    const [, table, number, period, offset, from, name, more] = match
    const { each, fixed, rest } = slots[table]
    const slot = { name, type: more.startsWith(": ") ? typeOf(more.slice(2)).type : { kind: "name", name: "text" } }
    const expect = (found, wanted) =>
      found === wanted || problem(`expected ${table}[${wanted}], found ${table}[${found}]: ${line}`)
    if (number !== undefined) {
      expect(Number(number), fixed.length + 1)
      fixed.push(slot)
    } else if (from !== undefined) {
      expect(Number(from), fixed.length + 1)
      rest.push(slot)
    } else {
      slot.period = Number(period || 1)
      each.push(slot)
      expect(slot.period + Number(offset ?? 0), fixed.length + each.length)
    }
  }
  for (const [table, { each }] of Object.entries(slots)) {
    for (const { name, period } of each) {
      if (period !== each.length) problem(`${name} has ${each.length} repeated ${table}, but its index says ${period}n`)
    }
  }
  return slots
}

/** The argument names of each operation, by the operation's letter. */
const operationsOf = (header) =>
  header.flatMap((line) => {
    const [, letter, names] = /^Operation (\w): (\w+(?:, \w+)*)(?:  .*)?$/.exec(line) ?? []
    return letter === undefined ? [] : [[letter, names.split(", ")]]
  })

const replyOf = (header, problem) => {
  const at = header.findIndex((line) => line.startsWith("Reply: "))
  if (at === -1) return problem("the header has no `Reply:` line")
  const end = header.findIndex((line, i) => i > at && !line.startsWith("  "))
  const text = header.slice(at, end === -1 ? undefined : end).join(" ").slice("Reply: ".length)
  const { rest, type } = typeOf(text)
  if (!/^\.(?: .*)?$/.test(rest)) problem(`unexpected text after the reply's type: "${rest}"`)
  return type
}

/** Parses a header's lines, without their dashes. Calls `problem` with each problem. */
export const headOf = (header, problem) => {
  try {
    return {
      ...slotsOf(header, problem),
      does: header[0],
      operations: operationsOf(header),
      reply: replyOf(header, problem)
    }
  } catch (error) {
    problem(error.message)
  }
}
