/** Creates an `Acquisition`, which describes a data stream that a consumer has just claimed. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch } from "@effect-simba/core/streams/StreamStore"
import type { Acquisition } from "../../src/streams/internal/ownedStream.ts"

export const acquisitionAt = (
  since: Acquisition["since"],
  { entry = "1-0", stream = "s1", token = 1 }: {
    readonly entry?: string
    readonly stream?: string
    readonly token?: number
  } = {}
): Acquisition => ({
  stream: StreamName.make(stream),
  entry: EntryId.make(entry),
  consumer: ConsumerName.make("simba-consumer-a"),
  epoch: Epoch.make(`session00000.${token}`),
  token: token as FencingToken,
  info: {},
  failures: 0,
  source: "sweep",
  since,
  arrival: undefined
})
