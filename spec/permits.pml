/*
 * A semaphore, or with GROUPS a semaphore with two groups, or with READ_WRITE a read-write lock, as a model for the
 * checker Spin. `npm run model` checks all three; docs/model.md says what the check shows. They share the folder of
 * scripts lua/permits/, and this one model.
 *
 * There are three clients with two callers each. Each caller asks once. The callers of one client come one after the
 * other, or together (PAIRS). Some clients are fair: their callers queue. The callers of an unfair client wait in a
 * line inside the client, and the head of this line tries again when the lock may be free. The checker follows every
 * possible order of the steps below, and every combination of faults.
 *
 *      lua/permits/acquire.lua   acquire       lua/permits.lua      admit: admit, deliver; writeHold: grant; giveUp: endHold
 *      lua/permits/tend.lua      tend                               chooseInOrder: choosePicked; lapse; vacate
 *      lua/permits/release.lua   release       lua/read-write.lua   choosePhase: choosePicked
 *      lua/permits/leave.lua     leave         lua/groups.lua       chooseTurns: choosePicked; mayTurn: open
 *      lua/permits/sweep.lua     sweep                              settleGroup: settle, count; updateMark: tidy
 *                                              lua/lock.lua         enqueue: join
 *      lua/permits/renew.lua           left out: a renewed hold is one that does not lapse
 *      lua/permits/force-release.lua   left out: waiters cannot tell it from a release
 *      lua/permits/inspect.lua         left out: it writes nothing
 *
 * Redis runs each script atomically, so each script is one step (d_step). A request and its reply are two steps. So a
 * message may overtake a reply, and a waiter may get the lock while its `leave` is under way. A look is a request by
 * which a waiter asks Redis for its state. A fair waiter's first look is `acquire`, and its other looks are `tend`. All
 * looks of an unfair waiter are `acquire`.
 *
 * WHAT SPEC/BATON.PML ALREADY SHOWS IS LEFT OUT. The client's code for a waiter is the same for all kinds. That model
 * covers late messages and their proofs, requests that run twice, and a lost queue. So here, the hold of a live client
 * lapses only after the client no longer counts itself as the holder, and a client believes each message that arrives.
 * This model adds the rules of admission: weights, batches of grants in one message, undoing a batch, the two phases of
 * a read-write lock, the limit of an admission, and the line of a client in which several callers can be granted.
 *
 * WEIGHTS. A claim wants WANTS(i) permits, and states that there are OF(i) permits. `taken` is the sum of the permits
 * of all holds. A claim fits if `taken` + WANTS(i) is at most OF(i). A semaphore has two permits. The claim of a reader
 * wants 1 permit of ALL - 1, and the claim of a writer wants ALL permits of ALL. So a reader fits unless a writer
 * holds, and a writer fits if nobody holds.
 *
 * ADMISSION handles at most LIMIT waiters in one script call. If there are more, the client that called the script
 * continues the admission with `sweep`, or another client's request continues it. First the admission picks waiters
 * from the queue. Then it sends one message to each client of a picked waiter. If nobody receives a message, the grants
 * in this message are undone, its waiters leave the queue, and the picking begins again.
 *   - A semaphore: the head of the queue is picked as long as it fits.
 *   - A read-write lock while no writer holds: if it is the readers' turn, or no writer waits, all readers are picked.
 *     If nobody holds then, the first writer is picked. `turn` records whether the last turn was a writer's. An
 *     admission updates it, but does not record a readers' turn if LIMIT ended it before all readers were picked. A
 *     re-entry does not change `turn`.
 *   - Groups: `turns` has the first waiter of each group that has room for it. Of these, the one with the smallest
 *     start tag is picked as long as it fits; equal tags are in the order of tickets. A grant moves the virtual time to
 *     its start tag, and the finish tag of its group to start + permits / weight. The next start tag of the group is
 *     its finish tag, or the virtual time if that is later. A weight is 1, or for the groups of HEAVY 2.
 * A DOWNGRADE: a writer also takes the read lock, and then ends the write. Its hold continues as a reader's.
 *
 * If the queue is empty after an admission, all lines receive the message that the lock may be free. After such a
 * wake-up, the callers of a line keep trying until the head is refused.
 *
 * TIME is not counted. A lease has a step "lapse", and a queued waiter a step "expire". A look by a client's slow timer
 * is also a step. NO_TIMER takes the timers away, to check that messages alone suffice while no message is lost.
 *
 * Each kind of fault has a number that bounds it:
 *   LOSSES      all messages of one script to one client are lost
 *   CUTS        a live client's inbox has no subscriber during one script, or the expiry of a live waiter passes
 *   CRASHES     a client ends for good. Its requests under way either still run or are lost. Its inbox may still have a
 *               subscriber
 *   QUITS       a waiter gives up
 *   LATES       a holder is paused, or cannot renew: its local deadline passes
 *   KEEPS       a hold never ends. This is not a fault, but the progress of the others must not depend on its end
 *   DOWNGRADES  a writer also takes the read lock, and then releases the write lock
 *
 * Properties:
 *   I1  become(): the permits that the clients count as theirs never exceed the largest OF(i) of any claim, and those
 *       of a group never its limit. So no writer holds beside anybody else
 *   I3  grant(): `overtaken`. No grant passes over a live queued waiter with a smaller ticket, and no grant to a caller
 *       that is not queued passes over any live queued waiter. In particular, if a large claim does not fit, no small
 *       claim passes it. In a read-write lock, this rule applies among writers, and two more rules apply. No reader
 *       passes a waiting writer, except once after the end of a writer. No writer passes a reader that has already
 *       waited for another writer's turn. With groups, the first rule applies inside each group. `past` is what the
 *       other group was granted, permits / weight, since a waiter could have been next (`entitled`). The other group is
 *       granted more only while `past` is at most the largest job of the waiter's group, and for a larger ticket only
 *       while it is less. If the waiter's group was granted nothing before, 0 takes the place of the largest job
 *   I4  admit(): `behind`. After a writer's end, all readers that have waited for it are admitted
 *       ltl progress: a state in which a waiting caller could be admitted (`stuck`) never lasts. The number of callers
 *       is bounded, so each run ends. No fairness is assumed: looks that would change nothing are not steps (MATTERS)
 *
 * Each mutant removes one rule: PASS_LARGE, MERGE, KEEP_SUM, LEAVE_HEAD, READERS_PASS, WRITERS_FIRST, ONE_READER,
 * TURN_UNHEARD, TURN_EARLY, REENTRY_TURN, ONE_LINE, OVER_PERMITS, OVER_LIMIT, FULL_BLOCKS, ROOM_UNSEEN, LAST_FIRST,
 * BY_TICKET, SAVED_UP. scripts/models.ts says what each of them breaks.
 */

