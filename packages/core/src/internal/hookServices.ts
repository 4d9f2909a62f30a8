/**
 * Infers a hook's services from the hook alone. A plain type parameter would also be inferred from how the result is
 * used, and become `any` inside `Effect.all` and `Layer.mergeAll`. Used by all public operations that take hooks.
 */
export type HookServices<R> = [R] extends [infer Services] ? Services : never
