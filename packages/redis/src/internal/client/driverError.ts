/** A failure of the connection, in words that name its cure. It has no stack: its origin is outside of this program. */
export class DriverError extends Error {
  override readonly name = "DriverError"
  /** An outage, which ends by itself. Otherwise a mistake. */
  readonly retryable: boolean

  constructor(message: string, retryable: boolean) {
    super(message)
    this.retryable = retryable
    this.stack = `${this.name}: ${message}`
  }
}
