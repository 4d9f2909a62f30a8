/** A `cjson` error. It never leaves the host: Lua receives its message. */
export class JsonError {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

export const refuse = (message: string): never => {
  throw new JsonError(message)
}
