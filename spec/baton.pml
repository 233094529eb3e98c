/*
 * The protocol of redis-baton, as a model for the checker Spin. `npm run model` checks it; docs/model.md says what the
 * check shows.
 *
 * There is one lock, and each client takes it in several rounds. Some clients are fair (they queue). The others try
 * again when they hear that the lock is free. The checker follows every possible order of the steps below, and every
 * combination of faults.
 *
 *      Client(c)                    Network                                  Redis
 *      ─────────                    ───────                                  ─────
 *      asks, holds, releases,       delivers releases, leaves and messages;  its state: `hold` to `blank` below;
 *      gives up, crashes            delivers replies to ended waits          an `inline` for each script
 *
 * Redis runs each script atomically, so each script is one step (d_step):
 *
 *      lua/mutex/acquire.lua          acquire       lua/holder.lua   promote
 *      lua/mutex/release.lua          release                        openLock: open
 *      lua/mutex/tend.lua             tend                           makeHolder: grant
 *      lua/mutex/leave.lua            leave         lua/lock.lua     enqueue: join
 *      lua/mutex/force-release.lua    open, called  lua/holder.lua   drop: in release and leave
 *                               by Network
 *      lua/mutex/renew.lua            left out: a renewed hold is one that does not lapse
 *      lua/mutex/pass.lua             left out: it gives the hold to another waiter of the same client (docs/model.md)
 *      lua/mutex/inspect.lua          left out: it writes nothing
 *      lua/mutex/sweep.lua            left out: between two calls of a long promote, the lock is free and has a queue,
 *                               as after a lapse, and the next request continues
 *
 * A request and its reply are two steps. So a message may overtake a reply, and a waiter may get the lock while its
 * `leave` is under way. The requests of one client run in the order in which they were sent. With REPEATS, a request
 * may also run once more, at any later time, as if it had been sent again after a lost reply.
 *
 * A look is a request by which a waiter asks Redis for its state: `acquire` or `tend`. A fair waiter's first look is
 * `acquire`, and its other looks are `tend`. All looks of an unfair waiter are `acquire`.
 *
 * An id (0 … IDS-1) is one round of one client: it names first the waiter and then the hold, as in lua/. The model
 * needs only the order of tickets, so a ticket is a rank. The model has no fencing tokens. redis-baton uses them to see
 * whether a grant message is older than the waiter's last look; in the model, `inbox` records that age directly.
 *
 * TIME is not counted. Instead, a lease has a step "lapse". The one rule of time on which clients rely is built in: a
 * client's own deadline is earlier than the server's. So
 *   - a hold lapses only while its client does not count itself as the holder: the client has lost or ended the hold,
 *     or has not received the grant yet;
 *   - after a lapse, a look that was sent before no longer proves a grant (`doubt`): a client counts a lease from the
 *     time when it sent the look (src/clock.ts), so by then it counts that lease as over;
 *   - a reply that was under way when its grant lapsed arrives too late to be used (`late`): its client asks again.
 * The tests of src/clock.ts, not this model, show that it keeps this rule.
 * A live client that is not paused renews its holds, so they do not lapse, unless LAPSES allows it. Progress (I4) is
 * checked with LAPSES 0. So the check of I4 means: no waiter ever has to wait for the end of a healthy client's lease.
 *
 * Each kind of fault has a number that bounds it:
 *   LOSSES    nobody receives the messages of a script
 *   CUTS      promote passes over a live waiter, because its inbox had no subscriber or its expiry had passed
 *   CRASHES   a client ends for good, and the lease of its hold lapses. Its requests under way either still run or are
 *             lost. If its inbox still has a subscriber, its waiter may still get the lock
 *   QUITS     a waiter gives up
 *   LATES     a holder is paused, or cannot renew: its local deadline passes
 *   LAPSES    the lease of a live client's hold lapses while its client does not count itself as the holder
 *   REPEATS   a request runs once more
 *   WIPES     the queue is lost; with WIPE_ALL, all data in Redis is lost
 *   FORCES    force-release
 *
 * Properties:
 *   I1  become(): there are never two clients that count themselves as holders. UNGUARDED switches this check off where
 *       redis-baton does not promise I1: after a loss of all data, and after a force-release until its message arrives
 *   I3  grant(): no grant passes over a live queued waiter with a smaller ticket, and no grant to a client that is not
 *       queued passes over any live queued waiter
 *   I4  ltl progress: a state in which no client holds and a client waits never lasts. Rounds are bounded and holders
 *       release, so every wait of a live client ends. No fairness is assumed. Looks that change nothing could be
 *       repeated for ever, so MATTERS omits them. All other steps are bounded, so each run ends
 *
 * Each mutant removes one rule: NO_TIMER, NO_HANDBACK, PUBLISH_FIRST, UNOWNED_RELEASE, BELIEVE_OLD, BELIEVE_LATE,
 * IGNORE_REPLY, IGNORE_REFUSAL, BARGE, NEW_TICKET. scripts/models.ts says what each of them breaks.
 */

