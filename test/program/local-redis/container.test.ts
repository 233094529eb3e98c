import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chooseSource } from '../../../local-redis/choose.ts'
import { fromDistribution } from '../../../local-redis/debian.ts'
import { onPath } from '../../../local-redis/path.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { ask } from './ask.ts'
import { runChild } from './child.ts'

/** A source that needs no container engine. If the container engine hangs, `obtain.ts` must use this source. */
const other = await chooseSource([onPath(), fromDistribution()]).catch(() => undefined)

test.skipIf(!other)(
  'a container engine that hangs keeps neither the search nor the process',
  { timeout: 300_000 },
  async () => {
    const folder = await emptyFolder()
    const hanging = createServer(() => {}) // this server accepts connections, but never answers
    const path = join(folder, 'engine.sock')
    await new Promise<void>(resolve => hanging.listen(path, resolve))
    try {
      const child = runChild('obtain.ts', [], { REDIS_URL: '', DOCKER_HOST: `unix://${path}` })
      const line = String((await child.lines.next()).value)
      expect(line).not.toContain('container')
      const url = String((await child.lines.next()).value)
      expect(await child.ended).toEqual({ code: 0, signal: null })
      expect(await ask(Number(new URL(url).port), 'PING')).toBeUndefined()
    } finally {
      hanging.close()
    }
  },
)
