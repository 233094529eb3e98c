/** Reads information about processes from Linux's /proc. Other systems do not have it. */
import { readdirSync, readFileSync } from 'node:fs'

interface Process {
  /** One letter. Z and X mean that the process has ended, but that its parent has not collected its exit status yet. */
  readonly state: string
  readonly group: string
  /** The foreground process group of the process's terminal, which receives the signals of keys such as Ctrl-C. */
  readonly foreground: string
}

/**
 * Reads the entry of a process. `pid` is a number or `self`. Returns undefined if there is no such process or no /proc.
 */
export function processOf(pid: string): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The fields after the name (which may contain blanks and brackets): state, parent, group, session, terminal, the
    // terminal's foreground group.
    const [state, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ') as string[]
    return { state: state!, group: group!, foreground: foreground! }
  } catch {
    return undefined
  }
}

/**
 * Returns whether all members of a process group have ended. A group of ended processes may still exist, because in a
 * container possibly no process collects their exit statuses. Returns false if there is no /proc.
 */
export function onlyDead(group: number): boolean {
  try {
    const members = readdirSync('/proc')
      .map(processOf)
      .filter(one => one?.group === String(group))
    return members.length > 0 && members.every(one => one!.state === 'Z' || one!.state === 'X')
  } catch {
    return false
  }
}
