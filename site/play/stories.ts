/** Scenes to begin with: what to watch in each, and what was seen. */
import { linkOf, type Scene, sceneOf } from './scene.ts'
import type { World } from './world.ts'

export interface Story {
  readonly title: string
  readonly link: string
  /** What to watch, said before it happens. */
  readonly watch: string
  /** What was seen; undefined as long as it has not happened. */
  seen(world: World): string | undefined
}

const usual = ['work-2000@0', 'lease-6000@0', 'fair-A@0', 'fair-B@100', 'fair-C@200']
const story = (...acts: readonly string[]) => `#speed=1&acts=${acts.join(',')}`
const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`

/** When something was first noted of a process, after another time. */
function noted({ notes }: World, who: string, what: RegExp, after = 0): number | undefined {
  return notes.findLast(note => note.at > after && note.who === who && what.test(note.what))?.at
}

/** The first grant after this time. */
function nextGrant({ grants }: World, after: number) {
  return grants.findLast(({ at }) => at > after)
}

/** The first story is shown without a link. */
export const stories: readonly Story[] = [
  {
    title: 'A fair queue',
    link: story(...usual),
    watch: 'A holds the lock for 2 s, while B and C wait in a queue in Redis. Watch who is next when A releases it.',
    seen: ({ grants }) =>
      grants.length < 6
        ? undefined
        : `Granted to ${grants
            .map(({ who }) => who)
            .reverse()
            .join(', ')}: first come, first served. Each release made the next one the holder.`,
  },
  {
    title: 'The holder dies',
    link: story(...usual, 'kill-A@1200'),
    watch: 'A is killed while it holds the lock, so nobody releases it. Watch how long B waits.',
    seen: world => {
      const died = noted(world, 'You', /^kill A$/)
      const next = died === undefined ? undefined : nextGrant(world, died)
      return (
        next &&
        `${next.who} got the lock ${seconds(next.at - died!)} after A died: when A’s lease had ended, and not before.`
      )
    },
  },
  {
    title: 'A long pause',
    link: story(...usual, 'expire@1200'),
    watch: 'A is frozen for longer than its lease, as by a suspended machine. Watch what A knows when it goes on.',
    seen: world => {
      const thawed = noted(world, 'You', /^thaw A$/)
      const lost = thawed === undefined ? undefined : noted(world, 'A', /^lost/, thawed - 1)
      const next = world.grants.findLast(({ who, at }) => who !== 'A' && at < (thawed ?? 0))
      return lost === undefined || !next
        ? undefined
        : `${next.who} had the lock from ${seconds(next.at)} on. A learned it only when it went on, at ${seconds(lost)}: for a late write by A, there are fencing tokens.`
    },
  },
  {
    title: 'Fair beside unfair',
    link: story('work-600@0', 'lease-6000@0', 'unfair-A@0', 'unfair-B@50', 'fair-C@100'),
    watch: 'A and B ask unfairly, C asks fairly. Watch whether C is ever overtaken while it is in the queue.',
    seen: ({ grants }) =>
      grants.length < 8
        ? undefined
        : `The last eight: ${grants
            .map(({ who }) => who)
            .reverse()
            .join(', ')}. An unfair call that has waited for 50 ms queues too, so nobody starves.`,
  },
  {
    title: 'The connection is cut',
    link: story(...usual, 'cut-A@1200', 'mend-A@12000'),
    watch: 'A loses its connection while it works. It still has the lock for as long as its lease runs. Watch B.',
    seen: world => {
      const cut = noted(world, 'You', /^cut A$/)
      const next = cut === undefined ? undefined : nextGrant(world, cut)
      return (
        next &&
        `A’s release could not reach Redis. ${next.who} got the lock ${seconds(next.at - cut!)} after the cut, when A’s lease had ended.`
      )
    },
  },
  {
    title: 'Taken by force',
    link: story(...usual, 'force@1200'),
    watch: 'Somebody takes the lock away from A. Watch who is told first: the next holder, or A.',
    seen: world => {
      const forced = noted(world, 'You', /^force/)
      const next = forced === undefined ? undefined : nextGrant(world, forced)
      const lost = forced === undefined ? undefined : noted(world, 'A', /^lost/, forced)
      return next && lost !== undefined
        ? `${next.who} had the lock ${Math.round(next.at - forced!)} ms after that, and A’s signal aborted after ${Math.round(lost - forced!)} ms: both by a message, in no fixed order.`
        : undefined
    },
  },
]

/** Returns the story that this scene is, or goes on from. */
export function storyOf(scene: Scene): Story | undefined {
  const acts = (link: string) => linkOf(sceneOf(link)!).replace(/.*acts=/, '')
  const own = linkOf(scene).replace(/.*acts=/, '')
  const begun = stories.filter(({ link }) => `${own},`.startsWith(`${acts(link)},`))
  return begun.toSorted((a, b) => b.link.length - a.link.length)[0]
}
