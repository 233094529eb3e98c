#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef FAIR
#define FAIR 3 /* clients 0 and 1 queue, client 2 takes its chance */
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

#define IDS (CLIENTS * ROUNDS)
#define NONE IDS
#define bit_(i) (1 << (i))
#define in(set, i) (((set) >> (i)) & 1)
#define put(set, i) set = (set) | bit_(i)
#define take(set, i) set = (set) & ~bit_(i)

#define client(i) ((i) / ROUNDS)
#define fair(i) in(FAIR, client(i))
#define dead(i) in(crashed, client(i))

#if REPEATS
#define ORDER(i) true
#else
#define ORDER(i) (ask[i] != sent)
#endif
#ifdef NO_TIMER
#define TIMER false
#else
#define TIMER true
#endif
#define LAPSING(i) (dead(i) || in(overdue, i) || lapses > 0)
#ifdef BELIEVE_OLD
#define BELIEVED true
#else
#define BELIEVED false
#endif
#ifdef IGNORE_REPLY
#define GIVENUP quit
#define IGNORED true
#else
#define GIVENUP done
#define IGNORED false
#endif
#ifdef NO_HANDBACK
#define HANDBACK true
#else
#define HANDBACK false
#endif

mtype = { nothing, sent, refused, stale, granted, late, denied }
mtype = { idle, waiting, holding, done, quit }
mtype = { plain, lost, cut, counted }

/* ---- Redis ---- */
byte hold = NONE;
bool lapsed;
bool queued;
byte queue;
byte ticket[IDS];
#ifdef NEW_TICKET
byte score[IDS];
#else
#define score ticket
#endif
bool blank = true;
#ifdef PUBLISH_FIRST
byte unwritten = NONE;
#endif

/* ---- clients ---- */
mtype st[IDS] = idle;
mtype ask[IDS] = nothing;
mtype confirm[IDS] = nothing;
byte known;
byte doubt;
byte crashed;
byte hears;
byte overdue;

/* ---- network ---- */
#define NEW 1
#define MID 2
#define OLD 4
byte inbox[IDS];
byte unlocked;
byte releases;
byte leaves;

/* ---- budgets ---- */
byte losses = LOSSES, cuts = CUTS, crashes = CRASHES, quits = QUITS, lates = LATES, lapses = LAPSES, repeats = REPEATS, wipes = WIPES,
  forces = FORCES;
mtype fate = plain;
bool again;

/* ---- what the properties speak of ---- */
byte holders, waiters;

hidden byte w, k, won, asker;
hidden byte mates, told, heard;

inline become(i, state) {
  holders = holders - (st[i] == holding) + (state == holding);
  waiters = waiters - (st[i] == waiting) + (state == waiting);
  st[i] = state;
#ifndef UNGUARDED
  assert(holders <= 1) /* I1 */
#endif
}

/* Tickets are ranks: those above a forgotten one move down. */
inline drop(i) {
  if
  :: ticket[i] != 0 ->
     k = 0;
     do
     :: k < IDS && ticket[k] > ticket[i] -> ticket[k]--; k++
     :: k < IDS && ticket[k] <= ticket[i] -> k++
     :: k == IDS -> break
     od;
     ticket[i] = 0
  :: else
  fi
}

/* What nothing will ask for again is forgotten, so that states that differ in nothing else are one. */
inline forget(i) {
  if
  :: st[i] != waiting && st[i] != idle && ask[i] != sent ->
     take(known, i); take(doubt, i);
     if
     :: !in(queue, i) && ticket[i] != 0 -> drop(i)
     :: else
     fi;
     if
     :: hold != i && st[i] != holding -> take(overdue, i)
     :: else
     fi;
     if
     :: hold != i && st[i] == quit && inbox[i] == 0 && ask[i] == nothing && confirm[i] == nothing -> st[i] = done
     :: else
     fi
  :: else
  fi
}

