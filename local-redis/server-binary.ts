import { run } from './command.ts'

export const serverNames = ['redis-server', 'valkey-server'] as const

/**
 * Returns the version that the binary reports, e.g. "redis-server 7.0.15". This also proves that the binary runs on
 * this machine.
 */
export async function versionOf(binary: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const printed = await run(binary, ['--version'], { timeoutMs: 10_000, env })
  const [, product, version] = /^(Redis|Valkey) server v=(\S+)/.exec(printed) ?? []
  if (!product) throw new Error(`${binary} is not a Redis or Valkey server`)
  return `${product.toLowerCase()}-server ${version}`
}
