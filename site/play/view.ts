/** Shows a world, and has the buttons that change it. Nothing here decides what a lock does. */
import { made, say } from '../../cli/ui/page/dom.ts'
import { TimeLine } from './line.ts'
import type { Call, Member } from './member.ts'
import { type Act, LENGTHS, modes, type Name, names, type Scene, speeds } from './scene.ts'
import { type Story, stories, storyOf } from './stories.ts'
import type { World } from './world.ts'

type Bare<A> = A extends Act ? Omit<A, 'at'> : never
export type Wish = Bare<Act>

export interface ViewListener {
  act(wish: Wish): void
  speed(speed: number): void
  again(): void
  copy(): void
}

const modeTexts = { fair: 'asks again and again, fair', unfair: 'asks again and again, unfair', idle: 'does not ask' }
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

function folded(title: string, ...children: readonly Node[]): HTMLElement {
  return made('details', {}, made('summary', {}, text(title)), ...children)
}

function legend(): HTMLElement {
  const kinds = { holds: 'holds', waits: 'waits', left: 'what is left of the lease', pass: 'the lock goes on' }
  const states = { frozen: 'frozen', cut: 'no connection', dead: 'dead' }
  const marks = Object.entries({ ...kinds, ...states }).map(([kind, said]) =>
    made('span', {}, made('i', { class: kind }), text(said)),
  )
  return made('figcaption', {}, ...marks)
}

/** Gives the list these lines. Lines that stay keep their elements. */
function fill(list: HTMLElement, lines: readonly string[]): void {
  while (list.children.length > lines.length) list.lastElementChild!.remove()
  for (const [i, line] of lines.entries()) say(list.children[i] ?? list.appendChild(made('li')), line)
}

/** What a call does, as far as the process, or Redis, can know it. */
function told({ number, fair, since, lease }: Call, { name, life }: Member, { now, holding }: World): string {
  const call = `${name}#${number}`
  if (!lease) return `${call} waits, ${fair ? 'fair' : 'unfair'}, for ${seconds(now - since)}`
  const left = holding?.who === name ? holding.left : undefined
  if (life === 'frozen') {
    return left === undefined
      ? `${call}: its lease has ended, which it cannot know before it goes on`
      : `${call} holds, and stands still: its lease runs for ${seconds(left)} more`
  }
  if (lease.held) return `${call} holds, and works, for ${seconds(now - since)}`
  if (left === undefined) return `${call} has lost the lock`
  return life === 'cut'
    ? `${call} is done, but cannot say so: its lease runs for ${seconds(left)} more`
    : `${call} releases the lock`
}

