/** The contestant for redlock 5. */
import { load } from "./folder.ts"
import { fromRedlock, type MakeRedlock } from "./redlock.ts"

const name = "redlock-5"

export const contestant = fromRedlock(
  name,
  async () => (await load<{ readonly default: MakeRedlock }>(name, "redlock")).default
)
