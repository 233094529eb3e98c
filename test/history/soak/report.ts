/** Makes the text that a run prints at its end. */
import type { Verdict } from '../check.ts'
import { eventsBefore } from '../check.ts'
import type { HistoryEvent } from '../events.ts'

/** How many violations are printed with their events (SHOWN), and how many with only their text (LISTED). */
const SHOWN = 3
const LISTED = 20

/** `kinds` are the names of all faults, so that the report can list those that never came. */
export function reportLines(
  verdict: Verdict,
  events: readonly HistoryEvent[],
  seed: number,
  kinds: readonly string[],
): string[] {
  const { violations, grants, ends, faults, order, excused } = verdict
  const missing = kinds.filter(name => !faults.has(name))
  const lines = [
    `events      ${verdict.events}`,
    `grants      ${total(grants)}: ${counts(grants)}`,
    `ungranted   ${total(ends)}: ${counts(ends)}`,
    `faults      ${total(faults)}: ${counts(faults)}`,
    ...(missing.length > 0 ? [`never came  ${missing.join(', ')}`] : []),
    `order       ${order.compared} waiters compared, ${order.decided} of them without any excuse; ${order.excused} overtaken with one`,
    `turns       ${order.barging} waiters compared with those that do not queue, ${order.phases} readers and writers with the other's turns, ${order.shares} with other groups' turns, none with an excuse`,
    `excused     ${excused.overlaps} overlaps of holds that were taken away, ${excused.forged} forged grants, ${excused.witnesses} reports of witnesses about these`,
    `violations  ${violations.length}`,
  ]
  for (const { invariant, key, text } of violations.slice(0, LISTED)) lines.push(`  ${invariant} ${key ?? ''}: ${text}`)
  for (const violation of violations.slice(0, SHOWN)) {
    lines.push('', `seed ${seed}, ${violation.invariant} ${violation.key ?? ''}: ${violation.text}`)
    for (const event of eventsBefore(violation, events)) lines.push(`  ${line(event)}`)
  }
  return lines
}

function line({ t, kind, ...fields }: HistoryEvent): string {
  return `${t.toFixed(3)} ${kind} ${JSON.stringify(fields)}`
}

function total(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}

function counts(map: ReadonlyMap<string, number>): string {
  return [...map].map(([name, count]) => `${count} ${name}`).join(', ')
}
