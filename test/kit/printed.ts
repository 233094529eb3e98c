import type { ChildProcessByStdio } from 'node:child_process'
import type { Readable } from 'node:stream'

/** Collects what a program prints to stdout and to stderr. */
export function printedBy({ stdout, stderr }: ChildProcessByStdio<null, Readable, Readable>) {
  const printed = { output: '', errors: '' }
  stdout.setEncoding('utf8').on('data', text => {
    printed.output += text
  })
  stderr.setEncoding('utf8').on('data', text => {
    printed.errors += text
  })
  return printed
}