#ifndef FAIR
#define FAIR 7 /* a set of clients */
#endif
#ifndef CALLERS
#define CALLERS 63 /* a set of ids: the callers that exist */
#endif
#ifndef PAIRS
#define PAIRS 0 /* a set of clients whose two callers come together; the others' callers come in succession */
#endif
#ifndef LIMIT
#define LIMIT 250
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef QUITS
#define QUITS 0
#endif
#ifndef LATES
#define LATES 0
#endif
#ifndef KEEPS
#define KEEPS 0
#endif
#ifndef DOWNGRADES
#define DOWNGRADES 0
#endif

#define CLIENTS 3
#define IDS 6 /* CLIENTS * 2 */
#define NONE IDS

/* A set (of ids, of clients, or of lines) is a byte with one bit for each member. */
#define in(set, i) (((set) >> (i)) & 1)
#define put(set, i) set = (set) | (1 << (i))
#define take(set, i) set = (set) & ~(1 << (i))

/* An id is the number of a caller. It is the id of the caller's waiter and, after the grant, of the caller's hold. */
#define client(i) ((i) / 2)
#define other(i) ((i) ^ 1)
#define second(i) ((i) & 1)
#define of(c) (3 << ((c) * 2))
#define exists(i) in(CALLERS, i)
#define paired(i) in(PAIRS, client(i))
#define fair(i) in(FAIR, client(i))
#define dead(i) in(crashed, client(i))

#ifdef READ_WRITE
#ifndef WRITERS
#define WRITERS 0 /* a set of ids: they write, the others read */
#endif
#define READERS (63 & ~(WRITERS))
#define ALL 8
#define writes(i) in(WRITERS, i)
#define WANTS(i) (writes(i) -> ALL : 1)
#define OF(i) (writes(i) -> ALL : ALL - 1)
#define MOST ALL
#define writing (taken >= ALL)
#else
#ifndef LARGE
#define LARGE 0 /* a set of ids: they want both permits */
#endif
#ifndef RAISED
#define RAISED 0 /* a set of clients: their claims state that there are three permits, the others' claims two */
#endif
#define writes(i) 0
#define WANTS(i) (1 + in(LARGE, i))
#define OF(i) (2 + in(RAISED, client(i)))
#define MOST (2 + ((RAISED) != 0))
#endif

#ifdef GROUPS /* a set of ids: the callers of group 1; the others are in group 0 */
#ifndef LIMITED
#define LIMITED 0 /* a set of groups: they may have one permit at a time, the others all */
#endif
#ifndef HEAVY
#define HEAVY 0 /* a set of groups: their weight is 2, that of the others 1 */
#endif
#define group(i) in(GROUPS, i)
#define members(g) ((g) -> (GROUPS) : 63 & ~(GROUPS))
#define limit(g) (in(LIMITED, g) -> 1 : MOST)
#define unit(i) (in(HEAVY, group(i)) -> 1 : 2)
#define cost(i) (WANTS(i) * unit(i))
#endif

/*
 * The number of the line in which `i` waits if its client is unfair. Client c has two lines: line 2c for its readers,
 * or for all callers of a semaphore, and line 2c + 1 for its writers. These are also the ids of the client's two
 * callers, so `of(c)` stands for the set of both lines, too.
 */
#define line(i) (client(i) * 2 + writes(i))
#define fits(i) (taken + WANTS(i) <= OF(i))

#ifdef NO_TIMER
#define TIMER false
#else
#define TIMER true
#endif

mtype = { idle, waiting, holding, over };
mtype = { nothing, sent, refused, granted };
mtype = { plain, lost, cut, counted };
mtype = { none, releasing, leaving, sweeping, downgrading };

/* ---- the state of Redis ------------------------------------------------------------------------------------------ */

byte holds;            /* the ids that are recorded in the hash as holders */
byte taken;            /* the field `taken` */
byte lapsed;           /* holders whose lease has lapsed */
bool queued;           /* the field `queued` is set */
byte queue;            /* the ids in the queue; for a read-write lock, in both queues */
byte ticket[IDS];      /* the rank of each id's ticket, from 1; kept while a client or Redis knows the ticket */
byte expired;          /* queued waiters whose own expiry has passed */
#ifdef READ_WRITE
bool turn;             /* the field `turn`: whether the last turn was a writer's */
byte both;             /* writers that also hold the read lock */
byte down;             /* writers that have ended the write, and still hold the read lock */
#define weight(i) (in(down, i) -> 1 : WANTS(i) + in(both, i))
#define share(i) (in(down, i) -> 1 : WANTS(i))
#else
#define weight(i) WANTS(i)
#define share(i) WANTS(i)
#endif
#ifdef GROUPS
byte has[2];           /* the fields ":<group>": the permits of a group's holds */
byte turns;            /* the first waiters of the groups that have room for them */
byte tag[2];           /* the last finish tag of each group */
byte virtual;          /* the virtual time */
#endif

/* ---- the state of the clients ------------------------------------------------------------------------------------ */