/** The card of a process. */
class Card {
  readonly element: HTMLElement
  readonly modes: HTMLLabelElement
  readonly #state = made('span', { class: 'state' })
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
      toggle('Disconnect', 'Reconnect', ({ cut }) => cut, 'mend', 'cut'),
    ]
    const id = `process-${name}`
    this.modes = labelled(
      `${name} `,
      this.#mode,
      mode => act({ what: mode, who: name } as Wish),
      button('Ask once more', () => act({ what: 'ask', who: name })),
    )
    this.element = made(
      'section',
      { class: 'process', 'aria-labelledby': id },
      made('div', { class: 'title' }, heading(`Process ${name}`, id), this.#state),
      this.#calls,
      made(
        'div',
        { class: 'buttons', role: 'group', 'aria-labelledby': id },
        ...this.#switches.map(([pressed]) => pressed),
      ),
    )
  }

  show(member: Member, world: World): void {
    this.#member = member
    const { process, mode, name, life, calls } = member
    const { holding } = world
    this.element.dataset['state'] = life
    say(this.#state, lives[life])
    const lines = [...calls.values()].map(call => told(call, member, world))
    const own = holding?.who === name ? `${lives[life]}: its lease runs for ${seconds(holding.left)} more` : 'no call'
    fill(this.#calls, lines.length > 0 ? lines : [own])
    this.element.toggleAttribute('data-holds', holding?.who === name)
    if (document.activeElement !== this.#mode) this.#mode.value = mode
    for (const [pressed, said] of this.#switches) say(pressed, said(member))
    for (const [pressed] of this.#switches.slice(1)) pressed.disabled = process.dead
  }
}

const lives = { runs: 'runs', frozen: 'is frozen', cut: 'has no connection', dead: 'is dead' }

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
  readonly #line = new TimeLine()
  readonly #stories: ReadonlyMap<Story, HTMLElement>
  readonly #watch = made('p', { class: 'watch' })
  readonly #seen = made('p', { class: 'seen', role: 'status' })
  #story: Story | undefined
  readonly #grants = made('ol', { class: 'grants', 'aria-label': 'the latest grants, the newest first' })
  readonly #keys = made('div', { class: 'keys' })
  readonly #notes = made('ol', { class: 'notes', tabindex: '0', 'aria-label': 'what has happened, the newest first' })
  readonly #trace = made('ol', {
    class: 'trace',
    tabindex: '0',
    'aria-label': 'scripts and messages, the newest first',
  })
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
        what === 'work' ? 'A holder works for ' : 'A lease lasts ',
        input,
        ms => act({ what, ms: Number(ms) }),
        said,
      )
    })
    this.#stories = new Map(stories.map(story => [story, made('a', { href: story.link }, text(story.title))] as const))
    root.replaceChildren(
      this.#notice,
      made(
        'ul',
        { class: 'stories', 'aria-label': 'Scenes' },
        ...[...this.#stories.values()].map(link => made('li', {}, link)),
      ),
      made('div', { class: 'story' }, this.#watch, this.#seen),
      made('section', { class: 'lock', 'aria-label': 'The lock' }, this.#status, this.#holder, this.#bar, this.#queue),
      made('figure', { class: 'line' }, this.#line.element, legend()),
      made('div', { class: 'processes' }, ...[...this.#cards.values()].map(({ element }) => element)),
      made(
        'div',
        { class: 'controls', role: 'group', 'aria-label': 'Time' },
        labelled('Speed ', this.#speed, place => speed(speeds[Number(place)]!), this.#speedText),
        made('span', {}, text('Time '), this.#clock),
        button('Begin again', again),
        button('Copy the link', copy),
        this.#copied,
      ),
      folded(
        'More to try',
        made(
          'div',
          { class: 'buttons' },
          button('Take the lock by force', () => act({ what: 'force' })),
          button('Freeze the holder until its lease has ended', () => act({ what: 'expire' })),
        ),
        made('div', { class: 'controls' }, ...sliders),
        made('div', { class: 'controls' }, ...[...this.#cards.values()].map(card => card.modes)),
      ),
      made('div', { class: 'pair' }, this.#titled('What happened', this.#notes), this.#titled('Granted', this.#grants)),
      folded(
        'The protocol: what Redis has, scripts and messages',
        made(
          'div',
          { class: 'pair' },
          this.#titled('In Redis', this.#keys),
          this.#titled('On the network', this.#trace),
        ),
      ),
    )
  }

  /** `notice`: what is wrong with the link, if anything. */
  scene(scene: Scene, notice = ''): void {
    const { speed } = scene
    this.#story = storyOf(scene)
    say(this.#watch, this.#story?.watch ?? 'A scene of your own. The address of this page carries it.')
    for (const [story, link] of this.#stories) {
      if (story === this.#story) link.setAttribute('aria-current', 'true')
      else link.removeAttribute('aria-current')
    }
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
    const { now, members, lock, terms, holding } = world
    for (const [name, card] of this.#cards) card.show(members.get(name)!, world)
    this.#line.draw(world)
    say(this.#seen, this.#story?.seen(world) ?? '')
    say(this.#clock, `${seconds(now)}${still ? ', and stands still' : ''}`)
    for (const what of ['work', 'lease'] as const) {
      const [input, said] = this.#lengths[what]
      if (document.activeElement !== input) input.value = String(terms[what])
      say(said, seconds(terms[what]))
      input.setAttribute('aria-valuetext', seconds(terms[what]))
    }
    const waiters = lock.queue.map(({ claim }) => short(claim.id))
    const who = holding && short(holding.id)
    say(this.#status, `${who ? `${who} holds the lock` : 'The lock is free'}. Queue: ${waiters.join(', ') || 'empty'}.`)
    say(this.#holder, holding ? `token ${holding.token}, ${seconds(holding.left)} of its lease left` : 'nobody has it')
    this.#bar.max = holding?.lease ?? 1
    this.#bar.value = holding?.left ?? 0
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
    fill(
      this.#trace,
      world.trace.map(({ at, who, what }) => `${seconds(at, 3)}  ${who}: ${short(what)}`),
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
