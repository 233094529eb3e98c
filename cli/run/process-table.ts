/** What Linux tells of processes. Other systems have no /proc. */
import { readdirSync, readFileSync } from 'node:fs'

interface Process {
  /** One letter; Z and X: it has ended, and nobody has taken notice yet. */
  readonly state: string
  /** Of processes. */
  readonly group: string
  /** The group that the keys of its terminal reach. */
  readonly foreground: string
}

/** `pid`: a number, or `self`. Undefined: there is none, or nothing tells of it. */
export function processOf(pid: string): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Behind the name, which may have blanks and brackets in it: state, parent, group, session, terminal, its foreground group.
    const [state, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ') as string[]
    return { state: state!, group: group!, foreground: foreground! }
  } catch {
    return undefined
  }
}

/**
 * Whether a group has members that have ended, and no others. In a container nobody may ever take notice of their end, and
 * the group stays. False also where nothing tells.
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