#ifndef FAIR
#define FAIR 3 /* a set of clients: 0 and 1 are fair, 2 is unfair */
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
#ifndef LAPSES
#define LAPSES 0
#endif
#ifndef REPEATS
#define REPEATS 0
#endif
#ifndef WIPES
#define WIPES 0
#endif
#ifndef FORCES
#define FORCES 0
#endif

#define CLIENTS 3
#define ROUNDS 2
#define IDS 6 /* CLIENTS * ROUNDS */
#define NONE IDS

/* A set of ids or of clients is a byte, with one bit for each member. */
#define in(set, i) (((set) >> (i)) & 1)
#define put(set, i) set = (set) | (1 << (i))
#define take(set, i) set = (set) & ~(1 << (i))

#define client(i) ((i) / ROUNDS)
#define first(c) ((c) * ROUNDS)
#define last(c) ((c) * ROUNDS + ROUNDS - 1)
#define fair(i) in(FAIR, client(i))
#define dead(i) in(crashed, client(i))
#define free (hold == NONE || lapsed)

#ifdef NO_TIMER
#define TIMER false
#else
#define TIMER true
#endif
#ifdef BELIEVE_OLD
#define NEWER(i) true
#else
#define NEWER(i) (inbox[i] < OLD)
#endif
#ifdef BELIEVE_LATE
#define IN_TIME(i) true
#else
#define IN_TIME(i) (!in(doubt, i))
#endif
#ifdef IGNORE_REPLY
#define GIVEN_UP quit
#define TAKEN_BACK(i) (st[i] == quit)
#else
#ifdef IGNORE_REFUSAL
#define GIVEN_UP quit
#define TAKEN_BACK(i) (st[i] == quit || ask[i] == granted || ask[i] == late)
#else
#define GIVEN_UP over
#define TAKEN_BACK(i) true
#endif
#endif
#if REPEATS
#define IN_ORDER(i) true
#else
#define IN_ORDER(i) (ask[i] != sent)
#endif

mtype = { idle, waiting, holding, over, quit };
mtype = { nothing, sent, refused, stale, granted, late };
mtype = { plain, lost, cut, counted };

/* ---- the state of Redis ------------------------------------------------------------------------------------------ */

byte hold = NONE;      /* the field `holder`, as the id of the hold; NONE: the field is absent */
bool lapsed;           /* the lease has lapsed; `hold` is still set */
bool queued;           /* the field `queued` is set */
byte queue;            /* the ids in the queue */
byte ticket[IDS];      /* the rank of each id's ticket, from 1; kept while a client or Redis knows the ticket */
bool blank = true;     /* the hash is new, or was lost; its field `clock` is then 0 */
#ifdef NEW_TICKET
byte score[IDS];       /* the ranks of the ids in the queue; in the mutant NEW_TICKET, each join gives a new rank */
byte scores;
#define SCORE(i) scores++; score[i] = scores
#else
#define score ticket
#define SCORE(i) skip
#endif
#ifdef PUBLISH_FIRST
byte unwritten;        /* grants that are published but not written yet */
#endif

