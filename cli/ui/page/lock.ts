/** Shows the opened lock, its holders and its queue. */
import { drawShare, element, made, say, show } from './dom.ts'
import type { GroupRow, HolderRow, OpenLock, QueueRow, Shared, View } from './messages.ts'
import { textOf } from './name.ts'
import { type RowOf, Rows } from './rows.ts'
import { drawTrend } from './trend.ts'

/** How many rows each click on a button below the groups, the holders or the queue adds. */
const STEP = 100

interface Wishes {
  close(): void
  /** Called when the user wants other rows of the lock, or more of them. */
  more(wanted: Partial<Pick<View, 'within' | 'groups' | 'holders' | 'queue'>>): void
  /** Called to take the lock from this holder. Absent on a read-only page. */
  readonly release?: (lock: OpenLock, holder: HolderRow) => void
}

export class LockPanel {
  readonly #panel = element('lock')
  readonly #within = element<HTMLInputElement>('within')
  readonly #furtherGroups = element<HTMLButtonElement>('further-groups')
  readonly #further = element<HTMLButtonElement>('further')
  readonly #others = element<HTMLButtonElement>('others')
  readonly #queue = new Rows<QueueRow>(element('waiting'), ({ id }) => id, queueRow, true)
  readonly #groups = new Rows<GroupRow>(element('grouping'), ({ id }) => id, groupRow)
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
    this.#within.addEventListener('input', () => more({ within: this.#within.value }))
    this.#furtherGroups.addEventListener('click', () => more({ groups: (this.shown?.groups?.rows.length ?? 0) + STEP }))
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
      this.#within.value = ''
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
    const {
      name = lock.key,
      holder,
      heldFor,
      left,
      share,
      owner,
      holds,
      token,
      shared,
      groups,
      trend,
      queue,
      more,
    } = lock
    say(element('name'), name)
    this.#share(shared)
    this.#panel.classList.toggle('grouped', groups !== undefined)
    this.#panel.classList.toggle(
      'estimated',
      queue.some(({ expected }) => expected !== undefined),
    )
    this.#groups.show(groups?.rows ?? [])
    show(element('groups'), groups !== undefined)
    show(this.#furtherGroups, (groups?.more ?? 0) > 0)
    say(this.#furtherGroups, `Show ${Math.min(STEP, groups?.more ?? 0)} of ${groups?.more} more groups`)
    show(element('narrow'), shared !== undefined)
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

function groupRow(): RowOf<GroupRow> {
  const group = made('bdi', { dir: 'ltr' })
  const name = made('td', { role: 'cell' }, group)
  const figures = [figure(), figure(), figure(), figure()]
  return {
    element: made('tr', { role: 'row' }, name, ...figures),
    update({ cells: [first = '', ...others] }) {
      say(group, first)
      name.title = first
      for (const [i, each] of figures.entries()) say(each, others[i] ?? '')
    },
  }
}

function holderRow(take: ((holder: HolderRow) => void) | undefined): RowOf<HolderRow> {
  const [holder, part, heldFor, left] = [made('bdi', { dir: 'ltr' }), figure('part'), figure(), figure()]
  const group = second('bdi', 'group')
  const name = made('td', { role: 'cell' }, holder, group)
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
      say(group, row.group ?? '')
      name.title = titleOf(row.holder, row.group)
      button.title = `Take the lock from ${row.holder}`
      say(part, row.part)
      say(heldFor, row.heldFor)
      say(left, row.left)
    },
  }
}

function queueRow(): RowOf<QueueRow> {
  const [position, waited] = [figure(), figure()]
  const [waiter, part, left] = [made('bdi', { dir: 'ltr' }), made('span'), made('span')]
  const [group, why, expected] = [second('bdi', 'group'), second('span', 'group'), second('span', 'estimate')]
  const name = made('td', { role: 'cell' }, waiter, group)
  return {
    element: made('tr', { role: 'row' }, position, name, figure('part', part, why), waited, figure('', left, expected)),
    update(row) {
      say(position, String(row.position))
      say(waiter, row.waiter)
      say(group, row.group ?? '')
      name.title = titleOf(row.waiter, row.group)
      say(part, row.part ?? '')
      say(why, row.why ?? '')
      say(waited, row.waited)
      say(left, row.left)
      say(expected, row.expected ?? '')
    },
  }
}

function figure(name = '', ...children: readonly Node[]): HTMLElement {
  return made('td', { role: 'cell', class: `${name} figure`.trim() }, ...children)
}

/** Makes the second line of a cell. It is hidden unless the lock has groups, or estimates. */
function second(name: 'bdi' | 'span', of: 'group' | 'estimate'): HTMLElement {
  return made(name, { ...(name === 'bdi' && { dir: 'ltr' }), class: `second of-${of}` })
}

function titleOf(name: string, group: string | undefined): string {
  return group === undefined ? name : `${name}\ngroup: ${group}`
}
