/**
 * The services of an optional hook, which only its own type decides. A plain type parameter would also be inferred from where
 * the result is used, and become `any` inside of `Effect.all` and `Layer.mergeAll`.
 */
export type HookServices<R> = [R] extends [infer Services] ? Services : never
