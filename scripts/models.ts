/**
 * What run-model.ts checks: configurations and mutants. In a configuration of the protocol, no property may fail. A
 * mutant is the protocol without one of its rules: it must violate the property `breaks`. docs/model.md has the
 * results, and tells for each mutant which rule is missing and what happens without it.
 */
export type Property = 'I1' | 'I2' | 'I3' | 'I4' | 'I8'

export interface Subject {
  readonly name: string
  /**
   * The macros to define, without the leading -D. PROGRESS adds the check of I4, which costs three times as much as the
   * check of I1 and I3.
   */
  readonly defines: readonly string[]
}

export interface Mutant extends Subject {
  readonly breaks: Property
}

export interface Model {
  /** The file's name in spec/. */
  readonly file: string
  /** The folder of the scripts that the model describes. */
  readonly scripts: string
  /** The optimization for the C compiler. If a search is small, -O2 takes longer to compile than it saves. */
  readonly optimize: '-O1' | '-O2'
  /** The properties that are checked in each configuration. If a configuration defines PROGRESS, I4 is added. */
  readonly shows: readonly Property[]
  /**
   * The text of each property's failing assertion. I4 can also fail without an assertion, by a run without progress.
   */
  readonly assertions: Readonly<Partial<Record<Property, RegExp>>>
  readonly configurations: readonly Subject[]
  readonly mutants: readonly Mutant[]
}

const of = (name: string, defines: string): Subject => ({ name, defines: defines.split(' ') })
const without = (rule: string, breaks: Property, defines: string): Mutant => ({ ...of(rule, defines), breaks })

/**
 * The configurations that take longest come first, so that no core is idle at the end. Unless a configuration sets
 * FAIR, clients 0 and 1 make fair calls, and client 2 makes unfair calls. Each fault of a configuration may happen, but
 * need not. So the configuration named `a crash, a lost message` also covers the runs with only one of these two
 * faults.
 */