/* ---- the state of the clients ------------------------------------------------------------------------------------ */

/*
 * The state of each round. idle: the round has not begun. waiting: the client waits, in any of the waiting states of
 * src/key/waiter.ts. quit: the client has given up; to all but some mutants, this is the same as the state `over`.
 */
mtype st[IDS] = idle;
/*
 * The present look of each id. sent: Redis has not run it yet. granted, refused: this reply is under way. If the lease
 * lapses while the reply is under way, the reply proves nothing any more: `granted` becomes late, `refused` becomes
 * stale.
 */
mtype ask[IDS] = nothing;
byte known;                   /* waiters that know their ticket; if such a waiter is fair, its looks are `tend` */
byte doubt;                   /* waiters that believe no grant message, because a grant of theirs has lapsed */
byte unsure;                  /* waiters that look again as soon as the reply to their present look has arrived */
byte overdue;                 /* holds whose local deadline has passed */
byte hears;                   /* clients that are subscribed to the unlock channel */
byte crashed;

/* ---- what is under way between clients and Redis ----------------------------------------------------------------- */

#define NEW 1          /* a grant message; Redis has run no look of the waiter since the grant */
#define MID 2          /* a grant message; since the grant, a look was refused, and the refusal is under way */
#define OLD 4          /* a grant message; since the grant, a look was refused, and the refusal has arrived */
byte inbox[IDS];       /* the grant messages under way to each waiter: NEW, MID and OLD ones */
byte unlocked;         /* clients to which a message "the lock is free" is under way */
byte releases;
byte leaves;

/* ---- faults that may still happen, and what is chosen for the next script ---------------------------------------- */

byte losses = LOSSES, cuts = CUTS, crashes = CRASHES, quits = QUITS, lates = LATES, lapses = LAPSES, repeats = REPEATS,
  wipes = WIPES, forces = FORCES;
/*
 * The fault of the next script. lost: its messages are lost. cut: the script passes over a live waiter. counted: a dead
 * client's inbox still has a subscriber, so its waiter may be granted the lock.
 */
mtype fate = plain;
bool again;            /* the request of the next script stays under way, and will run once more */

/* ---- variables for the properties -------------------------------------------------------------------------------- */

byte holders, waiters;

/* These variables are used only within one step. */
hidden byte w, k, won, asker, mates, told, heard;

inline become(i, state) {
  holders = holders - (st[i] == holding) + (state == holding);
  waiters = waiters - (st[i] == waiting) + (state == waiting);
  st[i] = state;
  printf("client %d, round %d: %e\n", client(i), i % ROUNDS, state);
#ifndef UNGUARDED
  assert(holders <= 1) /* I1 */
#endif
}

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
     take(known, i); take(doubt, i); take(unsure, i);
     if
     :: !in(queue, i) && ticket[i] != 0 -> strike(i)
     :: else
     fi;
     if
     :: hold != i && st[i] != holding -> take(overdue, i)
     :: else
     fi;
     if
     :: hold != i && st[i] == quit && inbox[i] == 0 && ask[i] == nothing -> st[i] = over
     :: else
     fi
  :: else
  fi
}

/* Called at the end of every step. */
inline tidy() {
  w = 0;
  do
  :: w < IDS -> forget(w); w++
  :: else -> break
  od;
  fate = plain; again = false
}

/* ---- functions of lua/ ------------------------------------------------------------------------------------------ */

inline grant(i) {
  k = 0;
  do
  :: k < IDS ->
     /* I3 */
     assert(!(k != i && in(queue, k) && st[k] == waiting && (ticket[i] == 0 || ticket[k] < ticket[i])));
     k++
  :: else -> break
  od;
  hold = i; lapsed = false; blank = false;
  printf("  redis: %d.%d is the holder\n", client(i), i % ROUNDS)
}

