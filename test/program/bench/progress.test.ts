import { PassThrough } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Trial } from '../../../benchmarks/contract.ts'
import { openProgress, type Progress } from '../../../benchmarks/report/progress.ts'

/** Makes an output stream like that of a program, and a function that returns the text written to it. */
function stream(terminal = false): { to: WriteStream; text(): string } {
  const to = new PassThrough() as unknown as WriteStream
  if (terminal) Object.assign(to, { isTTY: true, columns: 120 })
  let text = ''
  to.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  return { to, text: () => text }
}

const minute = 60_000
const trial = (outcome: Trial['outcome']): Trial => ({ rival: '', scenario: '', round: 1, outcome, figures: {} })

/**
 * Reports to `progress` a run of two rivals, two scenarios and two rounds. In the first scenario one rival fails, and
 * is not tried again in that scenario.
 */
function tell(progress: Progress): void {
  progress.announce('Redis: one')
  progress.look('this')
  progress.look('that')
  progress.begin(2, 8 * minute)
  const turn = (
    rival: string,
    scenario: string,
    round: number,
    left: number,
    outcome: Trial['outcome'] = 'measured',
  ) => {
    progress.trial(rival, scenario, round, minute)
    progress.ended(trial(outcome), left * minute)
  }
  turn('this', '2x8', 1, 7)
  turn('that', '2x8', 1, 5, 'failed')
  turn('this', '2x8', 2, 4)
  turn('this', '2x100', 1, 3)
  turn('that', '2x100', 1, 2)
  turn('this', '2x100', 2, 1)
  turn('that', '2x100', 2, 0)
  progress.end()
}

describe('if no bar can be drawn', () => {
  test.each([
    ['stdout is not a terminal', false, {}],
    ['the terminal is dumb', true, { TERM: 'dumb' }],
  ])('%s: a line on stderr for each round of a scenario, and on stdout only the server', (_, terminal, env) => {
    const [out, errors] = [stream(terminal), stream()]
    tell(openProgress(out.to, errors.to, env))
    expect(out.text()).toBe('Redis: one\n')
    expect(errors.text().split('\n')).toEqual([
      'Testing each lock briefly before the first round',
      '2x8, round 1 of 2: 0 % done, about 8 min left',
      // One of the eight trials is cancelled, because its rival has failed. Two of the other seven trials are done,
      // which is 28 %. The remaining time is estimated from the time that has passed, which is almost zero in this
      // test.
      '2x8, round 2 of 2: 28 % done, about 0 s left, failed measurements: 1',
      '2x100, round 1 of 2: 42 % done, about 0 s left, failed measurements: 1',
      '2x100, round 2 of 2: 71 % done, about 0 s left, failed measurements: 1',
      '',
    ])
  })

  test.each([
    [59_000, '59 s'],
    [34.4 * minute, '34 min'],
    [135 * minute, '2 h 15 min'],
  ])('%d ms are %s', (ms, shown) => {
    const errors = stream()
    const progress = openProgress(stream().to, errors.to, {})
    progress.begin(3, ms)
    progress.trial('this', '2x8', 1, 1_000)
    expect(errors.text()).toBe(`2x8, round 1 of 3: 0 % done, about ${shown} left\n`)
  })
})

test('in a terminal, a bar on stdout with the time left, which shrinks if some are not tried again', () => {
  const [out, errors] = [stream(true), stream()]
  const progress = openProgress(out.to, errors.to, { TERM: 'xterm' })
  onTestFinished(() => progress.end())
  progress.begin(2, 4 * minute)
  progress.trial('this', '2x8', 1, minute)
  expect(out.text()).toMatch(/ 0 % {2}(4:00|3:59) left {2}2x8, round 1: this/)
  progress.ended(trial('failed'), minute)
  progress.trial('that', '2x8', 1, minute)
  expect(out.text()).toMatch(/ 50 % .* failed measurements: 1/)
  expect(errors.text()).toBe('')
})
