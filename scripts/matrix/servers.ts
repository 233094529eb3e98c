/**
 * The servers on which the tests in test/contract run, one in each row. If a server is unavailable, the run fails; its
 * row is never skipped.
 */

export interface ServerRow {
  /**
   * The product and version that the server must report, without the last numbers of the version: a server that reports
   * 7.0.15 fits the row with 7.0.
   */
  readonly name: string
  readonly image: string
  /** The environment variable that may name another image. */
  readonly variable: string
  readonly product: 'redis' | 'valkey'
  /** The release of Debian that packages this version, in case no image registry can be reached. */
  readonly suite: string
  /** Arguments for every server of the row. */
  readonly args: readonly string[]
  /** What is special about this server, besides its version. */
  readonly note: string
  /**
   * Files in test/contract that need features which this server lacks. Files in test/topology/matrix test this server
   * instead.
   */
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

/** The servers, from the oldest to the newest. With `--nodes`, the first one is tested on the oldest Node. */
export const servers: readonly ServerRow[] = [
  // The oldest supported version. It has no sharded pub/sub, and without HELLO a client has to use RESP2. The files in
  // `without` cannot run on it, for two reasons. If a script fails, this server embeds the script's error in an error
  // of its own, and it has no rights for channels. test/topology/matrix/older-refusals.test.ts tests what it refuses.
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
