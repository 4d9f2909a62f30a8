/** The text of a script. `bodies` replaces files, for tests of changed scripts. */
export function assemble(path: string, bodies?: Readonly<Record<string, string>>): string
