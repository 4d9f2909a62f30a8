/** Hashes, sets and sorted sets that are tables, which is what Redis calls an encoding that is not compact. */
const tables = new WeakSet<object>()

export const isTable = (collection: object): boolean => tables.has(collection)

export const toTable = (collection: object): void => void tables.add(collection)
