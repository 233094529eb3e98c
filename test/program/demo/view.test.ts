import { PassThrough } from 'node:stream'
import type { WriteStream } from 'node:tty'
import { stripVTControlCharacters as strip } from 'node:util'
import picocolors from 'picocolors'
import { describe, expect, test } from 'vitest'
import type { Stage } from '../../../cli/demo/coordinator.ts'
import type { Worker } from '../../../cli/demo/crew.ts'
import { openLedger } from '../../../cli/demo/ledger.ts'
import { now, sale } from '../../../cli/demo/sale.ts'
import { frame, openDisplay } from '../../../cli/demo/view.ts'

const colours = picocolors.createColors(true)

function stage(locked: boolean): Stage {
  const ledger = openLedger(sale.stock)
  const startedAt = now() - 1_000
  const crew = [0, 1, 2, 3].map(
    place => ({ place, label: `W${place + 1}`, pid: 10 + place, state: 'working', answered: 100 }) as Worker,
  )
  const at = startedAt + 10
  for (let n = 0; n < 100; n += 1) {
    const section = `s${n}`
    const grant = { hold: `h${n}`, token: n, leaseEnds: at + 1_500, found: null }
    const request = { request: n, requestedAt: at, at: at + n }
    ledger.entered(10 + (n % 4), { kind: 'entered', section, order: `S-${n}`, ...request, ...grant })
    if (n < 40) ledger.left({ kind: 'left', section, order: `S-${n}`, at: at + n, answer: 'sold', stock: 50 - n })
  }
  crew[3]!.state = 'frozen'
  return {
    startedAt,
    orders: 400,
    locked,
    ledger,
    crew,
    queue: Array.from({ length: 90 }, (_, n) => `W${(n % 4) + 1}`),
  }
}

const events = Array.from({ length: 30 }, (_, n) => ({
  at: n * 100,
  tone: 'bad' as const,
  text: `event ${n}: something that takes rather many words to say, more than a narrow terminal can show`,
}))

const sizes = [
  { columns: 79, rows: 23 },
  { columns: 110, rows: 39 },
  { columns: 66, rows: 15 },
]

describe('the picture', () => {
  test.each(sizes)('fits into $columns × $rows, with and without the lock', size => {
    for (const locked of [true, false]) {
      const lines = frame(stage(locked), events, colours, size).split('\n').map(strip)
      expect(lines.length).toBeLessThanOrEqual(size.rows)
      for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(size.columns)
    }
  })

  test('shows progress, stock, the queue and the latest events', () => {
    const picture = strip(frame(stage(true), events, colours, sizes[0]!))
    expect(picture).toContain('40 of 400')
    expect(picture).toContain('11 of 50')
    expect(picture).toContain('90 orders wait')
    expect(picture).toContain('frozen')
    expect(picture).toContain('event 29')
    expect(picture).not.toContain('event 2:')
  })
})

test('in a pipe every event is one plain line, whatever the environment requests about colours', () => {
  const out = new PassThrough()
  const display = openDisplay(out as unknown as WriteStream, { FORCE_COLOR: '1', CI: '1' })
  display.print(display.colours.bold('title'))
  display.watch(stage(true))
  display.say('bad', 'it happened')
  display.end()
  expect(String(out.read())).toMatch(/^title\n +1\.\d\d s {2}it happened\n$/)
})