mtype st[IDS] = over;         /* idle: has not called yet; waiting: in any waiting state of src/key/waiter.ts */
mtype ask[IDS] = nothing;     /* the present look of each id: sent, or the reply that is under way */
byte known;                   /* waiters that know their ticket; if such a waiter is fair, its looks are `tend` */
byte overdue;                 /* holds whose local deadline has passed */
byte kept;                    /* holds that never end */
byte hears;                   /* lines that are subscribed to the unlock channel */
byte crashed;

/* ---- what is under way between clients and Redis ----------------------------------------------------------------- */

byte inbox;            /* waiters to which a grant message is under way */
byte unlocked;         /* lines with a wake-up that is under way, or that has not led to an attempt yet */
byte releases;
byte leaves;
byte sweeps;

/* ---- faults that may still happen, and what is chosen for the next script ---------------------------------------- */

byte losses = LOSSES, cuts = CUTS, crashes = CRASHES, quits = QUITS, lates = LATES, keeps = KEEPS, downgrades = DOWNGRADES;
/*
 * What goes wrong in the next script. lost: its messages to the client `victim` are lost. cut: the inbox of `victim`
 * has no subscriber. counted: the inbox of a dead client still has a subscriber.
 */
mtype fate = plain;
byte victim = NONE;
mtype job = none;      /* the script that `finish` runs next */

/* ---- variables for the properties -------------------------------------------------------------------------------- */

byte held;             /* the sum of the permits that the clients count as theirs */
#ifdef GROUPS
byte heldBy[2];        /* of these, those of each group */
byte past[IDS];        /* the cost of what the other group was granted while this waiter could be next */
byte served;           /* a set of groups: they have been granted something */
#endif
bool stuck;
#ifdef READ_WRITE
byte waited;           /* queued readers that have waited while a writer held */
bool ended;            /* a writer's turn has ended, and the next turn has not begun */
#endif

/* These variables are used only within one step. */
hidden byte w, k, c, x, h, n, asker, by, mates, candidates, picked, ids, deafs, room, admitted, vacates, more,
  unfinished, deaf, overtaken, behind;

inline become(i, state) {
  held = held - (st[i] == holding -> share(i) : 0) + (state == holding -> share(i) : 0);
#ifdef GROUPS
  heldBy[group(i)] = heldBy[group(i)] - (st[i] == holding -> share(i) : 0) + (state == holding -> share(i) : 0);
  assert(heldBy[group(i)] <= limit(group(i))); /* I1 */
#endif
  st[i] = state;
  printf("client %d, caller %d: %e\n", client(i), i % 2, state);
  assert(held <= MOST) /* I1 */
}

/* Whether `i` is a live waiter in the queue. */
#define stands(i) (in(queue, i) && st[i] == waiting && !in(expired, i))
#define before(set, k, i) (in(set, k) && ticket[k] < ticket[i])
#define firstIn(set, i) (in(set, i) && !(before(set, 0, i) || before(set, 1, i) || before(set, 2, i) || \
  before(set, 3, i) || before(set, 4, i) || before(set, 5, i)))
/* Whether `i`, a caller of an unfair client, is the head of its line. */
#define atHead(i) (!second(i) || st[other(i)] != waiting || line(other(i)) != line(i))

#ifdef GROUPS
/* Whether the group of `i` has room for it. */
#define admits(i) (has[group(i)] + WANTS(i) <= limit(group(i)))
#define later(a, b) ((a) > (b) -> (a) : (b))
#ifdef SAVED_UP
#define start(g) tag[g]
#else
#define start(g) later(virtual, tag[g])
#endif
#ifdef BY_TICKET
#define sooner(k, i) (ticket[k] < ticket[i])
#else
#define sooner(k, i) (start(group(k)) < start(group(i)) || start(group(k)) == start(group(i)) && ticket[k] < ticket[i])
#endif
/* Whether `i` is the next waiter of its group, and the group has room for it. */
#define entitled(i) (admits(i) && firstIn(queue & members(group(i)), i))
/* The most by which the group of `i` may be ahead of the virtual time: its largest job. */
#define most(i) (in(served, group(i)) -> (1 + (((LARGE) & members(group(i))) != 0)) * unit(i) : 0)
#endif

/* ---- merging states whose difference does not matter ------------------------------------------------------------- */

/* Removes the rank of the ticket of `i`. All larger ranks move down by one. */
inline strike(i) {
  k = 0;
  do
  :: k < IDS && ticket[k] > ticket[i] -> ticket[k]--; k++
  :: k < IDS && ticket[k] <= ticket[i] -> k++
  :: k == IDS -> break
  od;
  ticket[i] = 0
}

inline forget(i) {
  if
  :: st[i] != waiting && st[i] != idle && ask[i] != sent ->
     take(known, i);
     if
     :: !in(queue, i) && ticket[i] != 0 -> strike(i)
     :: else
     fi;
     if
     :: !in(holds, i) && st[i] != holding ->
        take(overdue, i);
#ifdef READ_WRITE
        take(both, i); take(down, i)
#endif
     :: else
     fi
  :: else
  fi;
  if
  :: !in(queue, i) ->
     take(expired, i);
#ifdef READ_WRITE
     take(waited, i)
#endif
  :: else
  fi
}

/* Whether `i` may not be admitted before the fair waiter `k`. */
#ifdef GROUPS
#define ahead(k, i) (group(k) == group(i) -> ticket[k] < ticket[i] : hasRoom(k) && held + WANTS(k) > OF(k))
#else
#ifdef READ_WRITE
#define ahead(k, i) (!fair(i) || (writes(k) && (!writes(i) || ticket[k] < ticket[i])))
#else
#define ahead(k, i) (!fair(i) || ticket[k] < ticket[i])
#endif
#endif
#ifdef GROUPS
#define hasRoom(i) (heldBy[group(i)] + WANTS(i) <= limit(group(i)))
#else
#define hasRoom(i) true
#endif
#define couldEnter(i) (st[i] == waiting && held + WANTS(i) <= OF(i) && hasRoom(i) && (fair(i) || atHead(i)))

