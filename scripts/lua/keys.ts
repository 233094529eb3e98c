/**
 * Refuses a file of lua/ that makes a key and does not ask for it. While a slot of a cluster moves, Redis sees to it only for those in
 * KEYS that they are where the script runs: lua/shared/all.lua says more.
 */
import type { Source } from './source.ts'

export function checkKeys({ file, header, lines }: Source): void {
  const code = lines.filter(line => typeof line === 'string')
  const asked = code.filter(line => line.includes("redis.call('EXISTS', ")).join(' ')
  // A name that only a message bears, its channel's, is no key.
  const makers = code.filter(line => /':\w+'/.test(line) && !line.includes("'PUBLISH', lock .. ':unlock', "))
  for (const line of makers) {
    const names = /^([\w, ]+) = /.exec(line)?.[1]?.split(', ') ?? ['']
    const given = names.every(name =>
      header.gives.some(each => each.name === name && ['ZSET', 'list'].includes(each.type)),
    )
    if (!given) throw new Error(`${file}: makes a key that it does not give: ${line}`)
    const unasked = names.find(name => !new RegExp(`, (${name}\\b|unpack\\(${name}\\))`).test(asked))
    if (unasked !== undefined) throw new Error(`${file}: does not ask whether the key "${unasked}" is on this node`)
  }
}