/* Sets `w` to the first waiter of the queue. */
inline firstOf() {
  w = NONE; k = 0;
  do
  :: k < IDS && in(queue, k) && (w == NONE || score[k] < score[w]) -> w = k; k++
  :: k < IDS && !(in(queue, k) && (w == NONE || score[k] < score[w])) -> k++
  :: k == IDS -> break
  od
}

/*
 * Makes the first waiter of the queue the holder, and sets `won` to its id. A dead client's waiter is passed over and
 * leaves the queue, unless the client's inbox still has a subscriber. With the fault `cut`, one waiter of a live client
 * is passed over, too. If that waiter has not given up, this uses up one of CUTS. The waiter whose request runs
 * (`asker`) gets no message. If `mates` is set, the other waiters of its client get none either. PUBLISH comes before
 * the write, as in promote.lua, but no other step sees the state between the two.
 */
inline promote() {
  won = NONE;
  do
  :: won != NONE -> break
  :: won == NONE && queue == 0 -> queued = false; break
  :: won == NONE && queue != 0 ->
     firstOf();
     take(queue, w);
     told = (w == asker || (mates && client(w) == client(asker)));
     heard = true;
     if
     :: w != asker && dead(w) -> heard = (fate == counted)
     :: w != asker && !dead(w) && fate == cut ->
        heard = false; fate = plain; cuts = cuts - (st[w] == waiting)
     :: else
     fi;
     if
     :: heard ->
        won = w;
        if
        :: !told && !dead(w) && fate == lost ->
           losses--; fate = plain; printf("  lost: the grant message to %d.%d\n", client(w), w % ROUNDS)
        :: !told && !dead(w) && fate != lost -> inbox[w] = inbox[w] | NEW
        :: else
        fi;
#ifdef PUBLISH_FIRST
        if
        :: told -> grant(w)
        :: else -> put(unwritten, w); hold = NONE; lapsed = false
        fi
#else
        grant(w)
#endif
     :: else -> printf("  redis: %d.%d is passed over\n", client(w), w % ROUNDS)
     fi
  od
}

inline open() {
  won = NONE;
  if
  :: queued -> promote()
  :: else
  fi;
  if
  :: won == NONE ->
     hold = NONE; lapsed = false;
     printf("  redis: free\n");
     if
     :: fate == lost -> losses--; printf("  lost: the news of it\n")
     :: else -> unlocked = unlocked | hears
     fi
  :: else
  fi
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
  :: in(queue, i)
  :: !in(queue, i) && !in(known, i) -> draw(i); put(queue, i); SCORE(i)
  :: !in(queue, i) && in(known, i) -> put(queue, i); SCORE(i)
  fi;
  queued = true; blank = false
}

/* ---- scripts of lua/mutex/ --------------------------------------------------------------------------------------- */

/*
 * Whether the waiter learns something from a refusal. If grant messages are under way to the waiter, it learns that
 * they are older than the refusal. If the waiter believes no grant message, it learns that it may believe later ones.
 */
#define TELLS(i) (in(doubt, i) || (inbox[i] & (NEW | MID)))

/*
 * Makes the reply to a look of the waiter `i`. If the reply is a refusal, all grant messages that are
 * under way to this waiter are about grants before this request.
 */
inline answer(i) {
  if
  :: hold == i && !lapsed -> ask[i] = granted
  /* This reply to a heartbeat would change nothing for the waiter. So the model leaves out its arrival. */
  :: !(hold == i && !lapsed) && st[i] == waiting && in(known, i) && !TELLS(i) && !in(unsure, i) -> ask[i] = nothing
  :: else ->
     ask[i] = refused;
     if
     :: inbox[i] & NEW -> inbox[i] = (inbox[i] | MID) & ~NEW
     :: else
     fi
  fi
}

inline acquire(i) {
  printf("redis: acquire of %d.%d\n", client(i), i % ROUNDS);
  asker = i; mates = false;
  if
  :: hold == i && !lapsed
  :: else ->
     if
     :: blank && queue != 0 -> queued = true
     :: else
     fi;
     if
#ifdef BARGE
     :: free && (!queued || !fair(i)) -> grant(i)
#else
     :: free && !queued -> grant(i)
#endif
     :: else ->
        if
        :: fair(i) -> join(i)
        :: else
        fi;
        if
        :: free ->
           promote();
           if
           :: won == NONE -> grant(i)
           :: else
           fi
        :: else
        fi
     fi
  fi;
  answer(i)
}

