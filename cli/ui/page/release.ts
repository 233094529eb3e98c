/** Taking a lock from its holder: asked first, then sent with the token of the holder that was shown. */
import { element, say } from './dom.ts'
import type { OpenLock, ReleaseAnswer, ReleaseRequest } from './messages.ts'

/** Does nothing on a page that is read-only: there is no button then, and no answer to such a request. */
export function offerRelease(shown: () => OpenLock | undefined): { draw(): void } {
  const button = document.getElementById('release') as HTMLButtonElement | null
  if (!button) return { draw() {} }
  const dialog = element<HTMLDialogElement>('confirm')
  let asking: OpenLock | undefined
  /** What is said is about this lock. */
  let about: string | undefined

  button.addEventListener('click', () => {
    asking = shown()
    if (!asking || asking.token === null) return
    const { key, name = key, holder, heldFor, queue, more } = asking
    say(element('taken'), name)
    say(element('from'), `Held by ${holder} for ${heldFor}. ${waiting(queue.length + more)}`)
    dialog.returnValue = 'no'
    dialog.showModal()
  })
  dialog.addEventListener('close', async () => {
    if (dialog.returnValue !== 'yes' || !asking || asking.token === null) return
    const { key, token } = asking
    about = key
    say(element('outcome'), 'Asking Redis …')
    button.disabled = true
    const said = await send({ key, token })
    button.disabled = false
    if (about === key) say(element('outcome'), said)
  })

  return {
    draw() {
      const lock = shown()
      button.hidden = !lock || lock.token === null
      if (lock?.key === about) return
      about = undefined
      say(element('outcome'), '')
    },
  }
}

function waiting(count: number): string {
  if (count === 0) return 'Nobody is in its queue.'
  return count === 1 ? 'One waits in its queue.' : `${count} wait in its queue.`
}

async function send(request: ReleaseRequest): Promise<string> {
  try {
    const response = await fetch('release', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
    if (!response.ok) return `That was refused: ${await response.text()}`
    const { said } = (await response.json()) as ReleaseAnswer
    return said
  } catch {
    return 'The program that serves this page does not answer. Whether it was released is seen above.'
  }
}
