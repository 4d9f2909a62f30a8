/**
 * Time to import the mutex, and the size of a bundle.
 *
 *     pnpm bench:size
 */
import { Effect } from "effect"
import { sizes } from "./work/size.ts"

console.log(await Effect.runPromise(sizes))
