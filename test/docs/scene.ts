/**
 * The names that a code block of a page can use without declaring them. They are globals, so that a block may declare
 * its own `locks`, or import its own `assert`.
 */
import assert from 'node:assert/strict'
import { format } from 'node:util'
import { Redis } from 'ioredis'
import { LockClient } from '../../src/index.ts'
import { type Ended, Shell } from './shell.ts'

export class Scene {
  readonly #url: string
  readonly #shell: Shell
  readonly #printed: string[] = []
  #locks: LockClient | undefined
  #redis: Redis | undefined

  constructor(url: string) {
    this.#url = url
    this.#shell = new Shell(url)
  }

  /** A client for the current block, made on first use. */
  get locks(): LockClient {
    this.#locks ??= new LockClient(this.#url)
    return this.#locks
  }

  get redis(): Redis {
    this.#redis ??= new Redis(this.#url)
    return this.#redis
  }

  /** Returns the text that the block has printed so far. */
  readonly printed = (): string => this.#printed.join('\n')

  readonly sh = (script: string, name?: string): Promise<Ended> => this.#shell.run(script, name)

  readonly print = (...values: unknown[]): void => {
    this.#printed.push(format(...values))
  }

  /** Defines the globals that code blocks use. */
  open(): void {
    const get = { locks: () => this.locks, redis: () => this.redis, assert: () => assert }
    for (const [name, read] of Object.entries(get)) {
      Object.defineProperty(globalThis, name, { get: read, configurable: true })
    }
    Object.assign(globalThis, { printed: this.printed, sh: this.sh })
    Object.assign(console, { log: this.print, info: this.print })
  }

  async close(): Promise<void> {
    await this.#locks?.close()
    this.#redis?.disconnect()
  }
}

/**
 * Declares the globals for the compiler. The declarations are in a string, because a declaration file in this folder
 * would define the names for all tests.
 */
export const declarations = `import type { Scene } from '../../../test/docs/scene.ts'
declare global {
  var locks: Scene['locks']
  var redis: Scene['redis']
  var assert: typeof import('node:assert/strict')
  var printed: Scene['printed']
  var sh: Scene['sh']
}
`
