/** The contestant for @sesamecare-oss/redlock, a fork of redlock. */
import { load } from "./folder.ts"
import { fromRedlock, type MakeRedlock } from "./redlock.ts"

const name = "sesamecare-redlock"

export const contestant = fromRedlock(
  name,
  async () => (await load<{ readonly Redlock: MakeRedlock }>(name, "@sesamecare-oss/redlock")).Redlock
)
