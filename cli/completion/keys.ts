/** Finds the names of live locks as candidates for completion, quickly or not at all. */
import { connected, oneLook } from '../connection.ts'
import { namesOf } from '../description.ts'
import { printable } from '../printable.ts'
import type { Candidate, KeysWanted } from './next.ts'

/** How long a user who presses TAB may have to wait, in ms. */
const PATIENCE = 2_000
/** The largest number of candidates. A longer list would not help the user to choose. */
const MOST = 200

/** Returns the locks that were found in time, or none if Redis cannot be reached. */
export async function keysFor({ beginning, urls, prefix = 'lock' }: KeysWanted): Promise<readonly Candidate[]> {
  /** The candidates by key. A key has one candidate, even if locks of several kinds have this key. */
  const found = new Map<string, Candidate>()
  const looking = connected({ ...(urls && { url: urls }), prefix }, oneLook, async ({ locks }) => {
    for await (const state of locks.list(`${literal(beginning)}*`)) {
      const { key, locked } = state
      // A name that the user cannot type is no help, and a name that begins with - would be taken for an option.
      if (printable(key) !== key || key.startsWith('-')) continue
      const description = locked ? `held by ${printable(namesOf(state))}` : 'free, but has a queue'
      if (locked || !found.has(key)) found.set(key, { value: key, description })
      if (found.size >= MOST) break
    }
  })
  const late = new Promise(resolve => setTimeout(resolve, PATIENCE))
  await Promise.race([looking.catch(() => {}), late])
  return [...found.values()].sort((a, b) => (a.value < b.value ? -1 : 1))
}

/** Returns a glob pattern that matches only this text. */
function literal(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&')
}
