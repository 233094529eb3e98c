/** Takes a lock from a holder: asks the user first, then sends the request with the id of the holder that was shown. */
import { element, say } from './dom.ts'
import type { HolderRow, OpenLock, ReleaseAnswer, ReleaseRequest } from './messages.ts'
import { lockName, textOf } from './name.ts'

/** The fields of a holder that appear in the question to the user. */
type Shown = Pick<HolderRow, 'id' | 'holder' | 'heldFor'>

export interface Release {
  draw(): void
  /** Asks whether to take the lock from this holder. */
  ask(lock: OpenLock, holder: Shown): void
}

/** Returns undefined on a read-only page. Such a page has no button, and its server refuses to release. */
export function offerRelease(shown: () => OpenLock | undefined): Release | undefined {
  const button = document.getElementById('release') as HTMLButtonElement | null
  if (!button) return undefined
  const dialog = element<HTMLDialogElement>('confirm')
  let asking: ReleaseRequest | undefined
  /** The lock that the user has asked to release. Undefined while no outcome of a release is displayed. */
  let about: string | undefined

  const ask = ({ key, kind, name = key, queue, more }: OpenLock, { id, holder, heldFor }: Shown) => {
    asking = { ...lockName(key, kind), id }
    say(element('taken'), name)
    say(element('from'), `Held by ${holder} for ${heldFor}. ${waiting(queue.length + more)}`)
    dialog.returnValue = 'no'
    dialog.showModal()
  }
  button.addEventListener('click', () => {
    const lock = shown()
    if (lock && lock.id !== null) ask(lock, { ...lock, id: lock.id })
  })
  dialog.addEventListener('close', async () => {
    if (dialog.returnValue !== 'yes' || !asking) return
    const lock = textOf(asking)
    about = lock
    say(element('outcome'), 'Asking Redis …')
    button.disabled = true
    const said = await send(asking)
    button.disabled = false
    if (about === lock) say(element('outcome'), said)
  })

  return {
    draw() {
      const lock = shown()
      // If the lock may have several holders, each holder has a button of its own.
      button.hidden = !lock || lock.id === null || lock.shared !== undefined
      if (lock && textOf(lock) === about) return
      about = undefined
      say(element('outcome'), '')
    },
    ask,
  }
}

function waiting(count: number): string {
  if (count === 0) return 'The queue is empty.'
  return count === 1 ? '1 waiter is in the queue.' : `${count} waiters are in the queue.`
}

async function send(request: ReleaseRequest): Promise<string> {
  try {
    const response = await fetch('release', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
    if (!response.ok) return `The release was refused: ${await response.text()}`
    const { said } = (await response.json()) as ReleaseAnswer
    return said
  } catch {
    return 'The program that serves this page does not answer. When it answers again, the state above shows whether the lock was released.'
  }
}
