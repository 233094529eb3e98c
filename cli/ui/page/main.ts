/**
 * Connects the parts of the page. The user chooses a view, the server sends the data for it, and the table, the charts
 * and the panel of the opened lock show the data.
 */
import { element, say, show } from './dom.ts'
import { List } from './list.ts'
import { LockPanel } from './lock.ts'
import type { Frame, LockName, View } from './messages.ts'
import { lockName, textOf } from './name.ts'
import { offerRelease } from './release.ts'
import { type Condition, Stream } from './stream.ts'
import { drawTrend } from './trend.ts'

/** How many rows of the table, and of a queue, are shown at first. */
const FIRST = 100
/** How many of a lock's groups and holders are shown at first: few, because the lock's queue is below them. */
const FIRST_ABOVE = 20

/** What is wanted of a lock that has just been opened. */
const fresh = { within: '', groups: FIRST_ABOVE, holders: FIRST_ABOVE, queue: FIRST }

// The wanted view is in the address after the #, which is not sent to the server. It survives a reload and can be
// bookmarked.
let view = wantedBy(location.hash)

const list = new List(want, open)
const release = offerRelease(() => panel.shown)
const panel = new LockPanel({ close, more: want, ...(release && { release: release.ask }) })
const stream = new Stream(draw, tell)

addEventListener('hashchange', () => {
  view = wantedBy(location.hash)
  begin()
})
begin()

function begin(): void {
  list.want(view)
  panel.open(view.open)
  stream.look(view)
}

function want(change: Partial<View>): void {
  view = { ...view, ...change }
  history.replaceState(null, '', `#${addressOf(view)}`)
  begin()
}

/** On a narrow screen, the opened lock takes the place of the list. The browser's back button returns to the list. */
function open(lock: LockName): void {
  if (!view.open || textOf(lock) !== textOf(view.open)) {
    history.pushState(null, '')
    want({ open: lock, ...fresh })
  }
  panel.focus()
}

function close(): void {
  const { open: lock } = view
  want({ open: null })
  if (lock) list.focus(lock)
}

function draw({ totals, trend, table, lock }: Frame): void {
  if (totals) for (const [name, text] of Object.entries(totals)) say(element(name), text)
  if (trend) drawTrend(element('trend-all'), trend)
  if (table) list.draw(table)
  if (lock) panel.draw(lock)
  release?.draw()
}

function tell(condition: Condition): void {
  const { name, age } = condition
  const state = element('state')
  say(state, name === 'live' ? 'live' : 'not live')
  state.className = name
  show(element('trouble'), name !== 'live')
  say(element('reason'), reasonOf(condition))
  say(element('age'), age === null ? 'There is no data yet.' : `The data shown is ${showAge(age)} old.`)
}

function reasonOf(condition: Condition): string {
  switch (condition.name) {
    case 'live':
      return ''
    case 'late':
      return condition.reason === null ? 'Redis does not answer.' : `Redis cannot be read: ${condition.reason}`
    case 'lost':
      return 'The program that serves this page does not answer. Trying again.'
    case 'over':
      return 'This address is no longer served. If "baton ui" is running again, open the address that it printed.'
  }
}

function showAge(age: number): string {
  const seconds = Math.round(age / 1_000)
  return seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}

function addressOf({ sort, reversed, filter, open }: View): string {
  const query = new URLSearchParams()
  if (sort !== 'waiters') query.set('sort', sort)
  if (reversed) query.set('reversed', 'true')
  if (filter !== '') query.set('filter', filter)
  if (open) query.set('open', open.key)
  if (open?.kind) query.set('kind', open.kind)
  return query.toString()
}

function wantedBy(hash: string): View {
  const query = new URLSearchParams(hash.slice(1))
  const key = query.get('open')
  return {
    sort: query.get('sort') ?? 'waiters',
    reversed: query.get('reversed') === 'true',
    filter: query.get('filter') ?? '',
    rows: FIRST,
    ...fresh,
    open: key === null ? null : lockName(key, query.get('kind')),
  }
}
