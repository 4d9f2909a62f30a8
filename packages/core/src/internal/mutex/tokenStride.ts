/** The number of tokens of a grant: owners that follow one another within a process take them one by one. */

export const tokenStride = 100

/** The number of further tokens of a grant with this token. */
export const spareTokens = (token: number): number => token % tokenStride === 0 ? tokenStride - 1 : 0
