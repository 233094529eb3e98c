/** The scripts as a client with default settings sends them to a single server. */
import { scripts as known, type scripts } from '../../src/kinds/mutex/scripts.generated.ts'
import { settingsOf } from '../../src/options.ts'
import { Namespace } from '../../src/redis/keys.ts'
import { textOf } from '../../src/redis/scripts.ts'

const { prefix, tokenMemory } = settingsOf({})
const { cluster, inboxes } = new Namespace(`${prefix}:`, false)

export const usualTexts = Object.fromEntries(
  Object.entries(known).map(([name, script]) => [name, textOf(script, { cluster, inboxes, tokenMemory })]),
) as { readonly [N in keyof typeof scripts]: string }
