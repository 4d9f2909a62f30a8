/** Marks hashes, sets and sorted sets that have outgrown their compact encoding and become tables. */
const tables = new WeakSet<object>()

export const isTable = (collection: object): boolean => tables.has(collection)

export const toTable = (collection: object): void => void tables.add(collection)
