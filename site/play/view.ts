/** Shows a world, and has the buttons that change it. Nothing here decides what a lock does. */
import { made, say } from '../../cli/ui/page/dom.ts'
import type { Member } from './member.ts'
import { type Act, LENGTHS, modes, type Name, names, type Scene, speeds, stories } from './scene.ts'
import type { World } from './world.ts'

type Bare<A> = A extends Act ? Omit<A, 'at'> : never
export type Wish = Bare<Act>

export interface ViewListener {
  act(wish: Wish): void
  speed(speed: number): void
  again(): void
  copy(): void
}

const modeTexts = { fair: 'in order (fair)', unfair: 'first come (unfair)', idle: 'not by itself' }
const seconds = (ms: number, digits = 1) => `${(Math.max(0, ms) / 1000).toFixed(digits)} s`
/** An id has 28 characters in Redis: those of the client, and a number of the call. */
const short = (text: string) =>
  text.replace(/\b(A|B|C|You)(\d*)_+(\d+)/g, '$1$2#$3').replace(/\b(A|B|C|You)(\d*)_{5,}/g, '$1$2')

const text = (content: string) => document.createTextNode(content)
const heading = (content: string, id: string) => made('h2', { id }, text(content))

function button(content: string, press: () => void): HTMLButtonElement {
  const pressed = made('button', { type: 'button' }, text(content))
  pressed.addEventListener('click', press)
  return pressed
}

/** A choice, or a slider, with a label. `change` gets the value as text. */
function labelled<E extends HTMLInputElement | HTMLSelectElement>(
  label: string,
  input: E,
  change: (value: string) => void,
  ...more: readonly Node[]
): HTMLLabelElement {
  input.setAttribute('aria-label', label.trim())
  input.addEventListener(input.tagName === 'SELECT' ? 'change' : 'input', () => change(input.value))
  return made('label', {}, text(label), input, ...more)
}

function slider(least: number, most: number, step: number): HTMLInputElement {
  return made('input', { type: 'range', min: String(least), max: String(most), step: String(step) })
}

/** Gives the list these lines. Lines that stay keep their elements. */
function fill(list: HTMLElement, lines: readonly string[]): void {
  while (list.children.length > lines.length) list.lastElementChild!.remove()
  for (const [i, line] of lines.entries()) say(list.children[i] ?? list.appendChild(made('li')), line)
}

/** The card of a process. */
class Card {
  readonly element: HTMLElement
  readonly #state = made('p', { class: 'state' })
  readonly #calls = made('ul')
  readonly #mode = made('select')
  readonly #switches: readonly (readonly [HTMLButtonElement, (member: Member) => string])[]
  #member: Member | undefined

  constructor(name: Name, act: (wish: Wish) => void) {
    for (const mode of modes) this.#mode.append(made('option', { value: mode }, text(modeTexts[mode])))
    const has = (what: (member: Member) => boolean) => this.#member !== undefined && what(this.#member)
    const toggle = (off: string, on: string, is: (member: Member) => boolean, back: Wish['what'], go: Wish['what']) => {
      const pressed = button(off, () => act({ what: has(is) ? back : go, who: name } as Wish))
      return [pressed, (member: Member) => (is(member) ? on : off)] as const
    }
    this.#switches = [
      toggle('Kill', 'Start again', ({ process }) => process.dead, 'start', 'kill'),
      toggle('Freeze', 'Thaw', ({ process }) => process.frozen, 'thaw', 'freeze'),
      toggle('Cut its line', 'Mend its line', ({ cut }) => cut, 'mend', 'cut'),
    ]
    const id = `process-${name}`
    this.element = made(
      'section',
      { class: 'process', 'aria-labelledby': id },
      heading(`Process ${name}`, id),
      this.#state,
      this.#calls,
      labelled('It asks ', this.#mode, mode => act({ what: mode, who: name } as Wish)),
      made(
        'div',
        { class: 'buttons', role: 'group', 'aria-labelledby': id },
        ...this.#switches.map(([pressed]) => pressed),
        button('Ask once more', () => act({ what: 'ask', who: name })),
      ),
    )
  }

