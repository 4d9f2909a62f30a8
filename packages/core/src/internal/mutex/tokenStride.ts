/** How many tokens a grant has: owners that follow one another within its process take them one by one. */

export const tokenStride = 100

/** How many tokens a grant with this token has besides it. */
export const spareTokens = (token: number): number => token % tokenStride === 0 ? tokenStride - 1 : 0
