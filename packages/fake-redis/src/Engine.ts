/**
 * The engine behind `createFakeRedis`, for programs that bring their own sockets, clock and timers. This module may
 * change in any release.
 *
 * @since 0.1.0
 */
export {
  findById,
  type Group,
  parseId,
  printId,
  type Stream,
  type StreamEntry,
  type StreamId
} from "./internal/data/stream.ts"
export { type BinarySession, type ConnectOptions, type Dump, Engine, type KeyInfo } from "./internal/engine.ts"
export type { EngineOptions, Trace } from "./internal/engineOptions.ts"
export type { ErrorState } from "./internal/errorStates.ts"
export type { LuaVm } from "./internal/lua/script.ts"
export { sharedLua } from "./internal/lua/vm.ts"
export { fromBytes, toReply, type Value } from "./internal/reply.ts"
export { type BinaryPush, type Push, type Reply, ReplyError, type Session } from "./internal/session.ts"
export { writePush, writeReply } from "./internal/socket/replyWriter.ts"
export { type Receiver, SocketSession, type Wire } from "./internal/socket/session.ts"