inline tidy() {
  w = 0;
  do
  :: w < IDS -> forget(w); w++
  :: else -> break
  od;
  w = 0; k = 0; won = 0; asker = 0; mates = false; told = false; heard = false; fate = plain; again = false
}

/* include/grant.lua */
inline grant(i) {
  k = 0;
  do
  :: k < IDS ->
     /* I3 */
     assert(!(k != i && in(queue, k) && st[k] == waiting && (ticket[i] == 0 || ticket[k] < ticket[i])));
     k++
  :: else -> break
  od;
  hold = i; lapsed = false; blank = false
}

/* include/promote.lua */
inline promote() {
  won = NONE;
  do
  :: won != NONE -> break
  :: won == NONE && queue == 0 -> queued = false; break
  :: won == NONE && queue != 0 ->
     w = NONE; k = 0;
     do
     :: k < IDS && in(queue, k) && (w == NONE || score[k] < score[w]) -> w = k; k++
     :: k < IDS && !(in(queue, k) && (w == NONE || score[k] < score[w])) -> k++
     :: k == IDS -> break
     od;
     take(queue, w);
     told = (w == asker || (mates && client(w) == client(asker)));
     heard = true;
     if
     :: w == asker
     :: w != asker && dead(w) -> heard = (fate == counted)
     :: w != asker && !dead(w) && fate == cut ->
        heard = false; fate = plain;
        if
        :: st[w] == waiting -> cuts--
        :: else
        fi
     :: else
     fi;
     if
     :: heard ->
        won = w;
        if
        :: !told && !dead(w) && fate == lost -> losses--; fate = plain
        :: !told && !dead(w) && fate != lost -> inbox[w] = inbox[w] | NEW
        :: else
        fi;
#ifdef PUBLISH_FIRST
        hold = NONE; lapsed = false; unwritten = w
#else
        grant(w)
#endif
     :: else
     fi
  od
}

/* include/open.lua */
inline open() {
  won = NONE;
  if
  :: queued -> promote()
  :: else
  fi;
  if
  :: won == NONE ->
     hold = NONE; lapsed = false;
     if
     :: fate == lost -> losses--
     :: else -> unlocked = unlocked | hears
     fi
  :: else
  fi
}

inline join(i) {
  if
  :: !in(queue, i) ->
     if
     :: ticket[i] == 0 || !in(known, i) ->
        ticket[i] = 0; w = 0; k = 0;
        do
        :: k < IDS && ticket[k] > w -> w = ticket[k]; k++
        :: k < IDS && ticket[k] <= w -> k++
        :: k == IDS -> break
        od;
        ticket[i] = w + 1;
#ifdef NEW_TICKET
        score[i] = w + 1
     :: else ->
        w = 0; k = 0;
        do
        :: k < IDS && score[k] > w -> w = score[k]; k++
        :: k < IDS && score[k] <= w -> k++
        :: k == IDS -> break
        od;
        score[i] = w + 1
#else
     :: else
#endif
     fi;
     put(queue, i)
  :: else
  fi;
  queued = true; blank = false
}

/* A look that finds its waiter queued is newer than every grant message under way. */
inline found(i) {
  if
  :: hold == i && !lapsed -> ask[i] = granted
  /* an answer that tells its client nothing new */
  :: !(hold == i && !lapsed) && in(known, i) && !in(doubt, i) && inbox[i] == 0 -> ask[i] = nothing
  :: else ->
     ask[i] = refused;
     if
     :: inbox[i] & NEW -> inbox[i] = (inbox[i] | MID) & ~NEW
     :: else
     fi
  fi
}

/* acquire.lua */
inline acquire(i) {
  asker = i; mates = false;
  if
  :: hold == i && !lapsed
  :: else ->
     if
     :: blank && queue != 0 -> queued = true
     :: else
     fi;
#ifdef BARGE
     if
     :: (hold == NONE || lapsed) -> grant(i)
#else
     if
     :: (hold == NONE || lapsed) && !queued -> grant(i)
#endif
     :: else ->
        if
        :: fair(i) -> join(i)
        :: else
        fi;
        if
        :: hold == NONE || lapsed ->
           promote();
           if
           :: won == NONE -> grant(i)
           :: else
           fi
        :: else
        fi
     fi
  fi;
  found(i)
}

