/** The servers that the contract is tested on. A row that cannot be had is a failure, never left out. */

export interface ServerRow {
  /** As the server itself has to say it, without the last parts of the version. */
  readonly name: string
  /** The official image. */
  readonly image: string
  /** Names another image. */
  readonly variable: string
  readonly product: 'redis' | 'valkey'
  /** The release of Debian that packages this version, for where no image registry is reached. */
  readonly suite: string
  /** Arguments for every server of the row. */
  readonly args: readonly string[]
  /** What the row is about, beside the version. */
  readonly note: string
  /** Files of the contract that ask for what this server has not; another file of test/topology/matrix takes their place. */
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

/** From the oldest to the newest, because the first of those that are run is on the oldest Node. */
export const servers: readonly ServerRow[] = [
  // The oldest that is supported. It has no sharded pub/sub, and without HELLO a client has to speak RESP2 to it. It
  // quotes what failed in a script in the middle of its error, and rights on channels are unknown to it: what it refuses
  // is tested by test/topology/matrix/older-refusals.test.ts.
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
