/**
 * examples/quorum/: three workers use the five servers of compose.yaml. Two servers are killed. Then a third server is
 * killed, and started again.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { findServerSource, type RunningServer } from '../../../local-redis/index.ts'
import { LockClient } from '../../../src/index.ts'
import { example, Running } from '../../kit/program.ts'
import { emptyFolder } from '../../kit/temp.ts'
import { eventually } from '../../kit/time.ts'

interface Compose {
  readonly services: Readonly<Record<string, { readonly command: string; readonly ports: readonly string[] }>>
}

const folder = new URL('../../../examples/quorum/', import.meta.url)
const { services }: Compose = parse(await readFile(new URL('compose.yaml', folder), 'utf8'), { merge: true })
/** Within this time, in ms, each worker gets its next turn, even on a busy machine. */
const SOON = 20_000

test('the workers know the servers of the compose file', async () => {
  const worker = await readFile(new URL('worker.ts', folder), 'utf8')
  const ports = Object.values(services).map(each => each.ports[0]!.split(':').at(-2))
  expect(ports).toHaveLength(5)
  expect(worker).toContain(`[${ports.join(', ')}]`)
})

test('turns continue without two of the servers, stop without three, and never overlap', {
  timeout: 120_000,
}, async () => {
  const source = await findServerSource()
  const servers: RunningServer[] = await Promise.all(
    Object.values(services).map(async ({ command }) => {
      const [program, ...args] = command.split(' ')
      expect(program).toBe('redis-server')
      // Each server has its own folder, so its data survives a restart.
      return source.start({ args, dir: await emptyFolder() })
    }),
  )
  onTestFinished(() => Promise.all(servers.map(server => server.stop())).then(() => {}))
  const ledger = join(await emptyFolder(), 'ledger.txt')
  const env = { REDIS_URLS: servers.map(({ url }) => url).join(), LEDGER: ledger, OUTAGE_MS: '2000' }
  const workers = ['a', 'b', 'c'].map(NAME => new Running(example('quorum/worker.ts'), { ...env, NAME }))
  onTestFinished(() => Promise.all(workers.map(worker => worker.end('SIGKILL'))).then(() => {}))
  await Promise.all(workers.map(worker => worker.line(/ready$/)))

  const lines = async () => (await readFile(ledger, 'utf8').catch(() => '')).trimEnd().split('\n')
  /** Waits until each worker has had a turn that began after this call. */
  const everyoneGoesOn = async () => {
    const before = (await lines()).length
    await eventually(async () => {
      const since = (await lines()).slice(before)
      return ['a', 'b', 'c'].every(name => since.some(line => line.startsWith('begin') && line.endsWith(` ${name}`)))
    }, SOON)
  }
  await everyoneGoesOn()
  const [first, second, third] = servers as [RunningServer, RunningServer, RunningServer, ...RunningServer[]]
  await Promise.all([first.kill(), second.kill()])
  await everyoneGoesOn()

  await third.kill()
  // A worker's first error about the third server may say that the connection was closed. So wait until each worker
  // prints that three servers refuse connections.
  await Promise.all(workers.map(worker => worker.line(/of 5 answered(.*ECONNREFUSED){3}/)))
  await third.restart()
  await everyoneGoesOn()

  for (const worker of workers) expect(await worker.end('SIGTERM')).toBe(0)
  expect(workers.map(worker => worker.lines.at(-1))).toEqual(['a: stopped', 'b: stopped', 'c: stopped'])
  // The turns did not overlap: in the log, the end of each turn comes directly after its beginning. The token of each
  // turn is larger than the token of the previous turn.
  const written = (await lines()).map(line => line.split(' ') as [string, string, string])
  const turns = written.filter(([what]) => what === 'begin')
  expect(written).toEqual(
    turns.flatMap(([, token, name]) => [
      ['begin', token, name],
      ['end', token, name],
    ]),
  )
  const tokens = turns.map(([, token]) => Number(token))
  expect(tokens).toEqual([...new Set(tokens)].sort((one, other) => one - other))

  const locks = new LockClient(env.REDIS_URLS.split(','))
  onTestFinished(() => locks.close())
  expect(await locks.isLocked('example:ledger')).toBe(false)
})