/* Sets `stuck`: whether a caller waits although enough permits are free and no other caller is ahead of it. */
inline judge() {
  stuck = false; w = 0;
  do
  :: w < IDS && couldEnter(w) ->
     more = false; k = 0;
     do
     :: k < IDS -> more = more || (k != w && st[k] == waiting && fair(k) && ahead(k, w)); k++
     :: else -> break
     od;
     stuck = stuck || !more;
     w++
  :: w < IDS && !couldEnter(w) -> w++
  :: w == IDS -> break
  od
}

/* Called at the end of every step. */
inline tidy() {
  w = 0; x = 0;
  do
  :: w < IDS -> forget(w); x = x | ((st[w] == waiting && !fair(w)) << line(w)); w++
  :: else -> break
  od;
  unlocked = unlocked & x;
#ifdef GROUPS
  w = 0;
  do
  :: w < IDS -> past[w] = (stands(w) && entitled(w) -> past[w] : 0); w++
  :: else -> break
  od;
  if
  :: taken == 0 && !queued -> virtual = later(tag[0], tag[1])
  :: else
  fi;
#ifndef SAVED_UP
  /* Only the differences of tags matter, and a finish tag that has passed does not matter at all. */
  tag[0] = (tag[0] > virtual -> tag[0] - virtual : 0);
  tag[1] = (tag[1] > virtual -> tag[1] - virtual : 0);
  virtual = 0;
#endif
#endif
#ifdef PROGRESS
  judge();
#endif
  fate = plain; victim = NONE; job = none
}

/* ---- functions of lua/ ------------------------------------------------------------------------------------------ */

inline pass(i) {
  take(queue, i); printf("  redis: %d.%d is passed over\n", client(i), i % 2)
}

#ifdef GROUPS
#define COUNT(i) count(i)
#define SETTLE(i) settle(group(i))
#ifdef LAST_FIRST
#define BEFORE(n, h) (ticket[n] > ticket[h])
#else
#define BEFORE(n, h) (ticket[n] < ticket[h])
#endif
#ifdef OVER_LIMIT
#define ROOM(i) true
#else
#ifdef FULL_BLOCKS
#define ROOM(i) true
#else
#define ROOM(i) admits(i)
#endif
#endif

/* Counts a grant to `i`: in the tags of its group, and for the waiters of the other group that it passes. */
inline count(i) {
  overtaken = false; k = 0;
  do
  :: k < IDS && k != i && stands(k) && group(k) == group(i) ->
     overtaken = overtaken || ticket[i] == 0 || ticket[k] < ticket[i]; k++
  :: k < IDS && stands(k) && group(k) != group(i) && entitled(k) ->
     overtaken = overtaken || ticket[i] == 0 || past[k] > most(k) || (past[k] == most(k) && ticket[k] < ticket[i]);
     past[k] = past[k] + cost(i); k++
  :: k < IDS && !(k != i && stands(k) && (group(k) == group(i) || entitled(k))) -> k++
  :: k == IDS -> break
  od;
  assert(!overtaken); /* I3 */
  put(served, group(i));
  has[group(i)] = has[group(i)] + WANTS(i);
  tag[group(i)] = start(group(i)) + cost(i);
  virtual = later(virtual, tag[group(i)] - cost(i))
}

/* Decides anew which waiter of group `g` may be next. First it removes waiters that have expired. */
inline settle(g) {
  do
  :: h = NONE; n = 0;
     do
     :: n < IDS && in(queue & members(g), n) && (h == NONE || BEFORE(n, h)) -> h = n; n++
     :: n < IDS && !(in(queue & members(g), n) && (h == NONE || BEFORE(n, h))) -> n++
     :: n == IDS -> break
     od;
     if
     :: h != NONE && in(expired, h) -> pass(h)
     :: else -> break
     fi
  od;
  turns = (turns & ~members(g)) | ((h != NONE && ROOM(h)) << h)
}
#else
#define COUNT(i) skip
#define SETTLE(i) skip
#endif

inline grant(i) {
#ifndef GROUPS
  overtaken = false; k = 0;
  do
  :: k < IDS && k != i && stands(k) ->
#ifdef READ_WRITE
     overtaken = overtaken || !in(candidates, i) || (writes(k) && (writes(i) -> ticket[k] < ticket[i] : !ended)) ||
       (!writes(k) && writes(i) && in(waited, k));
     waited = waited | ((!writes(k) && writes(i)) << k);
#else
     overtaken = overtaken || ticket[i] == 0 || ticket[k] < ticket[i];
#endif
     k++
  :: k < IDS && !(k != i && stands(k)) -> k++
  :: k == IDS -> break
  od;
  assert(!overtaken); /* I3 */
#endif
  put(holds, i); take(lapsed, i);
#ifdef READ_WRITE
  ended = ended && !writes(i) && in(candidates, i);
#endif
  printf("  redis: %d.%d is a holder\n", client(i), i % 2)
}

/* Grants the lock to a caller that is not queued. */
inline let(i) {
  taken = taken + WANTS(i); COUNT(i); grant(i)
}

inline endHold(i) {
#ifdef READ_WRITE
  ended = ended || (writes(i) && !in(down, i));
#endif
  taken = taken - weight(i); take(holds, i); take(lapsed, i);
#ifdef GROUPS
  has[group(i)] = has[group(i)] - weight(i);
#ifndef ROOM_UNSEEN
  settle(group(i))
#endif
#endif
}

inline lapse() {
  w = 0;
  do
  :: w < IDS && in(lapsed, w) -> endHold(w); w++
  :: w < IDS && !in(lapsed, w) -> w++
  :: w == IDS -> break
  od
}