inline tend(i) {
  printf("redis: tend of %d.%d\n", client(i), i % ROUNDS);
  asker = i; mates = true;
  if
  :: hold != i || lapsed -> join(i)
  :: else
  fi;
  if
  :: queued && free -> promote()
  :: else
  fi;
  answer(i)
}

/*
 * If the next holder is a waiter of the same client, the reply to the release reports the grant. In this model, a grant
 * message stands for that reply.
 */
inline release(i) {
  printf("redis: release of %d.%d\n", client(i), i % ROUNDS);
  asker = i; mates = true;
#ifdef UNOWNED_RELEASE
  if
  :: hold != NONE ->
#else
  if
  :: hold == i ->
#endif
     open();
     if
     :: won != NONE && client(won) == client(i) && !dead(i) -> inbox[won] = inbox[won] | NEW
     :: else
     fi
  :: else
  fi
}

inline leave(i) {
  printf("redis: leave of %d.%d\n", client(i), i % ROUNDS);
  asker = NONE; mates = false;
  take(queue, i);
#ifndef NO_HANDBACK
  if
  :: hold == i -> open()
  :: else
  fi
#endif
}

/* Chooses the fault of the script that runs next. */
inline choose() {
  if
  :: true
  :: losses > 0 -> fate = lost
  :: cuts > 0 && queue != 0 -> fate = cut
  :: crashed != 0 && queue != 0 -> fate = counted
  :: repeats > 0 -> repeats--; again = true
  fi
}

/* Runs a look of a waiter: `tend` if the waiter is fair and knows its ticket, otherwise `acquire`. */
inline request(i) {
  if
  :: ask[i] == nothing -> take(unlocked, client(i))
  :: else
  fi;
  if
  :: fair(i) && in(known, i) -> tend(i)
  :: else -> acquire(i)
  fi;
  if
  :: again -> ask[i] = sent
  :: !again && dead(i) -> ask[i] = nothing
  :: else
  fi;
  tidy()
}

/* ---- steps of the clients, as in src/wait/, src/lease/ ----------------------------------------------------------- */

/* Begins the next round. Its request is sent after the release of the previous round. */
inline next() {
  if
  :: i < last(c) -> i++; become(i, waiting); ask[i] = sent
  :: else
  fi
}

/*
 * The waiter has received a grant that may have lapsed. So it looks at once, without waiting for its heartbeat. If a
 * look is under way already, Redis may have run it before the grant. So the waiter looks again after that look (`told`
 * in src/key/waiter.ts, `#again` in src/key/key.ts).
 */
inline lookFirst(i) {
  if
  :: ask[i] == nothing -> ask[i] = sent
  :: else -> put(unsure, i)
  fi
}

/* A waiter that still waits receives the reply to its look. */
inline receive() {
  if
  :: ask[i] == granted -> ask[i] = nothing; become(i, holding)
  :: ask[i] == late -> ask[i] = nothing; lookFirst(i)
  :: else ->
     put(known, i);
     doubt = doubt & ~((ask[i] == refused) << i);
     if
     :: inbox[i] & MID -> inbox[i] = (inbox[i] | OLD) & ~MID
     :: else
     fi;
     if
     /* After its first refusal, an unfair waiter subscribes to the unlock channel and tries once more. */
     :: !fair(i) && !in(hears, c) -> put(hears, c); ask[i] = sent
     :: in(unsure, i) -> take(unsure, i); ask[i] = sent
     :: else -> ask[i] = nothing
     fi
  fi;
  tidy()
}

inline giveUp() {
  quits--; printf("client %d gives up\n", c);
  if
  :: fair(i) || ask[i] != nothing -> put(leaves, i)
  :: else
  fi;
  become(i, GIVEN_UP); next(); tidy()
}

