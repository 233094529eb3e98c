/** Describes the machine, and measures how much of it other programs used. */
import { readdirSync, readFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'

export interface Machine {
  readonly cpu: string
  readonly cores: number
  readonly memory: number
  readonly system: string
  readonly node: string
}

export function machine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() || process.arch,
    cores: cpus().length,
    memory: totalmem(),
    system: `${type()} ${release()}`,
    node: process.version,
  }
}

/** Ticks of processor time since the boot. */
export interface Usage {
  /** All ticks of all cores, including idle ticks. */
  readonly total: number
  readonly used: number
  /** Ticks used by this process and its descendants, including descendants that have ended. */
  readonly ours: number
}

/**
 * Reads the processor time used since the boot. Returns undefined on systems other than Linux, which do not report it.
 */
export function usage(): Usage | undefined {
  try {
    const [, ...fields] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0]!.trim().split(/\s+/)
    // The fields are: user nice system idle iowait irq softirq steal. The guest times that follow are already part of
    // user and nice.
    const ticks = fields.slice(0, 8).map(Number)
    const total = ticks.reduce((sum, tick) => sum + tick, 0)
    return { total, used: total - ticks[3]! - ticks[4]!, ours: ticksOfFamily() }
  } catch {
    return undefined
  }
}

/** Returns the share of all cores that other programs used, 0..1. */
export function usedByOthers(before: Usage | undefined, after: Usage | undefined): number | undefined {
  if (!before || !after || after.total <= before.total) return undefined
  const others = after.used - before.used - (after.ours - before.ours)
  return Math.max(0, others / (after.total - before.total))
}

function ticksOfFamily(): number {
  const children = new Map<number, { pid: number; ticks: number }[]>()
  let sum = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const found = statOf(Number(name))
    if (!found) continue
    if (found.pid === process.pid) sum += found.ticks
    const siblings = children.get(found.parent)
    if (siblings) siblings.push(found)
    else children.set(found.parent, [found])
  }
  const family = [...(children.get(process.pid) ?? [])]
  for (const { pid, ticks } of family) {
    sum += ticks
    family.push(...(children.get(pid) ?? []))
  }
  return sum
}

/**
 * Reads the ticks of a process, including those of its ended children. Returns undefined if the process no longer
 * exists.
 */
function statOf(pid: number): { pid: number; parent: number; ticks: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name is in parentheses, and may itself contain blanks and parentheses. It is followed by the fields
    // state ppid … utime stime cutime cstime.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    return { pid, parent: Number(fields[1]), ticks }
  } catch {
    return undefined
  }
}
