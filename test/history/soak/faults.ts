/** The table of all faults: what each applies to, and with how many servers it makes sense. */
import { clockFaults } from './clock-faults.ts'
import { dataFaults } from './data-faults.ts'
import type { Fault, Faults } from './fault.ts'
import { keyFaults, releaseFaults } from './key-faults.ts'
import type { Line } from './line.ts'
import { lineFaults, messageFaults } from './line-faults.ts'
import { memberFaults } from './member-faults.ts'
import type { Post } from './post.ts'
import { processFaults } from './process-faults.ts'
import type { Server } from './server.ts'
import { serverFaults } from './server-faults.ts'

/** What faults apply to. */
interface Targets {
  readonly process: Post
  /** The lines of one process to one or several servers. */
  readonly line: Line
  readonly server: Server
  readonly clock: Server
  readonly key: string
}
type Row<T extends keyof Targets> = Fault<Targets[T]> & { readonly name: string; readonly target: T }
export type AnyFault = { [T in keyof Targets]: Row<T> }[keyof Targets]

const any = [
  ...rows('process', processFaults),
  ...rows('line', lineFaults),
  ...rows('clock', clockFaults),
  ...rows('key', releaseFaults),
]
const ofOne = [
  ...rows('line', messageFaults),
  ...rows('server', { ...serverFaults, ...dataFaults }),
  ...rows('key', keyFaults),
]
const ofSeveral = rows('server', memberFaults)

/** Returns the faults of a run with locks on so many servers. */
export function faultsOf(servers: number): readonly AnyFault[] {
  return [...any, ...(servers === 1 ? ofOne : ofSeveral)]
}

function rows<T extends keyof Targets>(target: T, faults: Faults<Targets[T]>): AnyFault[] {
  return Object.entries(faults).map(([name, fault]) => ({ ...fault, name, target }) as Row<T> as AnyFault)
}
