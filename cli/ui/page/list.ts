/** Shows the table of locks: its rows, order and filter, and how many rows it has. */
import { drawShare, element, inside, made, say, show } from './dom.ts'
import type { LockName, Row, Table, View } from './messages.ts'
import { lockName, textOf } from './name.ts'
import { type RowOf, Rows } from './rows.ts'

type Wanted = Pick<View, 'sort' | 'reversed' | 'filter' | 'rows'>

/** The number of rows at first, and the number that each click on the button below the table adds. */
const STEP = 100
/** The filter is applied when the user has typed nothing for this many ms. */
const TYPED = 150

export class List {
  readonly #change: (wanted: Partial<Wanted>) => void
  readonly #rows: Rows<Row>
  readonly #filter = element<HTMLInputElement>('filter')
  readonly #more = element<HTMLButtonElement>('more')
  readonly #heads = [...document.querySelectorAll<HTMLElement>('#locks [data-order]')]
  #shown = STEP
  #open: string | undefined

  /** `change` is called when the user wants a different view. `open` is called when the user chooses a lock. */
  constructor(change: (wanted: Partial<Wanted>) => void, open: (lock: LockName) => void) {
    this.#change = change
    this.#rows = new Rows<Row>(element('rows'), textOf, row => this.#row(row, open))
    let typing: number | undefined
    this.#filter.addEventListener('input', () => {
      clearTimeout(typing)
      typing = setTimeout(() => this.#change({ filter: this.#filter.value, rows: STEP }), TYPED)
    })
    this.#more.addEventListener('click', () => this.#change({ rows: this.#shown + STEP }))
    for (const head of this.#heads) {
      inside(head, 'button').addEventListener('click', () => {
        const reversed = head.ariaSort !== 'none' && head.dataset['reversed'] !== 'true'
        this.#change({ sort: head.dataset['order'] ?? 'key', reversed })
      })
    }
  }

  /** Makes the controls of the table show this view: its filter, its order, and which lock is opened. */
  want(view: View): void {
    const { sort, reversed, filter, rows, open } = view
    this.#shown = rows
    this.#open = open ? textOf(open) : undefined
    if (document.activeElement !== this.#filter) this.#filter.value = filter
    for (const head of this.#heads) {
      const order = head.dataset['order'] ?? ''
      // By default, names and the time left are sorted in ascending order, all other columns in descending order.
      const rising = order === 'key' || order === 'timeLeft'
      const here = order === sort
      head.dataset['reversed'] = String(here && reversed)
      head.ariaSort = !here ? 'none' : rising === reversed ? 'descending' : 'ascending'
    }
    for (const row of document.querySelectorAll<HTMLElement>('#rows tr')) mark(row, row.dataset['lock'] === this.#open)
  }

  draw({ locks, matching, rows }: Table): void {
    this.#rows.show(rows)
    const all = `${grouped(locks)} ${locks === 1 ? 'lock' : 'locks'}`
    const some = matching < locks ? `${grouped(matching)} of ${all}` : all
    say(element('count'), some)
    show(element('locks'), rows.length > 0)
    show(element('none'), rows.length === 0)
    say(element('none'), locks === 0 ? 'No lock is held, and nobody waits.' : 'No lock matches the filter.')
    show(this.#more, matching > rows.length)
    say(this.#more, `Show ${Math.min(STEP, matching - rows.length)} of ${grouped(matching - rows.length)} more locks`)
  }

  /** Moves the keyboard focus back to the row of the lock that was opened. */
  focus(lock: LockName): void {
    const text = textOf(lock)
    const row = [...document.querySelectorAll<HTMLElement>('#rows tr')].find(({ dataset }) => dataset['lock'] === text)
    if (row) inside(row, 'button').focus()
  }

  #row({ key, kind, kindName = '' }: Row, open: (lock: LockName) => void): RowOf<Row> {
    const name = made('button', { type: 'button' })
    const kindOf = made('span', { class: 'kind' })
    say(kindOf, kindName)
    const lock = lockName(key, kind)
    const cells = {
      holder: made('bdi', { dir: 'ltr' }),
      behind: made('span'),
      held: cell('held figure'),
      text: made('span'),
      bar: made('span', { class: 'bar', 'aria-hidden': 'true' }, made('span')),
      waiters: cell('waiters figure'),
      wait: cell('wait figure'),
    }
    const row = made(
      'tr',
      { role: 'row' },
      made(
        'th',
        { role: 'rowheader', scope: 'row', class: 'key' },
        kind ? made('div', { class: 'named' }, name, kindOf) : name,
      ),
      cell('holder', kind ? made('div', { class: 'several' }, cells.holder, cells.behind) : cells.holder),
      cells.held,
      cell('time figure', made('div', { class: 'left' }, cells.bar, cells.text)),
      cells.waiters,
      cells.wait,
    )
    row.dataset['lock'] = textOf(lock)
    row.addEventListener('click', () => open(lock))
    mark(row, textOf(lock) === this.#open)
    return {
      element: row,
      update({ name: shown = key, holder, behind = '', heldFor, left, share, waiters, longestWait }) {
        say(name, shown)
        name.title = shown
        say(cells.holder, holder)
        say(cells.behind, behind)
        say(cells.held, heldFor)
        say(cells.text, left)
        drawShare(cells.bar, share)
        say(cells.waiters, waiters)
        say(cells.wait, longestWait)
      },
    }
  }
}

function cell(name: string, ...children: readonly Node[]): HTMLElement {
  return made('td', { role: 'cell', class: name }, ...children)
}

function grouped(number: number): string {
  return number.toLocaleString('en')
}

function mark(row: HTMLElement, open: boolean): void {
  if (open) row.setAttribute('aria-current', 'true')
  else row.removeAttribute('aria-current')
}
