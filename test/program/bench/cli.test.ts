import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Results, type Rival, type Scenario, takesPart } from '../../../benchmarks/contract.ts'
import { expected, skipped } from '../../../benchmarks/harness/trial.ts'
import { rivals } from '../../../benchmarks/rivals/index.ts'
import { scenarios } from '../../../benchmarks/scenarios.ts'
import { printedBy } from '../../kit/printed.ts'
import { runNode } from '../../kit/program.ts'
import { redisUrl } from '../../kit/redis.ts'

const cwd = fileURLToPath(new URL('../../..', import.meta.url))
const program = ['dist/cli/main.js', 'bench']
const bench = (...args: string[]) => runNode([...program, ...args], { cwd })
const namesOf = (all: readonly { readonly name: string }[]) => all.map(({ name }) => name).join(', ')

describe('unusable arguments: exit code 64 and one line', () => {
  test.each([
    [
      ['--scenario', '2x8', '--scenario', 'nope'],
      `baton: option '--scenario' does not accept 'nope'; there are ${namesOf(scenarios)}\n`,
    ],
    [['--rival', 'redlok'], `baton: option '--rival' does not accept 'redlok'; there are ${namesOf(rivals)}\n`],
    [['--quick', '--all'], /^baton: option '--quick' cannot be used with option '--all'/],
    [
      ['--rounds', '0'],
      /^baton: option '--rounds <n>' argument '0' is invalid. It must be an integer of at least 1.\n$/,
    ],
    [
      ['--rival', 'baton-fair,redlock', '--scenario', 'semaphore-one'],
      'baton: redlock cannot run in any of these scenarios; choose others with --scenario\n',
    ],
    [
      ['--url', 'rediss://127.0.0.1:1', '--rtt', '1'],
      'baton: --rtt cannot add a delay to a TLS connection; leave --rtt out, or give an address that begins with redis://\n',
    ],
  ])('%s', async (args, said) => {
    const { code, output, errors } = await bench(...args)
    expect(output).toBe('')
    if (typeof said === 'string') expect(errors).toBe(said)
    else expect(errors).toMatch(said)
    expect(code).toBe(64)
  })
})

test('the help says how long a run takes, as the plan does', async () => {
  const { output } = await bench('--help')
  const minutes = (all: readonly Rival[], among: readonly Scenario[], rounds = 3) => {
    const trials = all.flatMap(rival => among.filter(each => takesPart(rival, each) && !skipped(rival, each)))
    return (trials.reduce((sum, scenario) => sum + expected(scenario, 2), 0) * rounds) / 60_000
  }
  const own = rivals.filter(({ kind }) => kind !== 'rival')
  const [least, most, withAll] = output
    .replace(/\s+/g, ' ')
    .match(/takes (\d+) to (\d+) minutes, .* packages (\d+) minutes/)!
    .slice(1)
    .map(Number)
  // The plan does not count the short loops before the first round, nor a slow machine.
  expect(minutes(own, scenarios)).toBeGreaterThan(least! * 0.75)
  expect(minutes(own, scenarios)).toBeLessThan(most!)
  expect(minutes(rivals, scenarios)).toBeGreaterThan(withAll! * 0.75)
  expect(minutes(rivals, scenarios)).toBeLessThan(withAll! * 1.25)
})

test('an invalid address is an unusable argument, and is not shown', async () => {
  const { code, errors } = await bench('--url', 'http://:secret@example')
  expect(errors).toMatch(/^baton: --url is not an address of Redis; expected redis:/)
  expect(errors).not.toContain('secret')
  expect(code).toBe(64)
})

test('a server that is not there: exit code 69', async () => {
  const { code, errors } = await bench('--url', 'redis://127.0.0.1:1', '--rival', 'floor-set')
  expect(errors).toMatch(/ECONNREFUSED|closed/)
  expect(code).toBe(69)
})

describe('interrupted', () => {
  /** Starts a run that would take an hour. `ended` resolves to its exit code. */
  async function long() {
    const folder = await mkdtemp(join(tmpdir(), 'baton-bench-test-'))
    const [json, html] = [join(folder, 'results.json'), join(folder, 'results.html')]
    const what = ['--rival', 'floor-set', '--scenario', 'uncontended', '--rounds', '2000', '--seconds', '0.1']
    const where = ['--url', redisUrl(), '--no-warm-cores', '--json', json, '--html', html]
    // If a second signal ends a run at once, the run leaves its temporary files behind. TMPDIR puts these files into
    // this folder, which is removed after the test.
    const env = { ...process.env, TMPDIR: folder }
    const child = spawn(process.execPath, [...program, ...what, ...where], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true })
    })
    const ended = new Promise(resolve => child.once('close', resolve))
    return { child, printed: printedBy(child), ended, json, html }
  }

  const slow = { timeout: 60_000, interval: 20 }

  test('once, it shows and writes what was measured', { timeout: 90_000 }, async () => {
    const { child, printed, ended, json, html } = await long()
    await expect.poll(() => printed.errors, slow).toContain('uncontended, round 2 of 2000: ')
    child.kill('SIGTERM')
    expect(await ended).toBe(128 + 15)

    const said = printed.errors.split('\n')
    expect(said[0]).toMatch(/^This takes about \d+ (min|h \d+ min)\.$/)
    expect(said[1]).toBe('Testing each lock briefly before the first round')
    expect(said[2]).toMatch(/^uncontended, round 1 of 2000: 0 % done, about \d+ (min|h \d+ min) left$/)
    expect(said.at(-2)).toMatch(/^baton: the run was interrupted by SIGTERM$/)
    const note = /The run was interrupted by SIGTERM after (\d+) of 2000 measurements\./
    expect(printed.output).toMatch(/^Redis: .*, as it is\n/)
    expect(printed.output).toMatch(/^ *floor-set .*\n *\d of 2000 rounds/m)
    const [, count] = note.exec(printed.output)!
    const results: Results = JSON.parse(await readFile(json, 'utf8'))
    expect(results.notes[0]).toMatch(note)
    expect(results.trials.map(({ outcome }) => outcome)).toEqual(Array(Number(count)).fill('measured'))
    expect(await readFile(html, 'utf8')).toMatch(note)
    expect(printed.output).toContain(`A page with plots: file://${html}\n`)
    expect(printed.output).toMatch(/\/docs\/benchmarks\.md\n$/)
  })
})
