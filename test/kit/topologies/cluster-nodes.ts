/** A cluster node's view of all nodes: the reply of CLUSTER NODES. */

export interface Peer {
  readonly id: string
  readonly master: boolean
  /** The id of this node's master, if the node is a replica. */
  readonly masterId: string | undefined
  /** Whether the reporting node considers this node unknown, suspected or dead. */
  readonly failed: boolean
  /** Whether the reporting node has a connection to this node. */
  readonly linked: boolean
  /** Number of slots that this node serves. */
  readonly size: number
  serves(slot: number): boolean
}

type Range = readonly [first: number, last: number]

export function peersOf(reply: unknown): Peer[] {
  const lines = String(reply).trim().split('\n')
  return lines.map(line => {
    const [id, , flags, masterId, , , , link, ...slots] = line.split(' ') as string[] & {
      readonly 0: string
      readonly 2: string
    }
    // Besides the ranges, the list contains each slot that is being moved, in brackets. Leave out the slots in
    // brackets.
    const ranges = slots.filter(text => !text.startsWith('[')).map(rangeOf)
    return {
      id,
      master: /\bmaster\b/.test(flags),
      masterId: masterId === '-' ? undefined : masterId,
      linked: link === 'connected',
      failed: /fail|handshake|noaddr/.test(flags),
      size: ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0),
      serves: slot => ranges.some(([first, last]) => first <= slot && slot <= last),
    }
  })
}

function rangeOf(text: string): Range {
  const [first, last = first] = text.split('-').map(Number) as [number, number?]
  return [first, last]
}
