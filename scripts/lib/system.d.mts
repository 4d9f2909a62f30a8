/** For tests that start a Postgres of their own. */
export function postgresProgram(name: string): string
