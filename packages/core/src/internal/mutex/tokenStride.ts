/**
 * How many tokens a grant reserves. A store normally grants a multiple of `tokenStride`, which reserves the tokens up
 * to the next multiple. Successive owners within a process use these tokens one by one. If the last grant was only a
 * moment ago, the store grants a single token that is not a multiple. `MutexStore` exports `tokenStride`, and
 * `heldLease` counts the tokens.
 */
export const tokenStride = 100

/** The number of additional tokens that a grant with this token reserves. */
export const spareTokens = (token: number): number => token % tokenStride === 0 ? tokenStride - 1 : 0