/* Gives `i` a ticket whose rank is larger than that of every ticket in use. */
inline draw(i) {
  w = 0; k = 0; ticket[i] = 0;
  do
  :: k < IDS && ticket[k] > w -> w = ticket[k]; k++
  :: k < IDS && ticket[k] <= w -> k++
  :: k == IDS -> break
  od;
  ticket[i] = w + 1
}

/* Puts `i` into the queue. A waiter that knows its ticket keeps this ticket. */
inline join(i) {
  if
  :: !in(queue, i) && !in(known, i) -> draw(i)
  :: else
  fi;
#ifdef READ_WRITE
  if
  :: !in(queue, i) || in(expired, i) -> waited = (waited & ~(1 << i)) | ((writing && !writes(i)) << i)
  :: else
  fi;
#endif
  put(queue, i); take(expired, i);
  queued = true;
  SETTLE(i)
}

/* Sets `w` to the id of `set` with the smallest ticket. */
inline firstOf(set) {
  w = NONE; k = 0;
  do
  :: k < IDS && in(set, k) && (w == NONE || ticket[k] < ticket[w]) -> w = k; k++
  :: k < IDS && !(in(set, k) && (w == NONE || ticket[k] < ticket[w])) -> k++
  :: k == IDS -> break
  od
}

/*
 * Whether the script's reply reports the grant of `i`, so that `i` needs no message. This is true of `asker` and, if
 * `mates` is set, of the other waiter in its line.
 */
#define told(i) (i == asker || (mates && asker != NONE && line(i) == line(asker)))
#define gone(i) (in(expired, i) || (in(deafs, client(i)) && !told(i)))

inline pick(i) {
  take(queue, i); taken = taken + WANTS(i); put(picked, i); COUNT(i)
}

#ifdef READ_WRITE
#ifdef READERS_PASS
#define READERS_TURN true
#else
#ifdef WRITERS_FIRST
#define READERS_TURN (w == NONE)
#else
#define READERS_TURN (w == NONE || turn)
#endif
#endif
#ifdef TURN_EARLY
#define ALL_IN (taken != 0)
#else
#define ALL_IN (taken != 0 && room > 0)
#endif
#ifdef ONE_READER
#define NO_MORE_READERS (picked != 0)
#else
#define NO_MORE_READERS false
#endif

inline choosePicked() {
  if
  :: writing -> turn = true
  :: else ->
     do
     :: firstOf(queue & WRITERS);
        if
        :: w != NONE && gone(w) && room > 0 -> room--; pass(w)
        :: else -> break
        fi
     od;
     x = w;
     if
     :: room > 0 && READERS_TURN ->
        do
        :: firstOf(queue & READERS);
           if
           :: w == NONE || room == 0 || NO_MORE_READERS -> break
           :: w != NONE && room > 0 && !NO_MORE_READERS && gone(w) -> room--; pass(w)
           :: else -> room--; pick(w)
           fi
        od;
        turn = turn && !ALL_IN
     :: else
     fi;
     if
     :: x != NONE && taken == 0 && room > 0 ->
        room--; pick(x);
#ifdef TURN_UNHEARD
        turn = true
#endif
     :: else
     fi
  fi
}
#else
#ifdef GROUPS
#ifdef OVER_PERMITS
#define FITS(i) true
#else
#ifdef FULL_BLOCKS
#define FITS(i) (fits(i) && admits(i))
#else
#define FITS(i) fits(i)
#endif
#endif

inline choosePicked() {
  do
  :: w = NONE; k = 0;
     do
     :: k < IDS && in(turns, k) && (w == NONE || sooner(k, w)) -> w = k; k++
     :: k < IDS && !(in(turns, k) && (w == NONE || sooner(k, w))) -> k++
     :: k == IDS -> break
     od;
     if
     :: w != NONE && room > 0 && gone(w) -> room--; pass(w)
     :: w != NONE && room > 0 && !gone(w) && FITS(w) -> room--; pick(w)
     :: else -> break
     fi;
     settle(group(w))
  od
}
#else
inline choosePicked() {
  x = 0;
  do
  :: firstOf(queue & ~x);
     if
     :: w != NONE && room > 0 && gone(w) -> room--; pass(w)
     :: w != NONE && room > 0 && !gone(w) && fits(w) -> room--; pick(w)
#ifdef PASS_LARGE
     :: w != NONE && room > 0 && !gone(w) && !fits(w) -> put(x, w)
#endif
     :: else -> break
     fi
  od
}
#endif
#endif

/* Sends one message to the picked waiters of client `c` that need one. Either all of them are granted, or none. */
inline address() {
  w = c * 2; ids = 0;
  do
  :: w < c * 2 + 2 && in(picked, w) && !told(w) -> put(ids, w); w++
  :: w < c * 2 + 2 && !(in(picked, w) && !told(w)) -> w++
  :: w == c * 2 + 2 -> break
  od;
  deaf = ids != 0 && (in(crashed, c) -> fate != counted : fate == cut && victim == c);
  if
  :: deaf -> put(deafs, c); cuts = cuts - !in(crashed, c); more = true; printf("  redis: nobody hears client %d\n", c)
  :: !deaf && ids != 0 && fate == lost && victim == c ->
     losses--; fate = plain; printf("  lost: the message of grants to client %d\n", c)
  :: !deaf && ids != 0 && !(fate == lost && victim == c) && !in(crashed, c) -> inbox = inbox | ids
  :: else
  fi
}

#ifdef READ_WRITE
#define BEGIN_TURN(i) turn = turn || in(WRITERS, i)
#else
#define BEGIN_TURN(i) skip
#endif

#ifdef GROUPS
/* Takes back what `count` has counted. */
#define UNDO(i) undo(i)

