/**
 * A Cluster client that refreshes the topology with backoff, always reconnects, and reaches nodes that do not announce
 * an address. ioredis would refresh the topology for each refused command. Created by `connection`.
 */
import { Cluster, type ClusterNode, type ClusterOptions, type Redis, type RedisOptions } from "ioredis"
import { Pace } from "./pace.ts"

type Done = (error: unknown, slots: ReadonlyArray<ReadonlyArray<unknown>> | undefined) => void

/**
 * Returns a node whose duplicates fill in the missing address in CLUSTER SLOTS replies. A node that does not know its
 * own address does not announce one, so clients are expected to use the address at which they reached it. ioredis would
 * skip the node.
 */
const namingItself = (node: Redis): Redis =>
  Object.create(node, {
    duplicate: {
      value: (options: RedisOptions) => {
        const copy = node.duplicate(options)
        const cluster = copy.cluster.bind(copy) as (command: string, done: Done) => void
        const named = (command: string, done: Done) =>
          cluster(command, (error, slots) => {
            for (const [, , ...nodes] of slots ?? []) {
              for (const announced of nodes as Array<[host: unknown]>) announced[0] ||= node.options.host
            }
            done(error, slots)
          })
        return Object.assign(copy, { cluster: named })
      }
    }
  })

export class ClusterClient extends Cluster {
  private readonly pace = new Pace()

  constructor(nodes: Array<ClusterNode>, options: ClusterOptions) {
    const reconnects = options.redisOptions?.reconnectOnError
    const redisOptions = {
      ...options.redisOptions,
      // ioredis calls this for each error reply. In a redirection without a host, it would use localhost
      reconnectOnError(this: RedisOptions, error: Error) {
        error.message = error.message.replace(/^((MOVED|ASK) \d+ )(?=:\d+$)/, `$1${this.host}`)
        return reconnects?.(error) ?? false
      }
    }
    super(nodes, { ...options, redisOptions } as object)
    const read: (node: Redis | undefined, done: object) => void = this["getInfoFromNode"].bind(this)
    this["getInfoFromNode"] = (node: Redis | undefined, done: object) => read(node && namingItself(node), done)
  }

  /**
   * Skips a refresh that comes too soon. A moved slot does not need a refresh, because the redirection names its new
   * node.
   */
  override refreshSlotsCache(callback?: Parameters<Cluster["refreshSlotsCache"]>[0]): void {
    if (!this.pace.isDue() && this.status === "ready") return callback?.()
    super.refreshSlotsCache(callback)
  }

  /**
   * Retries if the last old connection ends while host names are being resolved. ioredis would abort and never retry.
   */
  override connect(): Promise<void> {
    const connecting = super.connect()
    connecting.catch(() => {
      if (this.status === "close") this["handleCloseEvent"]()
    })
    return connecting
  }
}
