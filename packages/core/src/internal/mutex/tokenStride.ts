/**
 * How many tokens a grant reserves. A store grants a multiple of `tokenStride`, and reserves the tokens up to the next
 * multiple: owners that follow one another within a process take them one by one. If the last grant was a moment ago,
 * the store grants a single token, which is not a multiple, and reserves no more.
 */
export const tokenStride = 100

/** How many further tokens the grant with this token reserves. */
export const spareTokens = (token: number): number => token % tokenStride === 0 ? tokenStride - 1 : 0