inline undo(i) {
  has[group(i)] = has[group(i)] - WANTS(i); tag[group(i)] = tag[group(i)] - cost(i); k = 0;
  do
  :: k < IDS && group(k) != group(i) && past[k] >= cost(i) -> past[k] = past[k] - cost(i); k++
  :: k < IDS && !(group(k) != group(i) && past[k] >= cost(i)) -> k++
  :: k == IDS -> break
  od;
  settle(group(i))
}
#else
#define UNDO(i) skip
#endif

inline deliver() {
  c = 0;
  do
  :: c < CLIENTS && (picked & of(c)) != 0 ->
     address();
     w = c * 2;
     do
     :: w < c * 2 + 2 && in(picked, w) && deaf && in(ids, w) ->
#ifndef KEEP_SUM
        taken = taken - WANTS(w);
#endif
        UNDO(w);
        w++
     :: w < c * 2 + 2 && in(picked, w) && !(deaf && in(ids, w)) -> grant(w); BEGIN_TURN(w); put(admitted, w); w++
     :: w < c * 2 + 2 && !in(picked, w) -> w++
     :: w == c * 2 + 2 -> break
     od;
     c++
  :: c < CLIENTS && (picked & of(c)) == 0 -> c++
  :: c == CLIENTS -> break
  od
}

#ifdef ONE_LINE
#define OWN_LINES(i) (1 << line(i))
#else
#define OWN_LINES(i) of(client(i))
#endif

/*
 * Wakes the lines that have subscribed to the message that the lock may be free. The lines of the client that has
 * released the lock do not need this message: the reply to the release wakes them.
 */
inline tellFree() {
  x = hears & ~(by == NONE -> 0 : of(client(by)));
  if
  :: fate == lost && (x & of(victim)) != 0 ->
     x = x & ~of(victim); losses--; fate = plain; printf("  lost: the news for client %d\n", victim)
  :: else
  fi;
  unlocked = unlocked | x | (by == NONE || dead(by) -> 0 : OWN_LINES(by));
  printf("  redis: free\n")
}

/*
 * Admits waiters. `admitted` is then the set of these waiters. `unfinished` is true if another call has to continue the
 * admission.
 */
inline admit() {
  admitted = 0; deafs = 0; room = LIMIT; more = queued; candidates = queue;
  do
  :: more ->
     more = false; picked = 0;
     choosePicked();
     deliver();
     if
     :: queue == 0 -> queued = false; more = false
     :: queue != 0 && room == 0 -> more = false
     :: else
     fi
  :: else -> break
  od;
  unfinished = (room == 0); candidates = 0;
#ifdef READ_WRITE
  if
  :: !unfinished ->
     behind = false; w = 0;
     do
     :: w < IDS -> behind = behind || (!writing && stands(w) && in(waited, w)); w++
     :: else -> break
     od;
     assert(!behind); /* I4 */
     if
     :: taken != 0 -> ended = false
     :: else
     fi
  :: else
  fi;
#endif
  if
  :: !queued -> tellFree()
  :: else
  fi
}

/* ---- scripts of lua/permits/ ------------------------------------------------------------------------------------- */

/* If the reply to a heartbeat would change nothing for the waiter, the model leaves out its arrival. */
inline answer(i) {
  if
  :: in(holds, i) && !in(lapsed, i) -> ask[i] = granted
  :: !(in(holds, i) && !in(lapsed, i)) && st[i] == waiting && in(known, i) -> ask[i] = nothing
  :: else -> ask[i] = refused
  fi
}

/* Whether `i` may be granted the lock before any waiter: passes only those of full groups. */
#ifdef GROUPS
#define open(i) (fits(i) && admits(i) && turns == 0 && (queue & members(group(i))) == 0)
#else
#define open(i) (!queued && fits(i))
#endif

/* If the admission is unfinished, the client calls acquire again. */
inline acquire(i) {
  printf("redis: acquire of %d.%d\n", client(i), i % 2);
  asker = i; mates = false; by = NONE; unfinished = false;
  if
  :: !in(holds, i) && open(i) -> let(i)
  :: else ->
     lapse();
     if
     :: !in(holds, i) && fair(i) && !open(i) -> join(i)
     :: else
     fi;
     if
     :: queued -> admit()
     :: else
     fi;
     if
     :: !in(holds, i) && !unfinished && open(i) -> let(i)
     :: else
     fi
  fi;
  if
  :: unfinished && !in(holds, i) -> ask[i] = sent
  :: else -> answer(i)
  fi
}

inline tend(i) {
  printf("redis: tend of %d.%d\n", client(i), i % 2);
  asker = i; mates = true; by = NONE;
  lapse();
  if
  :: !in(holds, i) -> join(i)
  :: else
  fi;
  admit();
  if
  :: unfinished -> ask[i] = sent
  :: else -> answer(i)
  fi
}

/* Ends a hold. If the hold existed and there is a queue, `finish` then runs `vacate`. */
inline release(i) {
  printf("redis: release of %d.%d\n", client(i), i % 2);
  take(releases, i); asker = i; mates = true; by = i; vacates = in(holds, i) && queued;
  if
  :: in(holds, i) ->
     endHold(i);
     if
#ifdef READ_WRITE
     :: !queued && taken == 0 -> tellFree()
#else
     :: !queued -> tellFree()
#endif
     :: else
     fi
  :: else
  fi
}

/*
 * Ends the wait of an id, which Redis may have granted the lock by then. The lines of its client are always woken,
 * because permits may be free now. If the id had the lock or was queued, `finish` then runs `vacate`.
 */
inline leave(i) {
  printf("redis: leave of %d.%d\n", client(i), i % 2);
  take(leaves, i); asker = NONE; mates = false; by = NONE; vacates = in(holds, i);
#ifndef LEAVE_HEAD
  vacates = vacates || in(queue, i);
#endif
  take(queue, i); SETTLE(i);
  if
  :: in(holds, i) -> endHold(i)
  :: else
  fi;
  unlocked = unlocked | (dead(i) -> 0 : of(client(i)))
}

