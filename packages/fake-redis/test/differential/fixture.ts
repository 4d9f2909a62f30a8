/** An engine whose clock the test controls, with sessions that record their replies. */
import { Engine } from "../../src/internal/engine.ts"
import type { EngineOptions } from "../../src/internal/engineOptions.ts"
import { loadLua } from "../../src/internal/lua/vm.ts"
import type { Push, Session } from "../../src/internal/session.ts"
import { toPlain, toResult } from "./comparison.ts"
import { makeDraw } from "./draw.ts"

/** A realistic 13-digit time, to reveal bugs with large numbers. */
export const START = 1763678096123

const lua = await loadLua()

export interface Peer {
  readonly session: Session
  readonly pushes: Array<Push>
  /** All replies so far. Errors are `-text`. */
  readonly replies: Array<unknown>
  /** Runs a command. Returns its reply, or `undefined` while it is blocked. */
  readonly run: (...args: ReadonlyArray<string>) => unknown
}

export const makeFixture = (options: Partial<EngineOptions> = {}) => {
  let micros = START * 1000
  const engine = new Engine({
    nowMicros: () => micros,
    random: makeDraw(1),
    expiryDelayMillis: [0, 0],
    lua,
    ...options
  })
  const peer = (): Peer => {
    const pushes: Array<Push> = []
    const replies: Array<unknown> = []
    const session = engine.connect((push) => pushes.push(push))
    return {
      session,
      pushes,
      replies,
      run: (...args) => {
        let result: unknown
        session.execute(args, (reply) => {
          result = toPlain(toResult(reply))
          replies.push(result)
        })
        return result
      }
    }
  }
  /** Advances the clock, and ticks at each wake-up time on the way. */
  const advance = (millis: number): void => {
    const end = micros + millis * 1000
    for (;;) {
      const wake = engine.nextWake()
      if (wake === undefined || wake > end) break
      micros = Math.max(micros, wake)
      engine.tick()
    }
    micros = end
  }
  return { engine, peer, advance }
}
