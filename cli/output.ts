/**
 * Whether a pipe blocks is a property of the pipe, which all its users share. Node makes the pipes of stdout and stderr
 * non-blocking as soon as a program (or a package that it uses) looks at `process.stdout` or `process.stderr`. Other
 * programs of the same script, which write to the same pipe, then fail when it is full. So these two streams are
 * replaced. The replacements write in the background: a full pipe that nobody reads must not keep locks from being
 * renewed. (For a terminal, Node opens a file of its own.)
 */
import { createWriteStream } from 'node:fs'
import { isatty } from 'node:tty'

export function keepPipesBlocking(): void {
  for (const [fd, name] of [
    [1, 'stdout'],
    [2, 'stderr'],
  ] as const)
    if (!isatty(fd)) Object.defineProperty(process, name, { value: createWriteStream('', { fd, autoClose: false }) })
}
