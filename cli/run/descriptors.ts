/**
 * The descriptors that this program was given for its command, besides stdin, stdout and stderr: by `3>report`, by
 * systemd, by make. At its start, Node marks them as its own, so that child processes do not get them.
 */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'

let found: readonly number[] = []

/** Call this before anything opens a descriptor. Without /proc, none are found. */
export function findDescriptors(): void {
  const files = filesOf('self')
  const ofCaller = new Set(filesOf(String(process.ppid)).map(({ file }) => file))
  const extra = files.filter(({ fd }) => fd > 2)
  // Node has pipes to itself. Such a pipe is open for reading and for writing here, and not in the process that has
  // started this one.
  const toItself = (file: string) =>
    file.startsWith('pipe:') &&
    !ofCaller.has(file) &&
    extra.some(one => one.file === file && one.reads) &&
    extra.some(one => one.file === file && !one.reads)
  const ofNode = (file: string) => /^anon_inode:\[(eventfd|eventpoll|io_uring)\]$/.test(file) || toItself(file)
  found = extra.filter(({ file }) => !ofNode(file)).map(({ fd }) => fd)
}

/** Returns what a child process gets, by descriptor, in the form that `spawn` takes. */
export function stdioOfCommand(): ('inherit' | 'ignore')[] {
  const given = [0, 1, 2, ...found]
  return Array.from({ length: Math.max(...given) + 1 }, (_, fd) => (given.includes(fd) ? 'inherit' : 'ignore'))
}

interface Descriptor {
  readonly fd: number
  readonly file: string
  readonly reads: boolean
}

function filesOf(process: string): Descriptor[] {
  try {
    return readdirSync(`/proc/${process}/fd`).flatMap(name => describe(Number(name), `/proc/${process}/fd/${name}`))
  } catch {
    return []
  }
}

/** Returns nothing for a descriptor that has been closed, such as that of the folder `fd` itself. */
function describe(fd: number, link: string): Descriptor[] {
  try {
    return [{ fd, file: readlinkSync(link), reads: (lstatSync(link).mode & 0o400) !== 0 }]
  } catch {
    return []
  }
}
