/**
 * Records everything that is observed during the sale. The coordinator adds to the record, the view shows it, and
 * witness.ts judges it.
 */
import type { Entered, Left, Lost, Paused } from './messages.ts'
import type { Section } from './witness.ts'

export type Ledger = ReturnType<typeof openLedger>

export function openLedger(stock: number) {
  const sections = new Map<string, Section>()
  const leaseEnds = new Map<string, number>()
  let frozenSection: string | null = null

  const ledger = {
    sections: sections as ReadonlyMap<string, Section>,
    snapshots: [] as string[][],
    answered: 0,
    sold: 0,
    stock,
    /** The critical section that began most recently. */
    latest: null as Section | null,
    killedAt: null as number | null,
    frozen: null as { pid: number; from: number; to: number } | null,
    lateWrite: null as 'refused' | 'accepted' | null,

    entered(
      pid: number,
      { section: id, order, request, requestedAt, at, hold, token, found, leaseEnds: end }: Entered,
    ) {
      const section: Section = {
        id,
        order,
        pid,
        request,
        requestedAt,
        begin: at,
        hold,
        token,
        found,
        end: Number.POSITIVE_INFINITY,
        how: 'open',
      }
      sections.set(id, section)
      if (end !== null) leaseEnds.set(id, end)
      if (ledger.latest === null || ledger.latest.begin < at) ledger.latest = section
    },

    paused({ section, leaseEnds: end }: Paused) {
      if (end !== null) leaseEnds.set(section, end)
    },

    left({ section: id, at, answer, stock }: Left) {
      conclude(id, 'released', at)
      ledger.answered += 1
      if (answer === 'sold') ledger.sold += 1
      ledger.stock = stock
      if (id === frozenSection) ledger.lateWrite = 'accepted'
    },

    /**
     * Ends a critical section whose lock was lost. The end of the section is the end of its lease, or the last accepted
     * write of the section if that came later.
     */
    lost({ section: id, refused, wroteAt }: Lost) {
      if (id === null) return
      const leaseEnd = leaseEnds.get(id) ?? Number.POSITIVE_INFINITY
      conclude(id, 'lost', wroteAt === null ? leaseEnd : Math.max(leaseEnd, wroteAt))
      if (id !== frozenSection) return
      if (wroteAt !== null) ledger.lateWrite = 'accepted'
      else if (refused) ledger.lateWrite = 'refused'
    },

    /**
     * Ends the open critical sections of the killed worker. With the lock, a section ends when its lease ends, because
     * no process could release the lock sooner. Without the lock, a section ends at once.
     */
    killed(pid: number, at: number) {
      ledger.killedAt = at
      for (const section of sections.values()) {
        if (section.pid === pid && section.how === 'open') {
          conclude(section.id, 'killed', Math.max(at, leaseEnds.get(section.id) ?? at))
        }
      }
    },

    froze(pid: number, at: number, section: string) {
      frozenSection = section
      ledger.frozen = { pid, from: at, to: Number.POSITIVE_INFINITY }
    },

    thawed(at: number) {
      if (ledger.frozen) ledger.frozen.to = at
    },
  }

  function conclude(id: string, how: Section['how'], end: number): void {
    const section = sections.get(id)
    if (!section) throw new Error(`the critical section ${id} ended, but had never begun`)
    section.how = how
    section.end = end
  }

  return ledger
}
