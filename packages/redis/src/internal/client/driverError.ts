/**
 * A connection failure whose message says how to fix it. It has no stack trace, because the cause is outside this
 * program.
 */
export class DriverError extends Error {
  override readonly name = "DriverError"
  /** True for an outage, false for a misconfiguration. */
  readonly isRetryable: boolean

  constructor(message: string, isRetryable: boolean) {
    super(message)
    this.isRetryable = isRetryable
    this.stack = `${this.name}: ${message}`
  }
}