/* Ends client `c` for good. `stays`: whether the client's requests have reached the server, and so will run. */
inline crash(stays) {
  crashes--; put(crashed, c); take(hears, c); take(unlocked, c);
  printf("client %d crashes\n", c);
  w = first(c);
  do
  :: w <= last(c) ->
     if
     :: st[w] != idle -> become(w, over)
     :: else
     fi;
     inbox[w] = 0;
     if
     :: ask[w] == sent && stays
     :: else -> ask[w] = nothing
     fi;
     if
     :: stays
     :: else -> take(releases, w); take(leaves, w)
     fi;
     w++
  :: else -> break
  od;
  tidy()
}

/*
 * Whether a look would change anything now. To check this definition, run each configuration without
 * PROGRESS, once with EVERY_LOOK and once without it. Both runs must have the same number of states.
 */
#ifdef EVERY_LOOK
#define MATTERS(i) true
#else
#define MATTERS(i) (free || hold == i || in(unlocked, c) || TELLS(i) || (fair(i) && !in(queue, i)))
#endif
/* Whether a waiter looks now: for the first time, again, by its timer, or after a wake-up. */
#define ASKS \
  (st[i] == waiting && ((ask[i] == sent && (i == first(c) || !in(releases, i - 1))) || \
    (ask[i] == nothing && (in(unlocked, c) || (TIMER && MATTERS(i))))))
/*
 * Whether a waiter may look although this look would change nothing now. With REPEATS, the same look may run once more
 * at a later time, and then it may change something.
 */
#define ASKS_TWICE (st[i] == waiting && ask[i] == nothing && TIMER && !MATTERS(i) && repeats > 0)
#define ENDS (!in(crashed, c) && (st[i] == waiting || st[i] == holding))

proctype Client(byte c) {
  byte i = first(c);

end:
  do
  :: atomic { ASKS -> choose(); d_step { request(i) } }
#if REPEATS
  :: d_step { ASKS_TWICE -> repeats--; again = true; request(i) }
#endif
  :: d_step { st[i] == waiting && ask[i] != nothing && ask[i] != sent -> receive() }
  :: d_step { st[i] == waiting && quits > 0 -> giveUp() }
  :: d_step { st[i] == holding -> become(i, over); put(releases, i); next(); tidy() }
  :: d_step { st[i] == holding && lates > 0 -> lates--; become(i, over); put(overdue, i); next(); tidy() }
  :: d_step { st[i] == over && i < last(c) && !in(crashed, c) -> next(); tidy() }
  :: d_step { crashes > 0 && ENDS -> crash(true) }
  :: d_step { crashes > 0 && ENDS -> crash(false) }
  od
}

/* ---- steps of the network, and of time --------------------------------------------------------------------------- */

/* The steps that no client causes: requests, replies and messages arrive, and leases lapse. */

/* Takes the oldest message to `i`, because a channel keeps the order of its messages. */
inline unwrap(i) {
  if
  :: inbox[i] & OLD -> inbox[i] = inbox[i] & ~OLD
  :: !(inbox[i] & OLD) && (inbox[i] & MID) -> inbox[i] = inbox[i] & ~MID
  :: else -> inbox[i] = inbox[i] & ~NEW
  fi;
  printf("client %d hears that %d.%d is granted\n", client(i), client(i), i % ROUNDS)
}

/*
 * Receives a grant message that does not prove that the lease still runs. The waiter drops the message, and looks. If
 * the reply reports a grant, the waiter holds the lock. It uses the token of the reply, because this may be a later
 * grant than that of the message. If the lease has lapsed, the look puts the waiter into the queue again.
 */
inline doubtful(i) {
  unwrap(i); lookFirst(i); tidy()
}

/*
 * Receives a grant message for a wait that is over. If the client has the lock by this grant, nothing happens.
 * Otherwise it sends `leave`, which ends the grant.
 */
