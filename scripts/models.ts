/**
 * What run-model.ts checks: configurations of the protocol in which no property may fail, and mutants that must be
 * refuted for the reason that `because` names. docs/model.md has the results.
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
  readonly because: string
}

export interface Model {
  /** The file's name in spec/. */
  readonly file: string
  /** The folder of the scripts that the model describes. */
  readonly scripts: string
  /** The optimization for the C compiler. If a search is small, -O2 takes longer to compile than it saves. */
  readonly optimize: '-O1' | '-O2'
  /** The properties that each configuration shows. A configuration with PROGRESS also shows I4. */
  readonly shows: readonly Property[]
  /**
   * The text of each property's failing assertion. I4 can also fail without an assertion, by a run without progress.
   */
  readonly assertions: Readonly<Partial<Record<Property, RegExp>>>
  readonly configurations: readonly Subject[]
  readonly mutants: readonly Mutant[]
}

const of = (name: string, defines: string): Subject => ({ name, defines: defines.split(' ') })

/**
 * The configurations that take longest come first, so that no core is idle at the end. Unless a configuration sets
 * FAIR, two of the three clients are fair. The checker also searches the runs in which a fault of a configuration does
 * not happen. So "a crash, a lost message" includes all runs with only a crash or only a lost message.
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
    {
      ...of('no-timer', 'PROGRESS LOSSES=1 NO_TIMER'),
      breaks: 'I4',
      because:
        'the message of a grant is lost; its waiter never looks, so it holds without knowing and all others wait',
    },
    {
      ...of('no-handback', 'PROGRESS QUITS=1 NO_HANDBACK'),
      breaks: 'I4',
      because: 'a grant crosses its waiter giving up; nobody holds, and only the end of the lease would free the lock',
    },
    {
      ...of('publish-first', 'PUBLISH_FIRST'),
      breaks: 'I1',
      because:
        'between message and write the lock looks free: a newcomer takes it, and the waiter believes the message',
    },
    {
      ...of('unowned-release', 'LAPSES=1 UNOWNED_RELEASE'),
      breaks: 'I1',
      because:
        'a release runs after its lease has lapsed and ends the hold of the next, so somebody else gets the lock beside it',
    },
    {
      ...of('believe-old', 'LAPSES=1 BELIEVE_OLD'),
      breaks: 'I1',
      because: 'a late message tells of a grant that has lapsed, to a waiter that has joined again and just looked',
    },
    {
      ...of('believe-late', 'LAPSES=1 BELIEVE_LATE'),
      breaks: 'I1',
      because: 'a message is under way for longer than the lease; its waiter does not look before it uses the grant',
    },
    {
      ...of('ignore-reply', 'PROGRESS REPEATS=1 IGNORE_REPLY'),
      breaks: 'I4',
      because: 'a tend that is sent again runs after the release and gets the lock for a wait that is over',
    },
    {
      ...of('ignore-refusal', 'PROGRESS REPEATS=1 LOSSES=1 IGNORE_REFUSAL'),
      breaks: 'I4',
      because: 'the same, but it is only queued again; then it gets the lock by a message, and that is lost',
    },
    {
      ...of('barge', 'CRASHES=1 BARGE'),
      breaks: 'I3',
      because: 'a lease lapses with a waiter queued; an unfair newcomer that does not look at the queue is faster',
    },
    {
      ...of('new-ticket', 'CUTS=1 NEW_TICKET'),
      breaks: 'I3',
      because: 'a waiter that was unreachable for a moment joins again behind those that came after it',
    },
  ],
}

/**
 * Unless a configuration sets FAIR, all clients are fair. LARGE, WRITERS and CALLERS are bit sets of callers, with two
 * bits for each client.
 */
