/** Writes to standard output. */
import { Effect, Stdio, Stream } from "effect"

export const write = (text: string): Effect.Effect<void, never, Stdio.Stdio> =>
  Effect.ignore(Stdio.Stdio.use((stdio) => Stream.run(Stream.make(text), stdio.stdout())))

export const print = (lines: ReadonlyArray<string>) => write(lines.map((line) => `${line}\n`).join(""))
