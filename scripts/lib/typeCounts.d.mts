interface Counts {
  readonly files: number
  readonly lines: number
  readonly types: number
  readonly instantiations: number
}

export const writeLockingProgram: (folder: string, name: "locks" | "without") => ReadonlyArray<string>

export const countsOf: (text: string) => Counts
