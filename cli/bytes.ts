/**
 * Refuses texts that are not UTF-8. Node replaces their bytes by U+FFFD, so two keys would be one lock, and a command
 * would not get the names that were given.
 */
import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { exitCodes, Failure } from './failure.ts'
import { printable } from './printable.ts'

export function checkArguments(): void {
  const text = changed(process.argv, 'cmdline')
  if (text !== undefined) throw refusal(`an argument is not UTF-8: ${printable(text)}`)
}

export function checkEnvironment(): void {
  const texts = Object.entries(process.env).map(([name, value]) => `${name}=${value}`)
  const [name] = changed(texts, 'environ')?.split('=') ?? []
  if (name !== undefined) throw refusal(`the environment variable ${printable(name)} is not UTF-8`)
}

function refusal(what: string): Failure {
  return new Failure(`${what}; Node.js cannot pass it on unchanged, so nothing was done`, exitCodes.usage)
}

/**
 * Returns a text that Node has changed, if there is one. U+FFFD may have been given, so /proc, if there is one, decides:
 * `file` has the original bytes there.
 */
function changed(texts: readonly string[], file: 'cmdline' | 'environ'): string | undefined {
  const suspicious = texts.find(text => text.includes('\uFFFD'))
  if (suspicious === undefined) return undefined
  try {
    const originals = readFileSync(`/proc/self/${file}`, 'latin1').split('\0')
    return originals
      .map(text => Buffer.from(text, 'latin1'))
      .find(bytes => !isUtf8(bytes))
      ?.toString()
  } catch {
    return suspicious
  }
}
