/** The interface between a server, or a quorum of servers, and the rest of the client. */
import type { LockError } from '../errors.ts'
import type { MessageListener } from './messages.ts'

/** Receives everything that arrives from Redis, for all kinds of lock. */
export interface LinkListener extends MessageListener {
  /** The connection for commands is gone. `brief`: it will probably be up again at once. */
  onDown(error: Error, brief: boolean): void
  /** The connection for commands is up again. Messages may not arrive yet. */
  onUp(): void
  /**
   * All connections are up again, and messages arrive. Those about `lock`, or about all locks if it is absent, may have
   * been lost.
   */
  onMessagesResumed(lock?: string): void
  /** Some slots of a cluster have another master. `affects` returns whether a place is in one of them. */
  onMoved?(affects: (place: string) => boolean): void
  /** A connection is gone. */
  onDisconnected(error: Error): void
  /** All connections are up again. */
  onReconnected(): void
  /** Reports a problem that does harm, but makes no call fail. Each problem is reported once. */
  onWarning?(error: LockError): void
  /** Returns whether a waiter or a hold depends on messages now. */
  busy(): boolean
}
