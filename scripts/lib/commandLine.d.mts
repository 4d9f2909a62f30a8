import type { parseArgs, ParseArgsConfig } from "node:util"

export function commandLine<const Config extends ParseArgsConfig>(
  config: Config,
  checks?: {
    readonly counts?: ReadonlyArray<string>
    readonly whole?: ReadonlyArray<string>
    readonly positive?: ReadonlyArray<string>
    readonly name?: Readonly<Record<string, ReadonlyArray<string>>>
    readonly names?: Readonly<Record<string, ReadonlyArray<string>>>
  }
): ReturnType<typeof parseArgs<Config>>
