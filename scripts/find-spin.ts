/**
 * Finds Spin on the PATH, or in the distribution's package. The package contains one binary, which needs only the C
 * library.
 */
import { join } from 'node:path'
import which from 'which'
import { run } from '../local-redis/command.ts'
import { messageOf } from '../local-redis/error-message.ts'
import { unpackPackages } from '../local-redis/packages.ts'

export interface Spin {
  readonly binary: string
  readonly version: string
}

export async function findSpin(): Promise<Spin> {
  const onPath = await which('spin', { nothrow: true })
  const spin = onPath ? await spinAt(onPath) : undefined
  if (spin) return spin

  const wanted = { name: 'spin', choices: [['spin']], find: (tree: string) => spinAt(join(tree, 'usr', 'bin', 'spin')) }
  const unpacked = await unpackPackages(wanted, process.env).catch(error => ({ unavailable: messageOf(error) }))
  if ('found' in unpacked) return unpacked.found
  const help = 'Spin is needed (Debian, Ubuntu: apt-get install spin; macOS: brew install spin)'
  throw new Error(`${help}\n${unpacked.unavailable}`)
}

/** Checks that the program is the model checker, because other programs are also called spin. */
async function spinAt(binary: string): Promise<Spin | undefined> {
  const printed = await run(binary, ['-V'], { timeoutMs: 10_000 }).catch(() => '')
  return printed.startsWith('Spin Version') ? { binary, version: printed.trim() } : undefined
}
