/**
 * Holds replies and pushes until the server's state is consistent, then sends them in order. Actions that are added
 * while it is sending run after those already queued.
 */
export class Outbox {
  private readonly actions: Array<() => void> = []

  push(action: () => void): void {
    this.actions.push(action)
  }

  flush(): void {
    for (let next = this.actions.shift(); next !== undefined; next = this.actions.shift()) next()
  }
}
