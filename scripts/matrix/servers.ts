/**
 * The servers on which the contract is tested. If a row's server is unavailable, the run fails. The row is never left
 * out.
 */

export interface ServerRow {
  /**
   * The product and version that the server itself must report. The last parts of the version are left out, so a server
   * of version 7.0.15 belongs to the row with the version 7.0.
   */
  readonly name: string
  /** The official image. */
  readonly image: string
  /** The environment variable that may name another image. */
  readonly variable: string
  readonly product: 'redis' | 'valkey'
  /** The release of Debian that packages this version, in case no image registry can be reached. */
  readonly suite: string
  /** Arguments for every server of the row. */
  readonly args: readonly string[]
  /** What the row tests besides the version. */
  readonly note: string
  /** Files of the contract that need features which this server lacks. A file in test/topology/matrix replaces them. */
  readonly without: readonly string[]
}

const row = (
  name: string,
  suite: string,
  more: Partial<Pick<ServerRow, 'args' | 'note' | 'without'>> = {},
): ServerRow => {
  const [product, version] = name.toLowerCase().split(' ') as ['redis' | 'valkey', string]
  return {
    name,
    image: `${product === 'valkey' ? 'valkey/valkey' : 'redis'}:${version}`,
    variable: `BATON_IMAGE_${product.toUpperCase()}_${version.replace('.', '_')}`,
    product,
    suite,
    args: [],
    note: '',
    without: [],
    ...more,
  }
}

/** From the oldest to the newest, because the first row of a run uses the oldest Node. */
export const servers: readonly ServerRow[] = [
  // The oldest supported version. It has no sharded pub/sub. It lacks HELLO, so a client has to use RESP2. If a script
  // fails, this server puts the script's error into the middle of its own error. It has no access rights for channels,
  // so test/topology/matrix/older-refusals.test.ts tests what it refuses.
  row('Redis 6.0', 'bullseye', {
    args: ['--rename-command', 'HELLO', 'GONE'],
    note: 'RESP2, no sharded pub/sub',
    without: ['test/contract/server-refusals.test.ts', 'test/contract/server-states.test.ts'],
  }),
  row('Redis 7.0', 'bookworm'),
  row('Redis 8', 'forky'),
  row('Valkey 8', 'trixie'),
  row('Valkey 9', 'forky'),
]
