/** The lock that is open: its holder, and its queue as it moves. */
import { drawShare, element, made, say, show } from './dom.ts'
import type { OpenLock, QueueRow } from './messages.ts'
import { type RowOf, Rows } from './rows.ts'
import { drawTrend } from './trend.ts'

/** How many rows of the queue are added at a time. */
const STEP = 100

export class LockPanel {
  readonly #panel = element('lock')
  readonly #further = element<HTMLButtonElement>('further')
  readonly #rows = new Rows<QueueRow>(element('waiting'), ({ id }) => id, queueRow, true)
  /** As it was drawn last. */
  shown: OpenLock | undefined

  /** `further`: more of the queue is wanted. */
  constructor(close: () => void, further: (queue: number) => void) {
    element('close').addEventListener('click', close)
    this.#further.addEventListener('click', () => further((this.shown?.queue.length ?? 0) + STEP))
    document.addEventListener('keydown', ({ key, target }) => {
      // In a question, and in a field, the key has a meaning of its own.
      const taken = document.querySelector('dialog[open]') || target instanceof HTMLInputElement
      if (key === 'Escape' && !this.#panel.hidden && !taken) close()
    })
  }

  /** What it shows is of another lock from now on, or of none. */
  open(key: string | null): void {
    if (key === null || this.shown?.key !== key) {
      this.#fill(nothing)
      this.shown = undefined
    }
    element('main').classList.toggle('open', key !== null)
    show(this.#panel, key !== null)
  }

  draw(lock: OpenLock): void {
    this.shown = lock
    this.#fill(lock)
  }

  #fill(lock: OpenLock): void {
    const { name = lock.key, holder, heldFor, left, share, owner, holds, token, trend, queue, more } = lock
    say(element('name'), name)
    say(element('holder'), token === null ? 'nobody' : holder)
    say(element('for'), heldFor || '–')
    say(element('left'), left || '–')
    drawShare(element('bar'), share)
    say(element('owner'), owner)
    say(element('holds'), String(holds))
    say(element('token'), token === null ? '–' : String(token))
    drawTrend(element('trend-one'), trend)
    this.#rows.show(queue)
    show(element('queue'), queue.length > 0)
    show(element('nobody'), queue.length === 0)
    show(this.#further, more > 0)
    say(this.#further, `Show ${Math.min(STEP, more)} more of ${more} behind them`)
  }

  focus(): void {
    element('name').focus({ preventScroll: true })
    if (this.#panel.getBoundingClientRect().top < 0) this.#panel.scrollIntoView()
  }
}

/** Until the first picture of a lock is there, nothing of another one is to be taken for it. */
const nothing: OpenLock = {
  ...{ key: '', name: '…', holder: '', heldFor: '', left: '', share: null, waiters: '', longestWait: '' },
  ...{ owner: '', holds: 0, token: null, queue: [], more: 0 },
  trend: { longest: '', median: '', top: '', area: '', line: '', middle: '' },
}

function queueRow(): RowOf<QueueRow> {
  const [position, waiter, waited, left] = [figure(), made('bdi', { dir: 'ltr' }), figure(), figure()]
  const name = made('td', { role: 'cell' }, waiter)
  return {
    element: made('tr', { role: 'row' }, position, name, waited, left),
    update(row) {
      say(position, String(row.position))
      say(waiter, row.waiter)
      name.title = row.waiter
      say(waited, row.waited)
      say(left, row.left)
    },
  }
}

function figure(): HTMLElement {
  return made('td', { role: 'cell', class: 'figure' })
}
