/** For tests that want a script other than it is. */
export function assemble(path: string, bodies?: Readonly<Record<string, string>>): string
