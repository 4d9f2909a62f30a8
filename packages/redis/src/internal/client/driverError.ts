/** A failure of the connection, in words that name its cure. It has no stack: its origin is outside of this program. */
export class DriverError extends Error {
  override readonly name = "DriverError"
  /** An outage, which ends by itself. Otherwise a mistake. */
  readonly isRetryable: boolean

  constructor(message: string, isRetryable: boolean) {
    super(message)
    this.isRetryable = isRetryable
    this.stack = `${this.name}: ${message}`
  }
}
