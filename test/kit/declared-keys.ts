/**
 * A witness on the side of the server: reads by MONITOR what each script does, and notes each access to a key that the
 * call of the script has not named in KEYS. Some servers refuse such an access, or are wrong about the key's node.
 */
import { Redis } from 'ioredis'
import type { RunningServer } from '../../local-redis/index.ts'

const keyless = ['time', 'publish', 'spublish', 'pubsub', 'cluster', 'info', 'acl', 'config']
const onlyKeys = ['exists', 'unlink', 'del']

export class DeclaredKeys {
  readonly #monitors: Redis[] = []
  /** The accesses so far, each with the end of the call of its script. */
  readonly undeclared = new Set<string>()

  async watch({ url }: Pick<RunningServer, 'url'>): Promise<void> {
    const redis = new Redis(url)
    redis.on('error', () => {})
    const monitor = await redis.monitor()
    redis.disconnect()
    this.#monitors.push(monitor)
    let [script, declared]: [string, readonly string[]] = ['', []]
    monitor.on('monitor', (_time: string, [name = '', ...args]: string[], source: string) => {
      if (source !== 'lua') {
        if (!/^eval/i.test(name)) return
        script = `${name} ${args.join(' ').slice(-200)}`
        declared = args.slice(2, 2 + Number(args[1]))
      } else if (!keyless.includes(name.toLowerCase())) {
        for (const key of onlyKeys.includes(name.toLowerCase()) ? args : args.slice(0, 1)) {
          if (!declared.includes(key)) this.undeclared.add(`${name} ${key} by ${script}`)
        }
      }
    })
  }

  /** Ends the witness. Makes the run fail if a script has touched a key that its call has not named. */
  end(): void {
    for (const monitor of this.#monitors) monitor.disconnect()
    const found = [...this.undeclared]
    if (found.length === 0) return
    // Vitest only prints an error that is thrown after the last test.
    process.exitCode = 1
    throw new Error(`${found.length} accesses to keys that are not in KEYS:\n${found.slice(0, 20).join('\n')}`)
  }
}