/* Continues an unfinished admission, by setting `vacates`: it makes `finish` run `vacate`. */
inline sweep(i) {
  printf("redis: sweep by client %d\n", client(i));
  take(sweeps, i); asker = NONE; mates = false; by = NONE; vacates = true
}

#ifdef READ_WRITE
/* A writer also acquires the read lock. This is always granted, so the request and its reply are one step. */
inline enter(i) {
  printf("redis: %d.%d reads as well\n", client(i), i % 2);
  downgrades--; taken++; put(both, i);
#ifdef REENTRY_TURN
  turn = false
#endif
}

/* A writer that also has the read lock releases the write lock. If there is a queue, `finish` then runs `vacate`. */
inline downgrade(i) {
  printf("redis: %d.%d ends the write\n", client(i), i % 2);
  asker = i; mates = true; by = i; vacates = queued;
  taken = taken - ALL; take(both, i); put(down, i); held = held - ALL + 1; ended = true;
  if
  :: !queued -> tellFree()
  :: else
  fi
}
#endif

/*
 * `vacate` in lua/permits.lua: admits the next waiters. If waiters of the releasing client are admitted, the reply to the
 * release reports these grants. In this model, a grant message stands for that reply.
 */
inline vacate(i) {
  lapse(); admit();
  w = 0;
  do
  :: w < IDS -> inbox = inbox | ((in(admitted, w) && told(w) && !dead(w)) << w); w++
  :: else -> break
  od;
  if
  :: unfinished -> put(sweeps, i)
  :: else
  fi
}

#define LIVES(c) (!in(crashed, c) && (queue & of(c)) != 0)

/* Chooses the fault of the script that runs next. */
inline choose() {
  if
  :: true
  :: losses > 0 -> fate = lost; victim = 0
  :: losses > 0 -> fate = lost; victim = 1
  :: losses > 0 -> fate = lost; victim = 2
  :: cuts > 0 && LIVES(0) -> fate = cut; victim = 0
  :: cuts > 0 && LIVES(1) -> fate = cut; victim = 1
  :: cuts > 0 && LIVES(2) -> fate = cut; victim = 2
  :: crashed != 0 && queue != 0 -> fate = counted
  fi
}

/* Runs a look of a waiter: `tend` if the waiter is fair and knows its ticket, otherwise `acquire`. */
inline request(i) {
  if
  :: ask[i] == nothing -> take(unlocked, line(i))
  :: else
  fi;
  if
  :: fair(i) && in(known, i) -> tend(i)
  :: else -> acquire(i)
  fi;
  if
  :: dead(i) && ask[i] != sent -> ask[i] = nothing
  :: else
  fi;
  tidy()
}

/* Runs the script that `job` names. Each of these scripts ends a hold or a wait, or continues an admission. */
inline finish(i) {
  if
  :: job == releasing -> release(i)
  :: job == leaving -> leave(i)
  :: job == sweeping -> sweep(i)
#ifdef READ_WRITE
  :: job == downgrading -> downgrade(i)
#endif
  fi;
  if
  :: vacates -> vacate(i)
  :: else
  fi;
  tidy()
}

/* ---- steps of the clients, as in src/key/ ---------------------------------------------------------------------- */

/* Begins a call. A fair caller asks Redis at once. An unfair caller asks only if it is the head of its line. */
inline begin(i) {
  become(i, waiting);
  if
  :: fair(i) || atHead(i) -> ask[i] = sent
  :: else
  fi
}

/* Begins the second caller's call. Its request is sent after the first caller's release. */
inline next(i) {
  if
  :: !second(i) && exists(other(i)) && st[other(i)] == idle -> begin(other(i))
  :: else
  fi
}

#ifdef MERGE
#define GOES_ON(i) (!in(hears, line(i)))
#else
#define GOES_ON(i) true
#endif

/*
 * A waiter that still waits receives the reply to its look. If the waiter is granted the lock, there may be enough
 * permits for the next caller in the line, too. So that caller is woken.
 */
inline receive(i) {
  if
  :: ask[i] == granted ->
     ask[i] = nothing; become(i, holding);
     unlocked = unlocked | ((!fair(i) && GOES_ON(i)) << line(i))
  :: else ->
     put(known, i);
     if
     /* After its first refusal, an unfair waiter subscribes to the unlock channel and tries once more. */
     :: !fair(i) && !in(hears, line(i)) -> put(hears, line(i)); ask[i] = sent
     :: else -> ask[i] = nothing
     fi
  fi;
  tidy()
}

/*
 * A client receives the reply to a look although the waiter no longer waits. It may send `leave`, to give up the grant
 * or the place in the queue that the reply reports.
 */
inline strayReply(i) {
  if
  :: st[i] != holding -> put(leaves, i)
  :: else
  fi;
  unlocked = unlocked | ((!fair(i) && ask[i] == granted) << line(i));
  ask[i] = nothing; tidy()
}

inline hear(i) {
  take(inbox, i);
  printf("client %d hears that %d.%d is granted\n", client(i), client(i), i % 2);
  if
  :: st[i] == waiting -> become(i, holding)
  :: st[i] == over -> put(leaves, i)
  :: else
  fi;
  tidy()
}

inline giveUp(i) {
  quits--; printf("client %d gives up caller %d\n", client(i), i % 2);
  if
  :: fair(i) || ask[i] != nothing -> put(leaves, i)
  :: else
  fi;
  become(i, over); next(i); tidy()
}

/* Ends a client for good. `stays`: whether the client's requests have reached the server, and so will run. */
inline crash(i, stays) {
  crashes--; put(crashed, client(i)); hears = hears & ~of(client(i)); unlocked = unlocked & ~of(client(i));
  printf("client %d crashes\n", client(i));
  x = client(i) * 2;
  do
  :: x < client(i) * 2 + 2 ->
     if
     :: st[x] != over -> become(x, over)
     :: else
     fi;
     take(inbox, x); take(kept, x);
     if
     :: ask[x] == sent && stays
     :: else -> ask[x] = nothing
     fi;
     if
     :: stays
     :: else -> take(releases, x); take(leaves, x); take(sweeps, x)
     fi;
     x++
  :: else -> break
  od;
  tidy()
}

