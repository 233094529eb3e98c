/** The lock client of a run, for one server or for a quorum. */
import { type ClientOptions, LockClient } from '../../../src/index.ts'

export function clientOf(urls: readonly string[], options: ClientOptions): LockClient {
  const source = urls.length > 1 ? [...urls] : urls[0]
  return new LockClient(source as ConstructorParameters<typeof LockClient>[0], options)
}
