/** A scene, and the link that carries it: what was done, and when. The same scene always plays in the same way. */

export const names = ['A', 'B', 'C'] as const
export type Name = (typeof names)[number]

/** How a process asks for the lock, again and again. */
export const modes = ['fair', 'unfair', 'idle'] as const
export type Mode = (typeof modes)[number]

const toProcess = [...modes, 'ask', 'kill', 'start', 'freeze', 'thaw', 'cut', 'mend'] as const
const toLock = ['force', 'expire'] as const
/** For how many ms the next holders work, and the length of their leases. */
const lengths = ['work', 'lease'] as const

export type Act =
  | { readonly at: number; readonly what: (typeof toProcess)[number]; readonly who: Name }
  | { readonly at: number; readonly what: (typeof toLock)[number] }
  | { readonly at: number; readonly what: (typeof lengths)[number]; readonly ms: number }

export interface Scene {
  /** By what real time is multiplied; 0: the time stands still. */
  readonly speed: number
  /** In the order of their times, which are in ms since the beginning. */
  readonly acts: readonly Act[]
}

export const speeds = [0, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]
/** The limits of what a link may ask for. */
const MOST_ACTS = 200
const LATEST = 600_000
export const LENGTHS = { work: [100, 20_000], lease: [500, 20_000] } as const

/** By this time, the scene has begun; a link opens this many ms before the first thing that was done after it. */
const BEGUN = 1_000
const BEFORE = 3_000

/** Returns at which time a link opens the scene: whoever made it has perhaps watched for long before doing anything. */
export function opensAt({ acts }: Scene): number {
  return Math.max(0, (acts.find(({ at }) => at > BEGUN)?.at ?? 0) - BEFORE)
}

export function linkOf({ speed, acts }: Scene): string {
  const texts = acts.map(act => {
    const about = 'who' in act ? `-${act.who}` : 'ms' in act ? `-${act.ms}` : ''
    return `${act.what}${about}@${act.at}`
  })
  return `#speed=${speed}&acts=${texts.join(',')}`
}

/** Reads a link. Returns undefined if it is not the link of a scene. */
export function sceneOf(link: string): Scene | undefined {
  const [, speed, list] = /^#speed=([\d.]+)&acts=([\w@,.-]*)$/.exec(link) ?? []
  if (list === undefined || !speeds.includes(Number(speed))) return undefined
  const acts = list === '' ? [] : list.split(',').map(actOf)
  const read = acts.filter(act => act !== undefined)
  const inOrder = read.every(({ at }, i) => at >= (read[i - 1]?.at ?? 0) && at <= LATEST)
  return read.length === acts.length && acts.length <= MOST_ACTS && inOrder
    ? { speed: Number(speed), acts: read }
    : undefined
}

function actOf(text: string): Act | undefined {
  const [, what, about, time] = /^([a-z]+)(?:-(\w+))?@(\d+)$/.exec(text) ?? []
  const at = Number(time)
  const of = (known: readonly string[], value: string | undefined) => value !== undefined && known.includes(value)
  if (of(toProcess, what) && of(names, about)) return { at, what, who: about } as Act
  if (of(toLock, what) && about === undefined) return { at, what } as Act
  if (!of(lengths, what) || !/^\d+$/.test(about ?? '')) return undefined
  const [least, most] = LENGTHS[what as 'work' | 'lease']
  const ms = Number(about)
  return ms >= least && ms <= most ? ({ at, what, ms } as Act) : undefined
}