/*
 * MATTERS(i): whether a look would change anything now. To check this definition, run each
 * configuration without PROGRESS, once with EVERY_LOOK and once without it. Both runs must have the same number of
 * states.
 */
#ifdef READ_WRITE
#define due(i) (!writing && (firstIn(queue & WRITERS, i) && (in(expired, i) || taken == 0) || \
  in(queue & READERS, i) && (turn || (queue & WRITERS) == 0)))
#else
#ifdef GROUPS
#define beaten(k, i) (in(turns, k) && k != i && sooner(k, i))
#define due(i) (in(turns, i) && (in(expired, i) || fits(i) && !(beaten(0, i) || beaten(1, i) || beaten(2, i) || \
  beaten(3, i) || beaten(4, i) || beaten(5, i))))
#else
#define due(i) (firstIn(queue, i) && (in(expired, i) || fits(i)))
#endif
#endif
#ifdef READ_WRITE
#define TURN_DUE (queued && taken != 0 && turn != writing)
#else
#define TURN_DUE false
#endif
#define DUE (lapsed != 0 || TURN_DUE || due(0) || due(1) || due(2) || due(3) || due(4) || due(5))
#ifdef EVERY_LOOK
#define MATTERS(i) TIMER
#else
#define MATTERS(i) (TIMER && (in(holds, i) || DUE || (fair(i) -> !in(queue, i) || in(expired, i) : !queued && fits(i))))
#endif
/* Whether the head of a line makes an attempt now. A line has at most one attempt under way. */
#define TRIES(i) (atHead(i) && (line(other(i)) != line(i) || ask[other(i)] == nothing) && (in(unlocked, line(i)) || MATTERS(i)))
/* Whether a waiter looks now: for the first time, by the slow timer, or after a wake-up. */
#define ASKS(i) (st[i] == waiting && (ask[i] == sent && (paired(i) || !second(i) || !in(releases, other(i))) || \
  ask[i] == nothing && (fair(i) -> MATTERS(i) : TRIES(i))))
#define STRAY(i) (st[i] != waiting && ask[i] != nothing)
#define BUSY(i) (st[i] == waiting || st[i] == holding)
/*
 * Whether a client may crash. A crash concerns the whole client, so only the process of its first caller has this step.
 */
#define ENDS(i) (crashes > 0 && !second(i) && !dead(i) && (BUSY(i) || BUSY(other(i))))
#define HOLDS(i) (st[i] == holding && !in(kept, i))
/* The requests of one caller run in the order in which they were sent. */
#define RELEASES(i) (in(releases, i) && ask[i] != sent)
#define LEAVES(i) (in(leaves, i) && ask[i] != sent)
#define LAPSES_NOW(i) (in(holds, i) && !in(lapsed, i) && st[i] != holding && (dead(i) || in(overdue, i)))
#define EXPIRES(i) (in(queue, i) && !in(expired, i) && (dead(i) || (cuts > 0 && st[i] == waiting)))

proctype Caller(byte i) {
end:
  do
  :: atomic { ASKS(i) || (STRAY(i) && ask[i] == sent) -> choose(); d_step { request(i) } }
  :: atomic {
       if
       :: RELEASES(i) -> job = releasing
       :: LEAVES(i) -> job = leaving
       :: in(sweeps, i) -> job = sweeping
#ifdef READ_WRITE
       :: HOLDS(i) && in(both, i) -> job = downgrading
#endif
       fi;
       choose(); d_step { finish(i) } }
  :: d_step { st[i] == waiting && ask[i] != nothing && ask[i] != sent -> receive(i) }
  :: d_step { st[i] == waiting && quits > 0 -> giveUp(i) }
  :: d_step { HOLDS(i) -> become(i, over); put(releases, i); next(i); tidy() }
  :: d_step { HOLDS(i) && keeps > 0 -> keeps--; put(kept, i); next(i); tidy() }
  :: d_step { HOLDS(i) && lates > 0 -> lates--; become(i, over); put(overdue, i); next(i); tidy() }
#ifdef READ_WRITE
  :: d_step { HOLDS(i) && downgrades > 0 && writes(i) && !in(both | down, i) -> enter(i); tidy() }
#endif
  :: d_step { ENDS(i) -> crash(i, true) }
  :: d_step { ENDS(i) -> crash(i, false) }
  /* Steps of the network, and of time. */
  :: d_step { STRAY(i) && ask[i] != sent -> strayReply(i) }
  :: d_step { in(inbox, i) -> hear(i) }
  :: d_step { LAPSES_NOW(i) -> put(lapsed, i); printf("redis: the lease of %d.%d lapses\n", client(i), i % 2); tidy() }
  :: d_step { EXPIRES(i) -> cuts = cuts - !dead(i); put(expired, i); printf("redis: %d.%d expires\n", client(i), i % 2); tidy() }
  od
}

#define COMES(i) (!second(i) || paired(i) || !exists(other(i)))

init {
  byte i;
  atomic {
    do
    :: i < IDS && exists(i) -> d_step { st[i] = idle }; i++
    :: i < IDS && !exists(i) -> i++
    :: i == IDS -> i = 0; break
    od;
    do
    :: i < IDS && exists(i) && COMES(i) -> d_step { begin(i) }; run Caller(i); i++
    :: i < IDS && exists(i) && !COMES(i) -> run Caller(i); i++
    :: i < IDS && !exists(i) -> i++
    :: i == IDS -> i = 0; break
    od
  }
}

#ifdef PROGRESS
ltl progress { []<> !stuck } /* I4 */
#endif
