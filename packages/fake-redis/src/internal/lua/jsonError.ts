/**
 * How the parts of `cjson` refuse. The error never leaves the host: Lua gets its message.
 */
export class JsonError {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

export const refuse = (message: string): never => {
  throw new JsonError(message)
}
