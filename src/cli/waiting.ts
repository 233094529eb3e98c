/** What a person sees who waits for a lock on a terminal: who has it, since when, and the own place. Nothing where it is piped. */
import { createLogUpdate } from 'log-update'
import type { ClientEvents } from '../index.ts'
import type { Connected } from './connection.ts'
import { holderOf } from './description.ts'
import { printable } from './table.ts'
import { showTime } from './times.ts'

/** Between two looks, in ms. */
const LOOK = 1_000

export interface Waiting {
  /** Takes the line away. */
  end(): void
}

export function showWaiting({ locks, serverTime }: Connected, key: string): Waiting {
  if (!process.stderr.isTTY) return { end() {} }
  const begun = performance.now()
  const line = createLogUpdate(process.stderr)
  let owner: string | undefined
  let over = false
  const look = async () => {
    const [state, now] = await Promise.all([locks.inspect(key), serverTime()])
    if (over) return
    const place = state.waiters.find(waiter => waiter.owner === owner)?.position
    const queue = place === undefined ? '' : `, ${place} of ${state.waiters.length} in the queue`
    const since = showTime(performance.now() - begun)
    line(printable(`waiting for ${key}: held by ${holderOf(state, now)}${queue}, waiting for ${since}`))
  }
  // It is only a picture: what fails is told by the wait itself.
  const draw = () => void look().catch(() => {})
  let timer: NodeJS.Timeout | undefined
  const began = (event: ClientEvents['waiting']) => {
    owner = event.owner
    draw()
    timer ??= setInterval(draw, LOOK)
  }
  locks.on('waiting', began)
  return {
    end() {
      over = true
      clearInterval(timer)
      locks.off('waiting', began)
      line.clear()
    },
  }
}
