/** The scripts as a client with default settings sends them to a single server. */
import type { ScriptSet } from '../../src/kind.ts'
import { scripts as mutex } from '../../src/kinds/mutex/scripts.generated.ts'
import { readWrite, semaphore } from '../../src/kinds/permits/scripts.generated.ts'
import { Namespace } from '../../src/redis/keys.ts'
import { textOf } from '../../src/redis/scripts.ts'
import { settingsOf } from '../../src/settings.ts'

const { prefix, tokenMemory } = settingsOf({})
const { cluster, inboxes } = new Namespace(`${prefix}:`, false)

function textsOf<S extends ScriptSet>(scripts: S): { readonly [N in keyof S]: string } {
  const texts = Object.entries(scripts).map(([name, script]) => [
    name,
    textOf(script, { cluster, inboxes, tokenMemory }),
  ])
  return Object.fromEntries(texts) as { [N in keyof S]: string }
}

export const usualTexts = textsOf(mutex)
export const semaphoreTexts = textsOf(semaphore)
export const readWriteTexts = textsOf(readWrite)
