/** What leaves the server once its state is consistent, in order. Consequences follow it. */
export class Outbox {
  private readonly actions: Array<() => void> = []

  push(action: () => void): void {
    this.actions.push(action)
  }

  flush(): void {
    for (let next = this.actions.shift(); next !== undefined; next = this.actions.shift()) next()
  }
}