inline strayGrant(i) {
  unwrap(i);
#ifndef NO_HANDBACK
  if
  :: st[i] != holding -> put(leaves, i)
  :: else
  fi;
#endif
  tidy()
}

/*
 * A client receives the reply to a look although the waiter no longer waits. It may send `leave`, to give up the grant
 * or the place in the queue that the reply reports.
 */
inline strayReply(i) {
  if
  :: st[i] != holding && TAKEN_BACK(i) -> put(leaves, i)
  :: else
  fi;
  ask[i] = nothing; tidy()
}

#define LAPSES_NOW(i) (hold == i && !lapsed && st[i] != holding && (dead(i) || in(overdue, i) || lapses > 0))
#define PROVEN(i) (NEWER(i) && IN_TIME(i))

inline lapse(i) {
  printf("redis: the lease of %d.%d lapses\n", client(i), i % ROUNDS);
  if
  :: dead(i) || in(overdue, i)
  :: else -> lapses--
  fi;
  lapsed = true; put(doubt, i);
  if
  :: ask[i] == granted -> ask[i] = late
  :: ask[i] == refused -> ask[i] = stale
  :: else
  fi;
  tidy()
}

#define RELEASES(i) (in(releases, i) && IN_ORDER(i))
#define LEAVES(i) (in(leaves, i) && IN_ORDER(i))
#define STRAY(i) (st[i] != waiting && ask[i] != nothing)
#define WORK(i) (RELEASES(i) || LEAVES(i) || STRAY(i) || inbox[i] != 0 || LAPSES_NOW(i))

proctype Network() {
  byte i;

end:
  do
  :: atomic {
       if
       :: WORK(0) -> i = 0
       :: WORK(1) -> i = 1
       :: WORK(2) -> i = 2
       :: WORK(3) -> i = 3
       :: WORK(4) -> i = 4
       :: WORK(5) -> i = 5
       fi;
       if
       :: RELEASES(i) -> choose(); d_step { releases = releases & ~(!again << i); release(i); tidy(); i = 0 }
       :: LEAVES(i) -> choose(); d_step { leaves = leaves & ~(!again << i); leave(i); tidy(); i = 0 }
       :: STRAY(i) && ask[i] == sent -> choose(); d_step { request(i); i = 0 }
       :: d_step { STRAY(i) && ask[i] != sent -> strayReply(i); i = 0 }
       :: d_step { inbox[i] != 0 && st[i] != waiting -> strayGrant(i); i = 0 }
       :: d_step { inbox[i] != 0 && st[i] == waiting && PROVEN(i) -> unwrap(i); become(i, holding); tidy(); i = 0 }
       :: d_step { inbox[i] != 0 && st[i] == waiting && !PROVEN(i) -> doubtful(i); i = 0 }
       :: d_step { LAPSES_NOW(i) -> lapse(i); i = 0 }
       fi
     }
#ifdef PUBLISH_FIRST
  :: d_step { unwritten != 0 ->
       w = 0;
       do
       :: in(unwritten, w) -> break
       :: else -> w++
       od;
       take(unwritten, w); hold = w; lapsed = false;
       printf("  redis: %d.%d is the holder now\n", client(w), w % ROUNDS);
       tidy() }
#endif
#if WIPES
  :: d_step { wipes > 0 && queue != 0 ->
       wipes--; queue = 0; printf("redis: the queue is lost\n");
#ifdef WIPE_ALL
       hold = NONE; lapsed = false; queued = false; blank = true;
#endif
       tidy() }
#endif
#if FORCES
  :: atomic { forces > 0 && !free ->
       forces--; choose();
       d_step { printf("redis: force-release\n"); asker = NONE; mates = false; open(); tidy() } }
#endif
  od
}

init {
  byte c;
  atomic {
    do
    :: c < CLIENTS -> st[first(c)] = waiting; ask[first(c)] = sent; waiters++; run Client(c); c++
    :: else -> break
    od;
    run Network()
  }
}

#ifdef PROGRESS
ltl progress { []<> (holders > 0 || waiters == 0) } /* I4 */
#endif
