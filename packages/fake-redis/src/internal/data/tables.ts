/** Hashes, sets and sorted sets that are tables: they have outgrown their compact encoding. */
const tables = new WeakSet<object>()

export const isTable = (collection: object): boolean => tables.has(collection)

export const toTable = (collection: object): void => void tables.add(collection)