/* tend.lua */
inline tend(i) {
  asker = i; mates = true;
  if
  :: hold != i || lapsed -> join(i)
  :: else
  fi;
  if
  :: queued && (hold == NONE || lapsed) -> promote()
  :: else
  fi;
  found(i)
}

/* release.lua */
inline release(i) {
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

/* leave.lua */
inline leave(i) {
  asker = NONE; mates = false;
  take(queue, i);
#ifndef NO_HANDBACK
  if
  :: hold == i -> open()
  :: else
  fi
#endif
}

inline choose() {
  if
  :: true
  :: losses > 0 -> fate = lost
  :: cuts > 0 && queue != 0 -> fate = cut
  :: crashed && queue != 0 -> fate = counted
  :: repeats > 0 -> repeats--; again = true
  fi
}

#define REQUEST(i) \
  :: atomic { \
       HERE(i) -> choose(); \
       d_step { \
         if \
         :: ask[i] == nothing -> take(unlocked, client(i)) \
         :: else \
         fi; \
         if \
         :: fair(i) && in(known, i) -> tend(i) \
         :: else -> acquire(i) \
         fi; \
         if \
         :: again -> ask[i] = sent \
         :: !again && dead(i) -> ask[i] = nothing \
         :: else \
         fi; \
         tidy() \
       } \
     }

inline lapse(i) {
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
  if
  :: confirm[i] == granted -> confirm[i] = late
  :: else
  fi
}

/* The answer to an ask, for a waiter that still waits */
inline receive(i) {
  if
  :: ask[i] == granted -> become(i, holding)
  :: ask[i] == late -> ask[i] = nothing; become(i, done); next()
  :: else ->
     put(known, i);
     if
     :: ask[i] == refused -> take(doubt, i)
     :: else
     fi;
     if
     :: inbox[i] & MID -> inbox[i] = (inbox[i] | OLD) & ~MID
     :: else
     fi
  fi;
  if
  :: ask[i] == sent /* of the next round */
  :: ask[i] != sent && st[i] == waiting && !fair(i) && !in(hears, client(i)) -> put(hears, client(i)); ask[i] = sent
  :: else -> ask[i] = nothing
  fi
}

inline next() {
  if
  :: i < (c + 1) * ROUNDS - 1 -> i++; become(i, waiting); ask[i] = sent
  :: else
  fi
}

proctype Client(byte c) {
  byte i = c * ROUNDS;

end:
  do
/* The first request of a round waits for the release of the round before; later ones are the slow timer's, or a wake-up's. */
#define HERE(i) \
  st[i] == waiting && ((ask[i] == sent && (i == c * ROUNDS || !in(releases, i - 1))) || \
    (ask[i] == nothing && (TIMER || in(unlocked, c))))
  REQUEST(i)
#undef HERE
  :: d_step { st[i] == waiting && ask[i] != nothing && ask[i] != sent -> receive(i); tidy() }
  :: d_step {
       st[i] == waiting && quits > 0 -> quits--;
       if
       :: fair(i) || ask[i] != nothing -> put(leaves, i)
       :: else
       fi;
       become(i, GIVENUP); next(); tidy()
     }
  :: d_step { st[i] == holding -> become(i, done); put(releases, i); next(); tidy() }
  :: d_step { st[i] == holding && lates > 0 -> lates--; become(i, done); put(overdue, i); next(); tidy() }
  :: d_step { st[i] != waiting && st[i] != holding && !in(crashed, c) && i < (c + 1) * ROUNDS - 1 -> next(); tidy() }
  :: d_step { crashes > 0 && !in(crashed, c) && (st[i] == waiting || st[i] == holding) ->
       crashes--; put(crashed, c); take(hears, c); take(unlocked, c);
       w = c * ROUNDS;
       do
       :: w < (c + 1) * ROUNDS ->
          if
          :: st[w] != idle -> become(w, done)
          :: else
          fi;
          inbox[w] = 0; confirm[w] = nothing;
          if
          :: ask[w] != sent -> ask[w] = nothing
          :: else
          fi;
          w++
       :: else -> break
       od;
       tidy()
     }
  od
}

/* Takes back what a reply or a message brings to a waiter that does not wait any more. */
inline giveBack(i) {
  put(leaves, i)
}

#define HERE(i) st[i] != waiting && ask[i] == sent
#define NET(i) \
  REQUEST(i) \
  :: d_step { st[i] != waiting && ask[i] != nothing && ask[i] != sent -> \
       if \
       :: st[i] == holding || (st[i] == done && IGNORED) \
       :: else -> giveBack(i) \
       fi; \
       ask[i] = nothing; tidy() } \
  :: atomic { in(releases, i) && ORDER(i) -> choose(); d_step { releases = releases & ~(bit_(i) * !again); release(i); tidy() } } \
  :: atomic { in(leaves, i) && ORDER(i) -> choose(); d_step { leaves = leaves & ~(bit_(i) * !again); leave(i); tidy() } } \
  :: d_step { inbox[i] != 0 && st[i] == waiting && !in(doubt, i) && (inbox[i] < OLD || BELIEVED) -> \
       OLDEST(i); become(i, holding); tidy() } \
  :: d_step { inbox[i] != 0 && st[i] == waiting && (in(doubt, i) || (inbox[i] >= OLD && !BELIEVED)) -> OLDEST(i); \
       if \
       :: hold == i && !lapsed -> confirm[i] = granted \
       :: else \
       fi; \
       tidy() } \
  :: d_step { inbox[i] != 0 && st[i] != waiting -> OLDEST(i); \
       if \
       :: st[i] == holding || HANDBACK \
       :: else -> giveBack(i) \
       fi; \
       tidy() } \
  :: d_step { confirm[i] != nothing -> \
       if \
       :: st[i] == waiting && confirm[i] == granted -> become(i, holding) \
       :: st[i] == waiting && confirm[i] == late -> become(i, GIVENUP) \
       :: st[i] != waiting && st[i] != holding -> giveBack(i) \
       :: else \
       fi; \
       confirm[i] = nothing; tidy() } \
  :: d_step { hold == i && !lapsed && st[i] != holding && LAPSING(i) -> lapse(i); tidy() }

#define OLDEST(i) \
  if \
  :: inbox[i] & OLD -> inbox[i] = inbox[i] & ~OLD \
  :: !(inbox[i] & OLD) && (inbox[i] & MID) -> inbox[i] = inbox[i] & ~MID \
  :: else -> inbox[i] = inbox[i] & ~NEW \
  fi

proctype Network() {
end:
  do
  NET(0)
  NET(1)
#if CLIENTS * ROUNDS > 2
  NET(2)
#endif
#if CLIENTS * ROUNDS > 3
  NET(3)
#endif
#if CLIENTS * ROUNDS > 4
  NET(4)
  NET(5)
#endif
#ifdef PUBLISH_FIRST
  :: d_step { unwritten != NONE -> hold = unwritten; lapsed = false; unwritten = NONE; tidy() }
#endif
#if WIPES
  :: d_step { wipes > 0 && queue != 0 -> wipes--; queue = 0;
#if WIPE_ALL
       hold = NONE; lapsed = false; queued = false; blank = true;
#endif
       tidy() }
#endif
#if FORCES
  :: atomic { forces > 0 && hold != NONE && !lapsed -> forces--; choose(); d_step { asker = NONE; mates = false; open(); tidy() } }
#endif
  od
}

init {
  atomic {
    byte c = 0;
    do
    :: c < CLIENTS -> st[c * ROUNDS] = waiting; ask[c * ROUNDS] = sent; waiters++; run Client(c); c++
    :: else -> break
    od;
    run Network()
  }
}

#ifdef I4
ltl progress { []<> (holders > 0 || waiters == 0) }
#endif
