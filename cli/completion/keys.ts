/** The names of live locks, for a line that is being written: quickly, or not at all. */
import { connected, oneLook } from '../connection.ts'
import { namesOf } from '../description.ts'
import { printable } from '../printable.ts'
import type { Candidate, KeysWanted } from './next.ts'

/** Who presses TAB waits for this long at most, in ms. */
const PATIENCE = 2_000
/** More of them do not help to choose. */
const MOST = 200

/** Those found in time; none where Redis is not to be had. */
export async function keysFor({ beginning, urls, prefix = 'lock' }: KeysWanted): Promise<readonly Candidate[]> {
  /** By key, of which there may be a lock of each kind. */
  const found = new Map<string, Candidate>()
  const looking = connected({ ...(urls && { url: urls }), prefix }, oneLook, async ({ locks }) => {
    for await (const state of locks.list(`${literal(beginning)}*`)) {
      const { key, locked } = state
      // Who cannot type a name is not helped by seeing it; and what begins with - would be an option.
      if (printable(key) !== key || key.startsWith('-')) continue
      const description = locked ? `held by ${printable(namesOf(state))}` : 'free, with a queue'
      if (locked || !found.has(key)) found.set(key, { value: key, description })
      if (found.size >= MOST) break
    }
  })
  const late = new Promise(resolve => setTimeout(resolve, PATIENCE))
  await Promise.race([looking.catch(() => {}), late])
  return [...found.values()].sort((a, b) => (a.value < b.value ? -1 : 1))
}

/** As a pattern that matches only itself. */
function literal(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&')
}
