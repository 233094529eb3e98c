/**
 * The visible side of the sale. A terminal gets a picture that is redrawn twelve times a second, with the events of the
 * sale below it. Any other output gets one line of plain text per event.
 */
import type { WriteStream } from 'node:tty'
import { createLogUpdate } from 'log-update'
import picocolors from 'picocolors'
import type { Colors } from 'picocolors/types.js'
import type { Say, Stage } from './coordinator.ts'
import type { Worker } from './crew.ts'
import { now, sale, seconds } from './sale.ts'
import { handoffs } from './witness.ts'

export interface Display {
  readonly live: boolean
  readonly colours: Colors
  /** Prints a line that is not an event of the sale. */
  print(line: string): void
  /** Shows an event of the sale. */
  say: Say
  /** Starts to show the sale. */
  watch(stage: Stage): void
  /** Stops the display. The last picture stays on the screen. */
  end(): void
}

type Event = { at: number; tone: Parameters<Say>[0]; text: string }

const frameEvery = 80
const widest = 110

export function openDisplay(out: WriteStream, env: NodeJS.ProcessEnv): Display {
  const { TERM, NO_COLOR } = env
  const live = out.isTTY === true && TERM !== 'dumb'
  // The environment cannot turn colours on. So a pipe gets no escape codes, even if a variable such as FORCE_COLOR is
  // set.
  const colours = picocolors.createColors(live && !NO_COLOR)
  return live ? liveDisplay(out, colours) : plainDisplay(out, colours)
}

function plainDisplay(out: WriteStream, colours: Colors): Display {
  let startedAt = now()
  const print = (line: string) => void out.write(`${line}\n`)
  return {
    live: false,
    colours,
    print,
    say: (_tone, text) => print(`${elapsed(now() - startedAt)}  ${text}`),
    watch: stage => {
      startedAt = stage.startedAt
    },
    end: () => {},
  }
}

function liveDisplay(out: WriteStream, colours: Colors): Display {
  const update = createLogUpdate(out)
  const events: Event[] = []
  let stage: Stage | undefined
  let frames: NodeJS.Timeout | undefined
  const draw = () => {
    // Leaves out the last column and the last line, because some terminals wrap or scroll when these are used.
    const size = { columns: Math.min(out.columns - 1, widest), rows: out.rows - 1 }
    if (stage) update(frame(stage, events, colours, size))
  }
  return {
    live: true,
    colours,
    print: line => void out.write(`${line}\n`),
    say: (tone, text) => {
      if (tone !== 'progress') events.push({ at: stage ? now() - stage.startedAt : 0, tone, text })
    },
    watch: what => {
      stage = what
      frames = setInterval(draw, frameEvery)
    },
    end: () => {
      clearInterval(frames)
      draw()
      update.done()
    },
  }
}

export function frame(
  stage: Stage,
  events: readonly Event[],
  colours: Colors,
  size: { columns: number; rows: number },
): string {
  const { ledger, crew, queue, orders, locked } = stage
  const room = size.columns - 10 // the columns that remain beside the names of the rows
  const bar = (share: number, colour: (text: string) => string) => {
    const length = Math.max(10, room - 22)
    const full = Math.min(length, Math.max(0, Math.round(share * length)))
    return colour('█'.repeat(full)) + colours.dim('░'.repeat(length - full))
  }
  const row = (name: string, text: string) => `${colours.dim(name.padEnd(9))} ${text}`

  const lines = [
    '',
    row('orders', `${bar(ledger.answered / orders, colours.cyan)}  ${ledger.answered} of ${orders} answered`),
    row('stock', `${bar(ledger.stock / sale.stock, colours.green)}  ${ledger.stock} of ${sale.stock} left`),
    row('workers', crew.map(worker => describe(worker, colours)).join('   ')),
  ]
  if (locked) {
    lines.push(
      row('holder', holder(stage, colours)),
      row('queue', `${squaresOf(queue, crew, colours, room - 18)}  ${queue.length} orders wait`),
      row('hand-offs', pace(stage)),
    )
  } else {
    const inside = labelsInside(stage)
    lines.push(
      row('inside', `${squaresOf(inside, crew, colours, room - 38)}  ${inside.length} orders in the critical section`),
    )
  }
  lines.push('')
  const fitting = events.slice(-Math.max(1, size.rows - lines.length))
  for (const { at, tone, text } of fitting) {
    const colour = tone === 'bad' ? colours.red : tone === 'good' ? colours.green : (plain: string) => plain
    lines.push(`${colours.dim(elapsed(at))}  ${colour(text.slice(0, size.columns - 12))}`)
  }
  return lines.join('\n')
}

const hues = ['cyan', 'magenta', 'yellow', 'blue'] as const

function hue(place: number, colours: Colors): (text: string) => string {
  return colours[hues[place % hues.length]!]
}

function describe(worker: Worker, colours: Colors): string {
  const { label, place, state, answered } = worker
  const down = state === 'killed' || state === 'frozen'
  const doing = (down ? state : String(answered)).padEnd(6)
  return `${hue(place, colours)(`■ ${label}`)} ${down ? colours.red(doing) : doing}`
}

function holder({ ledger, crew, startedAt }: Stage, colours: Colors): string {
  const { latest } = ledger
  if (latest === null) return '-'
  const worker = crew.find(one => one.pid === latest.pid)
  const who = worker ? hue(worker.place, colours)(`■ ${worker.label}`) : colours.red('■ killed')
  const since = Math.max(0, now() - latest.begin)
  // A hold of up to 200 ms is ordinary, and its length would change too fast to read. So the length is shown only for
  // longer holds.
  const long = latest.how !== 'released' && since > 200 ? colours.red(`  for ${seconds(since)}`) : ''
  return startedAt > latest.begin ? '-' : `${who}  ${latest.order}${long}`
}

/** Returns the workers whose critical sections are open now. Without the lock, there may be several. */
function labelsInside({ ledger, crew }: Stage): string[] {
  const open = [...ledger.sections.values()].filter(section => section.how === 'open')
  return open.map(section => crew.find(worker => worker.pid === section.pid)?.label ?? '?')
}

/** Draws one square per request, in the colour of its worker, with the head of the queue on the left. */
function squaresOf(queue: readonly string[], crew: readonly Worker[], colours: Colors, room: number): string {
  const squares = queue.slice(0, room).map(label => {
    const place = crew.findIndex(worker => worker.label === label)
    return place < 0 ? '■' : hue(place, colours)('■')
  })
  return squares.join('') + (queue.length > room ? '…' : '')
}

function pace({ ledger }: Stage): string {
  const { count, p50, p99 } = handoffs([...ledger.sections.values()])
  if (count === 0) return '-'
  const lately = now() - 1_000
  let perSecond = 0
  for (const section of ledger.sections.values()) if (section.begin > lately) perSecond += 1
  return `${perSecond} grants/s, hand-off p50 ${p50!.toFixed(2)} ms, p99 ${p99!.toFixed(2)} ms`
}

function elapsed(ms: number): string {
  return seconds(ms).padStart(8)
}