  show(member: Member, now: number): void {
    this.#member = member
    const { process, cut, mode, name } = member
    const life = process.dead ? 'dead' : process.frozen ? 'frozen' : 'runs'
    this.element.dataset['state'] = process.dead || process.frozen ? life : cut ? 'cut' : life
    say(this.#state, cut && !process.dead ? `${life}, its line is cut` : life)
    const lines = [...member.calls.values()].map(({ number, fair, since, lease }) => {
      const what = lease ? (lease.held ? 'holds' : 'has lost the lock') : `waits, ${fair ? 'fair' : 'unfair'}`
      return `${name}#${number} ${what}, ${seconds(now - since)}`
    })
    fill(this.#calls, lines.length > 0 ? lines : ['no call'])
    this.element.toggleAttribute(
      'data-holds',
      !process.dead && [...member.calls.values()].some(({ lease }) => lease?.held),
    )
    if (document.activeElement !== this.#mode) this.#mode.value = mode
    for (const [pressed, said] of this.#switches) say(pressed, said(member))
    for (const [pressed] of this.#switches.slice(1)) pressed.disabled = process.dead
  }
}

export class View {
  readonly #cards: ReadonlyMap<Name, Card>
  readonly #notice = made('p', { role: 'alert', class: 'notice' })
  readonly #status = made('p', { role: 'status', class: 'status' })
  readonly #clock = made('output')
  readonly #speed = slider(0, speeds.length - 1, 1)
  readonly #speedText = made('output')
  readonly #lengths: Readonly<Record<'work' | 'lease', readonly [HTMLInputElement, HTMLElement]>>
  readonly #holder = made('p', { class: 'holder' })
  readonly #bar = made('meter', { min: '0', 'aria-label': 'what is left of the lease' })
  readonly #queue = made('ol', { class: 'queue', 'aria-label': 'the queue in Redis' })
  readonly #grants = made('ol', { class: 'grants', 'aria-label': 'the latest grants, the newest first' })
  readonly #keys = made('div', { class: 'keys' })
  readonly #notes = made('ol', { class: 'notes', tabindex: '0', 'aria-label': 'what has happened, the newest first' })
  readonly #copied = made('span', { role: 'status' })

  constructor(root: HTMLElement, { act, speed, again, copy }: ViewListener) {
    this.#cards = new Map(names.map(name => [name, new Card(name, act)]))
    const length = (what: 'work' | 'lease') => {
      const [least, most] = LENGTHS[what]
      return [slider(least, most, 100), made('output')] as const
    }
    this.#lengths = { work: length('work'), lease: length('lease') }
    const sliders = (['work', 'lease'] as const).map(what => {
      const [input, said] = this.#lengths[what]
      return labelled(
        what === 'work' ? 'A holder works for ' : 'Its lease has ',
        input,
        ms => act({ what, ms: Number(ms) }),
        said,
      )
    })
    root.replaceChildren(
      this.#notice,
      made(
        'ul',
        { class: 'stories', 'aria-label': 'Scenes' },
        ...stories.map(([title, link]) => made('li', {}, made('a', { href: link }, text(title)))),
      ),
      made(
        'div',
        { class: 'controls', role: 'group', 'aria-label': 'Time' },
        labelled('Speed ', this.#speed, place => speed(speeds[Number(place)]!), this.#speedText),
        ...sliders,
        made('span', {}, text('The time is '), this.#clock),
        button('Begin again', again),
        button('Copy the link', copy),
        this.#copied,
      ),
      made('div', { class: 'processes' }, ...[...this.#cards.values()].map(({ element }) => element)),
      made(
        'section',
        { class: 'lock', 'aria-labelledby': 'lock' },
        heading('The lock', 'lock'),
        this.#holder,
        this.#bar,
        made(
          'div',
          { class: 'buttons' },
          button('Take it by force', () => act({ what: 'force' })),
          button('Freeze the holder until its lease has ended', () => act({ what: 'expire' })),
        ),
        made('div', { class: 'pair' }, this.#titled('Queue', this.#queue), this.#titled('Granted', this.#grants)),
      ),
      made('section', { 'aria-labelledby': 'keys' }, heading('In Redis', 'keys'), this.#keys),
      made('section', { 'aria-labelledby': 'notes' }, heading('Scripts and messages', 'notes'), this.#notes),
      this.#status,
    )
  }

  /** `notice`: what is wrong with the link, if anything. */
  scene({ speed }: Scene, notice = ''): void {
    say(this.#notice, notice)
    say(this.#copied, '')
    this.#speed.value = String(speeds.indexOf(speed))
    const said = speed > 0 && speed < 1 ? `1/${Math.round(1 / speed)}` : `× ${speed}`
    say(this.#speedText, said)
    this.#speed.setAttribute('aria-valuetext', said)
  }

  copied(how: string): void {
    say(this.#copied, how)
  }

  /** `still`: no time has passed since this was last shown. */
  show(world: World, still: boolean): void {
    const { now, members, lock, terms } = world
    for (const [name, card] of this.#cards) card.show(members.get(name)!, now)
    say(this.#clock, `${seconds(now)}${still ? ', and stands still' : ''}`)
    for (const what of ['work', 'lease'] as const) {
      const [input, said] = this.#lengths[what]
      if (document.activeElement !== input) input.value = String(terms[what])
      say(said, seconds(terms[what]))
      input.setAttribute('aria-valuetext', seconds(terms[what]))
    }
    const { holder } = lock
    const left = holder ? Math.max(...lock.holds.values()) - world.serverNow : 0
    const waiters = lock.queue.map(({ claim }) => short(claim.id))
    const who = holder && left >= 0 ? short(holder.claim.id) : undefined
    say(this.#status, `${who ? `${who} holds the lock` : 'The lock is free'}. Queue: ${waiters.join(', ') || 'empty'}.`)
    say(this.#holder, who ? `${who}, token ${holder!.token}, ${seconds(left)} of its lease left` : 'free')
    this.#bar.max = holder?.claim.lease ?? 1
    this.#bar.value = who ? left : 0
    fill(this.#queue, waiters)
    fill(
      this.#grants,
      world.grants.map(({ who, token, via, waited }) => `${who}, token ${token}, ${via} after ${seconds(waited)}`),
    )
    this.#showKeys(world)
    fill(
      this.#notes,
      world.notes.map(({ at, who, what }) => `${seconds(at, 3)}  ${who}: ${short(what)}`),
    )
  }

  #titled(title: string, list: HTMLElement): HTMLElement {
    return made('div', {}, made('h3', {}, text(title)), list)
  }

  #showKeys({ keys }: World): void {
    while (this.#keys.children.length > keys.length) this.#keys.lastElementChild!.remove()
    for (const [i, { name, entries, expiresIn }] of keys.entries()) {
      const block = this.#keys.children[i] ?? this.#keys.appendChild(made('div', {}, made('h3'), made('ul')))
      say(block.children[0]!, `${name}, expires in ${seconds(expiresIn, 0)}`)
      fill(
        block.children[1] as HTMLElement,
        entries.map(([entry, value]) => short(`${entry} → ${value}`)),
      )
    }
  }
}
