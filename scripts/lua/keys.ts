/**
 * If a file of lua/ makes a key's name, the file or one of its includes must ask Redis by EXISTS whether this node
 * serves the key. If none of them does, this module refuses the file. While a cluster moves a slot, Redis itself checks
 * only the keys in KEYS: see lua/shared/all.lua.
 */
import type { Source } from './source.ts'

export function checkKeys(source: Source): void {
  const { file, header } = source
  const askers = [source, ...source.lines.flatMap(line => (typeof line === 'string' ? [] : line.source))]
  // The name of a channel in PUBLISH is not a key.
  const makers = codeIn(source).filter(line => /':\w+'/.test(line) && !line.includes("'PUBLISH', lock .. ':unlock', "))
  for (const line of makers) {
    const names = /^([\w, ]+) = /.exec(line)?.[1]?.split(', ') ?? ['']
    const given = names.every(name =>
      header.gives.some(each => each.name === name && ['ZSET', 'list'].includes(each.type)),
    )
    if (!given) throw new Error(`${file}: makes a key that it does not give: ${line}`)
    const unasked = names.find(name => !askers.some(asker => asks(asker, name)))
    if (unasked !== undefined) throw new Error(`${file}: does not ask whether the key "${unasked}" is on this node`)
  }
}

function codeIn({ lines }: Source): string[] {
  return lines.filter(line => typeof line === 'string')
}

/** Returns whether the file takes or makes a key of this name, and contains a call of EXISTS with this key. */
function asks(source: Source, name: string): boolean {
  const { takes, gives } = source.header
  if (![...takes, ...gives].some(each => each.name === name)) return false
  const asked = new RegExp(`redis\\.call\\('EXISTS', (.*, )?(${name}\\b|unpack\\(${name}\\))`)
  return codeIn(source).some(line => asked.test(line))
}
