/** Which hashes, sets and sorted sets are tables, as Redis calls what is not compact. */
const tables = new WeakSet<object>()

export const isTable = (collection: object): boolean => tables.has(collection)

export const toTable = (collection: object): void => void tables.add(collection)
