/**
 * Searches for a shorter history with the same failure, by running the same seed with fewer faults, fewer clients or
 * less time.
 */
import type { Outcome, Setup } from "./setup.ts"

interface Found {
  readonly setup: Setup<never>
  readonly outcome: Outcome
}

export const shrink = (
  setup: Setup<never>,
  failed: Pick<Outcome, "enabled" | "violations">,
  run: (setup: Setup<never>) => Outcome
): Found | undefined => {
  const checker = failed.violations[0]?.checker
  if (checker === undefined) return undefined
  let attempts = 80
  let best: Found | undefined
  let longest = Infinity
  const attempt = (candidate: Setup<never>): boolean => {
    if (attempts-- <= 0) return false
    const outcome = run(candidate)
    if (outcome.violations[0]?.checker !== checker) return false
    // With fewer faults, the failure may occur later. Reject histories that are longer than the first one
    if (outcome.events.length > longest) return false
    best = { setup: candidate, outcome }
    return true
  }
  if (!attempt({ ...setup, enabled: failed.enabled })) return undefined
  longest = best!.outcome.events.length
  const current = () => best!.setup
  for (let progress = true; progress && attempts > 0;) {
    progress = false
    for (const name of [...current().enabled!]) {
      progress = attempt({ ...current(), enabled: current().enabled!.filter((other) => other !== name) }) || progress
    }
    while (current().clients > 1 && attempt({ ...current(), clients: current().clients - 1 })) progress = true
    for (const piece of [0.25, 0.5, 0.75]) {
      const { duration } = current()
      progress = (duration > 500 && attempt({ ...current(), duration: Math.ceil(duration * piece) })) || progress
    }
  }
  return best
}