const permits: Model = {
  file: 'permits.pml',
  scripts: 'lua/permits/',
  optimize: '-O1',
  shows: ['I1', 'I3'],
  assertions: { I1: /held<=/, I3: /overtaken/, I4: /behind/ },
  configurations: [
    of('permits: one unreachable', 'PROGRESS LARGE=4 CUTS=1 PAIRS=1 CALLERS=31'),
    of('permits: one waiter a call, one unreachable', 'PROGRESS LARGE=1 CUTS=1 PAIRS=1 CALLERS=23 LIMIT=1'),
    of('permits: a lost message', 'PROGRESS LARGE=4 LOSSES=1 PAIRS=1 CALLERS=31'),
    of('permits: a paused holder, one says three', 'PROGRESS LARGE=4 LATES=1 RAISED=4 CALLERS=31'),
    of('permits: a crash, a hold without end', 'PROGRESS LARGE=4 CRASHES=1 KEEPS=1 CALLERS=31'),
    of('permits: a waiter gives up, a hold without end', 'PROGRESS LARGE=4 QUITS=1 KEEPS=1 PAIRS=1 CALLERS=23'),
    of('permits: none fair, no timer', 'PROGRESS NO_TIMER FAIR=0 LARGE=4 QUITS=1 KEEPS=1 PAIRS=5 CALLERS=55'),
    of('permits: one line, no timer', 'PROGRESS NO_TIMER FAIR=3 LARGE=4 QUITS=1 KEEPS=1 PAIRS=4 CALLERS=53'),
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
    {
      ...of('pass-large', 'LARGE=2 PASS_LARGE'),
      breaks: 'I3',
      because: 'the first in the queue wants both permits and one is free; the second, which wants one, is let in',
    },
    {
      ...of('merge', 'PROGRESS NO_TIMER FAIR=3 KEEPS=1 PAIRS=4 CALLERS=53 MERGE'),
      breaks: 'I4',
      because:
        'two releases wake a line of two, which tries once; the second waits on although a permit is free, and no message will follow',
    },
    {
      ...of('keep-sum', 'PROGRESS LARGE=4 CUTS=1 CALLERS=23 KEEP_SUM'),
      breaks: 'I4',
      because:
        'nobody hears the message of a grant, which is taken back; the permits stay in the sum, and nobody has them',
    },
    {
      ...of('leave-head', 'PROGRESS NO_TIMER LARGE=4 QUITS=1 KEEPS=1 CALLERS=21 LEAVE_HEAD'),
      breaks: 'I4',
      because:
        'the first in the queue, which wanted both permits, gives up; the one behind it would fit, and is not let in',
    },
    {
      ...of('readers-pass', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 READERS_PASS'),
      breaks: 'I3',
      because:
        'readers that come while others read are let in past a waiting writer, which starves as long as more of them come',
    },
    {
      ...of('writers-first', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 WRITERS_FIRST'),
      breaks: 'I3',
      because: 'the end of a writer lets in the next writer, so a reader waits for the turns of two',
    },
    {
      ...of('one-reader', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 ONE_READER'),
      breaks: 'I4',
      because: 'the end of a writer lets in one of two waiting readers; the other waits for another turn',
    },
    {
      ...of('turn-unheard', 'READ_WRITE WRITERS=5 CUTS=1 PAIRS=1 CALLERS=23 TURN_UNHEARD'),
      breaks: 'I3',
      because:
        'nobody hears the grant of a writer, but its turn is counted; so readers are let in twice in a row, past the next writer',
    },
    {
      ...of('turn-early', 'READ_WRITE WRITERS=5 PAIRS=1 CALLERS=23 LIMIT=1 TURN_EARLY'),
      breaks: 'I4',
      because:
        'one call lets in a part of the readers; the next takes that for their whole turn, and leaves the others behind',
    },
    {
      ...of('reentry-turn', 'READ_WRITE WRITERS=5 DOWNGRADES=1 PAIRS=1 CALLERS=23 REENTRY_TURN'),
      breaks: 'I4',
      because:
        'a writer takes the read, too, which counts as a turn of readers; its end leaves the waiting readers behind',
    },
    {
      ...of('one-line', 'PROGRESS READ_WRITE NO_TIMER FAIR=0 WRITERS=2 PAIRS=1 CALLERS=7 ONE_LINE'),
      breaks: 'I4',
      because:
        'a client that releases as a writer tells its own writers only; its readers do not hear that the lock is free',
    },
  ],
}

/**
 * Unless a configuration sets FAIR, no client is fair. With CALLERS=5 each of the two clients has one caller. Otherwise
 * the first client has two callers, one after the other. PROGRESS is left out of configurations in which it would take
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
    {
      ...of('no-write-back', 'CALLERS=5 AHEAD=1 NO_WRITE_BACK'),
      breaks: 'I2',
      because:
        "of two votes one has the larger token, which is the lease's; the next majority is without the server that knows it, and issues it again",
    },
    {
      ...of('set-back', 'SET_BACK'),
      breaks: 'I2',
      because:
        'a renewal comes late: a server that has issued larger tokens since is made to join the old hold, and its clock goes back to the token of that',
    },
    {
      ...of('count-restarted', 'UNORDERED CALLERS=5 CRASHES=1 RESTARTS=1 COUNT_RESTARTED'),
      breaks: 'I1',
      because:
        "a server of the holder's majority comes back with nothing and votes for another, whose vote makes a majority",
    },
    {
      ...of('count-young', 'CALLERS=5 CRASHES=1 RESTARTS=1 COUNT_YOUNG'),
      breaks: 'I2',
      because:
        'a server that came back votes with a small token before it counts; the vote is counted later, beside one of a server that does not know the last token either',
    },
    {
      ...of('own-lease', 'CALLERS=5 CRASHES=1 RESTARTS=1 OWN_LEASE'),
      breaks: 'I1',
      because:
        'a client counts a server that has been up for longer than its own leases, while another holds by a longer lease that the server has forgotten',
    },
    {
      ...of('from-reply', 'UNVOTED CALLERS=5 LAPSES=1 FROM_REPLY'),
      breaks: 'I1',
      because:
        'a vote lapses while its reply is under way; its caller counts it from the reply on, beside the next holder',
    },
    {
      ...of('latest-deadline', 'CALLERS=5 LATES=1 LATEST_DEADLINE'),
      breaks: 'I1',
      because:
        'a holder goes on as long as one of its votes does; the others have lapsed, and are a majority for the next',
    },
    {
      ...of('keep-minority', 'PROGRESS CALLERS=5 CRASHES=1 KEEP_MINORITY'),
      breaks: 'I4',
      because: 'one server has stopped, and each of two callers keeps the vote of one of the other two',
    },
    {
      ...of('late-leave', 'UNVOTED UNORDERED CALLERS=5 LOSSES=1 EARLIES=1 LATE_LEAVE'),
      breaks: 'I1',
      because:
        'the leave of an attempt is repeated after the next attempt with the same id has got the vote of that server, and ends it unnoticed',
    },
    {
      ...of('unsaid', 'CALLERS=5 LATES=1 UNSAID'),
      breaks: 'I8',
      because:
        'a holder that cannot renew passes its deadline and says so only when a majority tells it; another holds by then',
    },
  ],
}

export const models: readonly Model[] = [baton, permits, quorum]
