/** A job that runs once for each instant in the fleet, and notes the instant that it has. */
import { Leadership } from "@effect-simba/core"
import type { Simulation } from "@effect-simba/testkit"
import { DateTime, Effect, Layer } from "effect"

export const leadership = "jobs"

/** Milliseconds. */
const every = 250

export const jobs = (client: Simulation.Client) => {
  const run = ({ attempt, lease, scheduledAt }: Leadership.Run) =>
    Effect.suspend(() => {
      client.note("granted", { resource: leadership, id: lease.id, token: lease.token })
      client.note("ran", { instant: DateTime.toEpochMillis(scheduledAt), attempt, token: lease.token })
      return client.random() < 0.02 ? Effect.fail("enough for now") : Effect.void
    })
  return Layer.launch(Leadership.layerJobs(leadership, [
    { name: "rate", schedule: Leadership.every(every), onError: "stepDown", run }
  ]))
}
