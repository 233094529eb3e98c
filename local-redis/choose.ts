import { messageOf } from './error-message.ts'
import type { ServerSource } from './server.ts'

/** The result of looking in one place for a server: a source of servers, or the reason why there is none. */
export type Finding = { readonly source: ServerSource } | { readonly unavailable: string }

export interface SourceOption {
  readonly name: string
  find(): Promise<Finding>
}

/**
 * Tries the options in order, and returns the source of servers that the first successful option finds. An option that
 * throws is not successful.
 */
export async function chooseSource(options: readonly SourceOption[]): Promise<ServerSource> {
  const refusals: Refusal[] = []
  for (const { name, find } of options) {
    const finding = await find().catch(error => ({ unavailable: messageOf(error) }))
    if ('source' in finding) return finding.source
    refusals.push({ option: name, reason: finding.unavailable })
  }
  throw new NoRedisError(refusals)
}

export interface Refusal {
  readonly option: string
  readonly reason: string
}

export class NoRedisError extends Error {
  override readonly name = 'NoRedisError'
  readonly code = 'NO_REDIS'

  constructor(readonly refusals: readonly Refusal[]) {
    const tried = refusals.map(({ option, reason }) => `  ${option}: ${reason.replaceAll('\n', '\n    ')}`)
    super(
      [
        'No Redis server could be found or started.',
        ...tried,
        'Do one of the following:',
        '  install redis-server or valkey-server so that it is on the PATH',
        '    (Debian, Ubuntu: apt install redis-server; Fedora: dnf install valkey; macOS: brew install redis)',
        '  start a container engine such as Docker or Podman, with testcontainers installed (npm i -D testcontainers)',
        '  set REDIS_URL to the address of a running server that may be used instead',
      ].join('\n'),
    )
  }
}
