/**
 * I7: after the end, nothing is left in Redis or in the processes. This file also checks that no process had an event
 * that must never happen.
 */
import type { History, Violation } from './history.ts'

export function checkResidue(history: History): Violation[] {
  const violations: Violation[] = []
  const report = (invariant: string, text: string, event: History['events'][number]) =>
    violations.push({ invariant, key: undefined, text, events: [event] })
  for (const event of history.events) {
    if (event.kind === 'left') for (const name of event.names) report('I7', `${name} is left in Redis`, event)
    if (event.kind === 'exited' && event.forced)
      report('I7', `${event.worker} did not end after closing its client`, event)
    if (event.kind === 'crash') report('I6', `${event.worker}: ${event.error}`, event)
  }
  return violations
}
