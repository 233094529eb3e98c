/** Shows the opened lock, its holders and its queue. */
import { drawShare, element, made, say, show } from './dom.ts'
import type { HolderRow, OpenLock, QueueRow, Shared, View } from './messages.ts'
import { textOf } from './name.ts'
import { type RowOf, Rows } from './rows.ts'
import { drawTrend } from './trend.ts'

/** How many rows each click on a button below the holders or the queue adds. */
const STEP = 100

interface Wishes {
  close(): void
  /** Called when the user wants more rows of the holders or of the queue. */
  more(wanted: Partial<Pick<View, 'holders' | 'queue'>>): void
  /** Called to take the lock from this holder. Absent on a read-only page. */
  readonly release?: (lock: OpenLock, holder: HolderRow) => void
}

export class LockPanel {
  readonly #panel = element('lock')
  readonly #further = element<HTMLButtonElement>('further')
  readonly #others = element<HTMLButtonElement>('others')
  readonly #queue = new Rows<QueueRow>(element('waiting'), ({ id }) => id, queueRow, true)
  readonly #holders: Rows<HolderRow>
  /** The lock as it was drawn last. */
  shown: OpenLock | undefined

  constructor({ close, more, release }: Wishes) {
    const take = release && ((holder: HolderRow) => this.shown && release(this.shown, holder))
    this.#holders = new Rows(
      element('holding'),
      ({ id }) => id,
      () => holderRow(take),
    )
    element('close').addEventListener('click', close)
    this.#further.addEventListener('click', () => more({ queue: (this.shown?.queue.length ?? 0) + STEP }))
    this.#others.addEventListener('click', () => more({ holders: (this.shown?.shared?.holders.length ?? 0) + STEP }))
    document.addEventListener('keydown', ({ key, target }) => {
      // In a dialog and in a text field, Escape has another meaning.
      const taken = document.querySelector('dialog[open]') || target instanceof HTMLInputElement
      if (key === 'Escape' && !this.#panel.hidden && !taken) close()
    })
  }

  /** Shows this lock from now on. If `lock` is null, hides the panel. */
  open(lock: View['open']): void {
    if (!lock || !this.shown || textOf(this.shown) !== textOf(lock)) {
      this.#fill(nothing)
      this.shown = undefined
    }
    element('main').classList.toggle('open', lock !== null)
    show(this.#panel, lock !== null)
  }

  draw(lock: OpenLock): void {
    this.shown = lock
    this.#fill(lock)
  }

  #fill(lock: OpenLock): void {
    const { name = lock.key, holder, heldFor, left, share, owner, holds, token, shared, trend, queue, more } = lock
    say(element('name'), name)
    this.#share(shared)
    say(element('holder'), token === null ? 'nobody' : holder)
    say(element('for'), heldFor || '–')
    say(element('left'), left || '–')
    drawShare(element('bar'), share)
    say(element('owner'), owner)
    say(element('holds'), String(holds))
    say(element('token'), token === null ? '–' : String(token))
    drawTrend(element('trend-one'), trend)
    this.#queue.show(queue)
    show(element('queue'), queue.length > 0)
    show(element('nobody'), queue.length === 0)
    show(this.#further, more > 0)
    say(this.#further, `Show ${Math.min(STEP, more)} of ${more} more waiters`)
  }

  /** If the lock may have several holders, shows a table of them in place of the facts about a single holder. */
  #share(shared: Shared | undefined): void {
    const { said = '', title = '', holders = [], more = 0 } = shared ?? {}
    say(element('said'), said)
    show(element('said'), shared !== undefined)
    show(element('facts'), shared === undefined)
    show(element('holders'), holders.length > 0)
    this.#panel.classList.toggle('shared', shared !== undefined)
    for (const head of this.#panel.querySelectorAll('.part-title')) say(head, title)
    this.#holders.show(holders)
    show(this.#others, more > 0)
    say(this.#others, `Show ${Math.min(STEP, more)} of ${more} more holders`)
  }

  focus(): void {
    element('name').focus({ preventScroll: true })
    if (this.#panel.getBoundingClientRect().top < 0) this.#panel.scrollIntoView()
  }
}

/** Shown until the first data of a lock arrive, so that the previous lock's values do not remain. */
const nothing: OpenLock = {
  ...{ key: '', name: '…', holder: '', heldFor: '', left: '', share: null, waiters: '', longestWait: '' },
  ...{ owner: '', holds: 0, token: null, id: null, queue: [], more: 0 },
  trend: { longest: '', median: '', top: '', area: '', line: '', middle: '' },
}

function holderRow(take: ((holder: HolderRow) => void) | undefined): RowOf<HolderRow> {
  const [holder, part, heldFor, left] = [made('bdi', { dir: 'ltr' }), figure('part'), figure(), figure()]
  const name = made('td', { role: 'cell' }, holder)
  const button = made('button', { type: 'button' })
  say(button, 'Take…')
  let shown: HolderRow | undefined
  button.addEventListener('click', () => shown && take?.(shown))
  const taking = take ? [made('td', { role: 'cell', class: 'take' }, button)] : []
  return {
    element: made('tr', { role: 'row' }, name, part, heldFor, left, ...taking),
    update(row) {
      shown = row
      say(holder, row.holder)
      name.title = row.holder
      button.title = `Take the lock from ${row.holder}`
      say(part, row.part)
      say(heldFor, row.heldFor)
      say(left, row.left)
    },
  }
}

function queueRow(): RowOf<QueueRow> {
  const [position, part, waited, left] = [figure(), figure('part'), figure(), figure()]
  const waiter = made('bdi', { dir: 'ltr' })
  const name = made('td', { role: 'cell' }, waiter)
  return {
    element: made('tr', { role: 'row' }, position, name, part, waited, left),
    update(row) {
      say(position, String(row.position))
      say(waiter, row.waiter)
      name.title = row.waiter
      say(part, row.part ?? '')
      say(waited, row.waited)
      say(left, row.left)
    },
  }
}

function figure(name = ''): HTMLElement {
  return made('td', { role: 'cell', class: `${name} figure`.trim() })
}
