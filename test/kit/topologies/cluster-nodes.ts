/** Parses the reply of CLUSTER NODES: what one node of a cluster reports about all nodes. */

export interface Peer {
  readonly id: string
  readonly master: boolean
  /** The id of its master, if this node is a replica. */
  readonly masterId: string | undefined
  /**
   * Whether, according to the node that sent the reply, this node has failed, may have failed, has no known address, or
   * has not completed its handshake.
   */
  readonly failed: boolean
  /** Whether the node that sent the reply has a connection to this node. */
  readonly linked: boolean
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
    // A text in brackets is a slot that is being moved. Leave it out.
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
