/**
 * Infers a hook's services from the hook alone. A plain type parameter would also be inferred from the use of the
 * result, and become `any` inside `Effect.all` and `Layer.mergeAll`. All public operations that take hooks use it.
 */
export type HookServices<R> = [R] extends [infer Services] ? Services : never
