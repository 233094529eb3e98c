/** Draws the line of time: a lane for each process, and an arrow for each time that the lock went to another one. */
import { names } from './scene.ts'
import type { World } from './world.ts'

const SVG = 'http://www.w3.org/2000/svg'
const LANE = 34
const TOP = 6
/** Where the names are, and the axis below the lanes, in px. */
const LEFT = 20
const AXIS = 18
const HEIGHT = TOP + names.length * LANE + AXIS
/** How many px a second has, and how much of the line is past. */
const SECOND = 62
const PAST = 0.75

export class TimeLine {
  readonly element = document.createElementNS(SVG, 'svg')

  constructor() {
    this.element.setAttribute('role', 'img')
    this.element.setAttribute('aria-label', 'the line of time')
    this.element.setAttribute('height', String(HEIGHT))
  }

  draw(world: World): void {
    const { now, stretches, handOffs, holding } = world
    const width = this.element.clientWidth || 600
    const present = LEFT + (width - LEFT) * PAST
    const x = (at: number) => present + ((at - now) / 1000) * SECOND
    const cut = (place: number) => Math.min(width, Math.max(LEFT, place)).toFixed(1)
    const middle = (who: string) => TOP + (names.indexOf(who as (typeof names)[number]) + 0.5) * LANE
    const box = (kind: string, who: string, from: number, to: number, height: number, below = 0) => {
      const [left, right] = [Number(cut(from)), Number(cut(to))]
      if (right <= left) return ''
      const y = middle(who) - height / 2 + below
      return `<rect class="${kind}" x="${left}" width="${right - left}" y="${y}" height="${height}" rx="3"/>`
    }
    const parts = [
      ...names.map(name => `<text class="name" x="2" y="${middle(name) + 5}">${name}</text>`),
      ...this.#seconds(now, present, x, width),
      ...stretches.flatMap(({ who, does, life, from, to }) => [
        does === 'nothing' ? '' : box(does, who, x(from), x(to), does === 'holds' ? 20 : 6),
        life === 'runs' ? '' : box(life, who, x(from), x(to), 5, 13.5),
      ]),
      // What is left of the lease: it may be renewed before.
      holding ? box('left', holding.who, present, x(now + holding.left), 20) : '',
      ...handOffs
        .filter(({ at, from, to }) => x(at) > LEFT && from !== to)
        .map(({ at, from, to }) => {
          const end = middle(to) + (middle(to) > middle(from) ? -12 : 12)
          return `<path class="pass" d="M${cut(x(at))} ${middle(from)}V${end}" marker-end="url(#pass)"/>`
        }),
      `<path class="now" d="M${present} 0V${HEIGHT - AXIS + 4}"/>`,
    ]
    this.element.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`)
    this.element.innerHTML = `${head}${parts.join('')}`
  }

  #seconds(now: number, present: number, x: (at: number) => number, width: number): string[] {
    const first = Math.max(0, Math.ceil((now - ((present - LEFT) / SECOND) * 1000) / 1000))
    const last = Math.floor((now + ((width - present) / SECOND) * 1000) / 1000)
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i).map(second => {
      const place = x(second * 1000).toFixed(1)
      return `<path class="second" d="M${place} ${TOP}V${HEIGHT - AXIS}"/><text class="tick" x="${place}" y="${HEIGHT - 4}">${second} s</text>`
    })
  }
}

const head =
  '<defs><marker id="pass" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
