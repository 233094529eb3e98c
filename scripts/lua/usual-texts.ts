/** The scripts as a client with default settings sends them to a single server. */
import { mutexScripts, readWriteScripts, semaphoreScripts, type Texts } from '../../src/kinds/scripts.ts'
import { Namespace } from '../../src/redis/keys.ts'
import { textOf } from '../../src/redis/scripts.ts'
import { settingsOf } from '../../src/settings.ts'

const { prefix, tokenMemory } = settingsOf({})
const { cluster, inboxes } = new Namespace(`${prefix}:`, false)

function sent<S>(scripts: Texts<S>): Texts<S> {
  const texts = Object.entries<string>(scripts).map(([name, text]) => [
    name,
    textOf(text, { cluster, inboxes, tokenMemory }),
  ])
  return Object.fromEntries(texts) as Texts<S>
}

export const usualTexts = sent(mutexScripts)
export const semaphoreTexts = sent(semaphoreScripts)
export const readWriteTexts = sent(readWriteScripts)