const baton: Model = {
  file: 'baton.pml',
  scripts: 'lua/mutex/',
  optimize: '-O2',
  shows: ['I1', 'I3'],
  assertions: { I1: /holders<=1/, I3: /!\(+k!=/ },
  configurations: [
    of('a waiter gives up, a lost message', 'PROGRESS QUITS=1 LOSSES=1'),
    of('leases lapse: paused holder, slow message', 'LATES=1 LAPSES=1'),
    of('a request runs twice, a lost message', 'PROGRESS REPEATS=1 LOSSES=1'),
    of('all fair, one unreachable', 'PROGRESS FAIR=7 CUTS=1'),
    of('all fair, a crash', 'PROGRESS FAIR=7 CRASHES=1'),
    of('a crash, a lost message', 'PROGRESS CRASHES=1 LOSSES=1'),
    of('all data lost', 'PROGRESS WIPES=1 WIPE_ALL UNGUARDED'),
    of('all fair, a lost message', 'PROGRESS FAIR=7 LOSSES=1'),
    of('a paused holder', 'PROGRESS LATES=1'),
    of('two crashes', 'PROGRESS CRASHES=2'),
    of('the queue lost', 'PROGRESS WIPES=1'),
    of('one unreachable', 'PROGRESS CUTS=1'),
    of('one fair, force-release', 'PROGRESS FAIR=1 FORCES=1 UNGUARDED'),
    of('one fair, two lost messages', 'PROGRESS FAIR=1 LOSSES=2'),
    of('none fair, two lost messages', 'PROGRESS FAIR=0 LOSSES=2'),
  ],
  mutants: [
    without('no-timer', 'I4', 'PROGRESS LOSSES=1 NO_TIMER'),
    without('no-handback', 'I4', 'PROGRESS QUITS=1 NO_HANDBACK'),
    without('publish-first', 'I1', 'PUBLISH_FIRST'),
    without('unowned-release', 'I1', 'LAPSES=1 UNOWNED_RELEASE'),
    without('believe-old', 'I1', 'LAPSES=1 BELIEVE_OLD'),
    without('believe-late', 'I1', 'LAPSES=1 BELIEVE_LATE'),
    without('ignore-reply', 'I4', 'PROGRESS REPEATS=1 IGNORE_REPLY'),
    without('ignore-refusal', 'I4', 'PROGRESS REPEATS=1 LOSSES=1 IGNORE_REFUSAL'),
    without('barge', 'I3', 'CRASHES=1 BARGE'),
    without('new-ticket', 'I3', 'CUTS=1 NEW_TICKET'),
  ],
}

/**
 * Unless a configuration sets FAIR, all clients make fair calls. LARGE, WRITERS, GROUPS and CALLERS are sets of callers.
 * They are written as numbers: bits 0 and 1 stand for the two callers of client 0, bits 2 and 3 for those of client 1,
 * and so on.
 */
const permits: Model = {
  file: 'permits.pml',
  scripts: 'lua/permits/',
  optimize: '-O1',
  shows: ['I1', 'I3'],
  assertions: { I1: /held(By\[.*\])?<=/, I3: /overtaken/, I4: /behind/ },
  configurations: [
    of('permits: one unreachable', 'PROGRESS LARGE=4 CUTS=1 PAIRS=1 CALLERS=31'),
    of('permits: one waiter a call, one unreachable', 'PROGRESS LARGE=1 CUTS=1 PAIRS=1 CALLERS=23 LIMIT=1'),
    of('permits: a lost message', 'PROGRESS LARGE=4 LOSSES=1 PAIRS=1 CALLERS=31'),
    of('permits: a paused holder, one says three', 'PROGRESS LARGE=4 LATES=1 RAISED=4 CALLERS=31'),
    of('permits: a crash, a hold without end', 'PROGRESS LARGE=4 CRASHES=1 KEEPS=1 CALLERS=31'),
    of('permits: a waiter gives up, a hold without end', 'PROGRESS LARGE=4 QUITS=1 KEEPS=1 PAIRS=1 CALLERS=23'),
    of('permits: none fair, no timer', 'PROGRESS NO_TIMER FAIR=0 LARGE=4 QUITS=1 KEEPS=1 PAIRS=5 CALLERS=55'),
    of('permits: one line, no timer', 'PROGRESS NO_TIMER FAIR=3 LARGE=4 QUITS=1 KEEPS=1 PAIRS=4 CALLERS=53'),
    of('groups: one unreachable', 'PROGRESS GROUPS=10 LIMITED=2 CUTS=1 PAIRS=3 CALLERS=31'),
    of('groups: weights, a lost message', 'PROGRESS GROUPS=10 HEAVY=2 LARGE=16 LOSSES=1 PAIRS=3 CALLERS=31'),
    of('groups: weights, no timer', 'PROGRESS NO_TIMER GROUPS=10 HEAVY=2 LARGE=16 PAIRS=3 CALLERS=31'),
    of(
      'groups: a waiter gives up, a hold without end',
      'PROGRESS GROUPS=10 LIMITED=2 LARGE=1 QUITS=1 KEEPS=1 PAIRS=3 CALLERS=15',
    ),
    of('groups: a crash, a lost message', 'PROGRESS GROUPS=10 LIMITED=2 CRASHES=1 LOSSES=1 PAIRS=3 CALLERS=15'),
    of(
      'groups: one waiter a call, a paused holder',
      'PROGRESS GROUPS=10 HEAVY=2 LIMITED=2 LATES=1 PAIRS=3 CALLERS=15 LIMIT=1',
    ),
    of('read-write: a paused holder', 'PROGRESS READ_WRITE WRITERS=5 LATES=1 PAIRS=1 CALLERS=31'),
    of('read-write: one unreachable', 'PROGRESS READ_WRITE WRITERS=5 CUTS=1 PAIRS=1 CALLERS=31'),
    of(
      'read-write: one waiter a call, one unreachable',
      'PROGRESS READ_WRITE WRITERS=5 CUTS=1 PAIRS=1 CALLERS=23 LIMIT=1',
    ),
    of('read-write: two rounds each', 'PROGRESS READ_WRITE WRITERS=5'),
    of(
      'read-write: a waiter gives up, a hold without end',
      'PROGRESS READ_WRITE WRITERS=5 QUITS=1 KEEPS=1 PAIRS=1 CALLERS=23',
    ),
    of('read-write: none fair, no timer', 'PROGRESS READ_WRITE NO_TIMER FAIR=0 WRITERS=17 KEEPS=1 PAIRS=5 CALLERS=55'),
    of('read-write: a crash, a lost message', 'PROGRESS READ_WRITE WRITERS=5 CRASHES=1 LOSSES=1 PAIRS=1 CALLERS=23'),
    of(
      'read-write: a downgrade, a hold without end',
      'PROGRESS READ_WRITE WRITERS=5 DOWNGRADES=1 KEEPS=1 PAIRS=1 CALLERS=23',
    ),
    of('read-write: two lines, no timer', 'PROGRESS READ_WRITE NO_TIMER FAIR=3 WRITERS=17 KEEPS=1 PAIRS=4 CALLERS=55'),
  ],
  mutants: [
    without('pass-large', 'I3', 'LARGE=2 PASS_LARGE'),
    without('merge', 'I4', 'PROGRESS NO_TIMER FAIR=3 KEEPS=1 PAIRS=4 CALLERS=53 MERGE'),
    without('keep-sum', 'I4', 'PROGRESS LARGE=4 CUTS=1 CALLERS=23 KEEP_SUM'),
    without('leave-head', 'I4', 'PROGRESS NO_TIMER LARGE=4 QUITS=1 KEEPS=1 CALLERS=21 LEAVE_HEAD'),
    without('readers-pass', 'I3', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 READERS_PASS'),
    without('writers-first', 'I3', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 WRITERS_FIRST'),
    without('one-reader', 'I4', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 ONE_READER'),
    without('turn-unheard', 'I3', 'READ_WRITE WRITERS=5 CUTS=1 PAIRS=1 CALLERS=23 TURN_UNHEARD'),
    without('turn-early', 'I4', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 LIMIT=1 TURN_EARLY'),
    without('reentry-turn', 'I4', 'READ_WRITE WRITERS=5 DOWNGRADES=1 PAIRS=1 CALLERS=23 REENTRY_TURN'),
    without('one-line', 'I4', 'PROGRESS READ_WRITE NO_TIMER FAIR=0 WRITERS=2 PAIRS=1 CALLERS=7 ONE_LINE'),
    without('over-permits', 'I1', 'GROUPS=10 PAIRS=3 CALLERS=15 OVER_PERMITS'),
    without('over-limit', 'I1', 'GROUPS=10 LIMITED=2 PAIRS=3 CALLERS=15 OVER_LIMIT'),
    without('full-blocks', 'I4', 'PROGRESS GROUPS=10 LIMITED=2 KEEPS=1 PAIRS=3 CALLERS=15 FULL_BLOCKS'),
    without('room-unseen', 'I4', 'PROGRESS NO_TIMER GROUPS=10 LIMITED=2 CALLERS=10 ROOM_UNSEEN'),
    without('last-first', 'I3', 'GROUPS=10 PAIRS=3 CALLERS=15 LAST_FIRST'),
    without('by-ticket', 'I3', 'GROUPS=10 LARGE=16 PAIRS=3 CALLERS=31 BY_TICKET'),
    without('saved-up', 'I3', 'GROUPS=10 PAIRS=3 CALLERS=31 SAVED_UP'),
  ],
}

/**
 * Unless a configuration sets FAIR, all calls are unfair. Client 0 calls twice, one call after the other, and client 1
 * calls once. CALLERS=5 omits the second call of client 0. A configuration omits PROGRESS if the check of I4 would take
 * half a minute.
 */
const quorum: Model = {
  file: 'quorum.pml',
  // A quorum has no scripts of its own.
  scripts: 'lua/mutex/',
  optimize: '-O1',
  shows: ['I1', 'I2', 'I8'],
  assertions: { I1: /overlap|minority/, I2: />last/, I8: /unsaid/ },
  configurations: [
    of('quorum: two rounds, a server stops', 'PROGRESS CRASHES=1'),
    of('quorum: a server restarts, its time is ahead', 'PROGRESS CALLERS=5 CRASHES=1 RESTARTS=1 AHEAD=1'),
    of('quorum: two rounds, time ahead', 'AHEAD=1'),
    of('quorum: a server restarts, tries too early', 'CALLERS=5 CRASHES=1 RESTARTS=1 EARLIES=1'),
    of('quorum: all fair, a server restarts, a late holder', 'FAIR=3 CALLERS=5 CRASHES=1 RESTARTS=1 LATES=1'),
    of('quorum: all fair, a server restarts, a lost message', 'FAIR=3 CALLERS=5 CRASHES=1 RESTARTS=1 LOSSES=1'),
    of('quorum: a server restarts, a lost message', 'CALLERS=5 CRASHES=1 RESTARTS=1 LOSSES=1'),
    of('quorum: all fair, a server restarts, time ahead', 'FAIR=3 CALLERS=5 CRASHES=1 RESTARTS=1 AHEAD=1'),
    of('quorum: all fair, two rounds, a server stops', 'PROGRESS FAIR=3 CRASHES=1'),
    of('quorum: all fair, tickets, a server stops', 'PROGRESS FAIR=3 CALLERS=5 CRASHES=1 TICKETS'),
    of('quorum: all fair, two rounds, a dispute', 'PROGRESS FAIR=3 DISPUTES=1'),
    of('quorum: a server restarts, a late holder', 'PROGRESS CALLERS=5 CRASHES=1 RESTARTS=1 LATES=1'),
    of('quorum: all fair, a server restarts', 'PROGRESS FAIR=3 CALLERS=5 CRASHES=1 RESTARTS=1'),
    of('quorum: one fair, two rounds', 'PROGRESS FAIR=1'),
    of(
      'quorum: all fair, a server stops, time ahead, a lost message',
      'PROGRESS FAIR=3 CALLERS=5 CRASHES=1 AHEAD=1 LOSSES=1',
    ),
    of('quorum: leases lapse: late, paused, slow', 'PROGRESS CALLERS=5 LATES=1 PAUSES=1 LAPSES=1'),
    of('quorum: one fair, a server restarts', 'PROGRESS FAIR=1 CALLERS=5 CRASHES=1 RESTARTS=1'),
    of('quorum: all fair, a waiter gives up, a lost message', 'PROGRESS FAIR=3 CALLERS=5 QUITS=1 LOSSES=1'),
    of('quorum: a server stops, a lost message', 'PROGRESS CALLERS=5 CRASHES=1 LOSSES=1'),
    of('quorum: all fair, a server stops, a lost message', 'PROGRESS FAIR=3 CALLERS=5 CRASHES=1 LOSSES=1'),
    of(
      'quorum: all fair, a server stops, a dispute, early',
      'PROGRESS FAIR=3 CALLERS=5 CRASHES=1 DISPUTES=1 EARLIES=1',
    ),
  ],
  mutants: [
    without('no-write-back', 'I2', 'CALLERS=5 AHEAD=1 NO_WRITE_BACK'),
    without('set-back', 'I2', 'SET_BACK'),
    without('count-restarted', 'I1', 'UNORDERED CALLERS=5 CRASHES=1 RESTARTS=1 COUNT_RESTARTED'),
    without('count-young', 'I2', 'CALLERS=5 CRASHES=1 RESTARTS=1 COUNT_YOUNG'),
    without('own-lease', 'I1', 'CALLERS=5 CRASHES=1 RESTARTS=1 OWN_LEASE'),
    without('from-reply', 'I1', 'UNVOTED CALLERS=5 LAPSES=1 FROM_REPLY'),
    without('latest-deadline', 'I1', 'CALLERS=5 LATES=1 LATEST_DEADLINE'),
    without('keep-minority', 'I4', 'PROGRESS CALLERS=5 CRASHES=1 KEEP_MINORITY'),
    without('keep-tickets', 'I4', 'PROGRESS FAIR=3 CALLERS=5 CRASHES=1 TICKETS KEEP_TICKETS'),
    without('late-leave', 'I1', 'UNVOTED UNORDERED CALLERS=5 LOSSES=1 EARLIES=1 LATE_LEAVE'),
    without('unsaid', 'I8', 'CALLERS=5 LATES=1 UNSAID'),
  ],
}

export const models: readonly Model[] = [baton, permits, quorum]
