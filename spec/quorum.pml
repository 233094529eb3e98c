/*
 * A mutex over a quorum of three independent servers, as a model for the checker Spin. `npm run model` checks it;
 * docs/model.md says what the check shows. A quorum is a kind of lock that combines one mutex on each server, and has
 * no scripts of its own.
 *
 * Two clients take one lock. The first client takes it twice. An id names one of these calls of a client. A vote is one
 * server's grant to one id; two votes are a majority. The checker follows every possible order of the steps below, and
 * every combination of faults.
 *
 *      Caller(i)                      Vote(v)                                 Faults
 *      ─────────                      ───────                                 ──────
 *      asks, tries again, looks,      messages between caller of(v)           server 0 stops, restarts
 *      gives votes back, holds,       and server at(v), both ways;            without its data; its votes
 *      releases, gives up             the leases at both ends                 count again
 *
 * A server runs each script atomically, so a script is one step (d_step). spec/baton.pml shows what a single server
 * does with the lock. So a server has only the state of its votes here: the id that has its vote, the queued ids, and
 * the last token.
 *
 *      lua/mutex/acquire.lua   serve, asking    lua/holder.lua   promote
 *      lua/mutex/tend.lua      serve, asking    lua/lock.lua     enqueue: in serve
 *      lua/mutex/release.lua   leave            lua/holder.lua   makeHolder: grant
 *      lua/mutex/leave.lua     leave                             openLock: endVote
 *      lua/mutex/renew.lua     serve, renewing: only where the client then counts one more vote. All other renewals
 *                              are left out: a renewed vote is one that does not lapse
 *      lua/mutex/force-release.lua, lua/mutex/pass.lua, lua/mutex/inspect.lua, lua/mutex/sweep.lua   left out: on each
 *                              server they do what spec/baton.pml shows
 *
 * A request and its reply are two steps. The requests of one id to one server run in the order in which they were sent.
 * An attempt asks a server only after all earlier requests of that id have run on that server, including the leave that
 * takes back the previous attempt. A leave is repeated until it has run: it may be late, but is not lost. The same is
 * true of a raise (the request that writes a larger token to a server) and of a renewal.
 *
 * AN ATTEMPT asks all servers at once, with a floor: the largest token that the client has seen, plus 1. The replies of
 * a majority decide the attempt. If a majority has the largest token of the votes, the caller holds with that token.
 * Otherwise this token is written back (`raising`) to the other voters until a majority has it. If no majority is
 * possible any more, all votes are taken back (`takeBack`).
 *   - An unfair caller then tries again when a majority may be free. In the client, a message or the slow timer causes
 *     this attempt. The model has no steps for them.
 *   - A fair caller is queued by each server that refuses it. When a vote ends, the server promotes the first in its
 *     queue, and the message of the promotion is a vote.
 *   - A fair caller also sends looks: a look asks one server whether it has voted for the caller. A caller with the
 *     votes of only a minority looks, gives its votes back, and joins the queues again.
 * If a server's vote is free, a renewal makes the server vote for the hold, with the token of the hold. The server then
 * has joined the hold.
 *
 * TOKENS are counted. A server issues the largest of: its last token plus 1, the floor, and its own time. The checker
 * chooses the time: at most AHEAD times, the time is ahead of the other two by 1. A release sends each server the token
 * of its lease. This token is a floor for the promotion that follows.
 *
 * TICKETS are not counted, and I3 is not checked. All servers promote in the same order, that of the ids, except
 * DISPUTES times. With the switch TICKETS, each server issues tickets: one more than those of the waiters that the
 * server knows. So two callers whose requests cross have different tickets on different servers. A caller that sees
 * this writes the largest of its tickets to its other servers (`placing`). A server accepts this ticket even if it has
 * voted for the caller: it then votes again, for the first of its queue. With TICKETS, no waiter gives votes back for
 * another reason, so progress depends on this rule.
 *
 * A SERVER THAT COMES BACK without its data (`fresh`) is asked for no vote until it has been up for longer than the
 * longest lease of all clients; an attempt that waits for this asks it then. Until then, a client may still count a vote
 * that the server gave before the stop (`old`). A request that was under way when the server stopped runs after the
 * restart, and may get a vote. The client gives it back (`receive`, and `putBackYoung` if its message was lost), because
 * its token may be too small. The replies that were under way when the server stopped are lost. In reality such a reply may still arrive. The model leaves that out,
 * because the caller does the same as if the reply had arrived just before the stop.
 *
 * TIME is not counted. The rules of time on which the clients rely are built in:
 *   - A client stops counting a vote no later than the server does (`proved` ends before the vote), because
 *     src/clock.ts counts from before the request. A hold lasts while a majority of its votes counts (HELD), so its
 *     deadline is the end of the second-longest of its three votes.
 *   - A reply that was under way when its vote lapsed arrives too late to be used, and is no vote.
 *   - When a server has been up for longer than the longest lease, no client counts an old vote of it. Its time of day
 *     is then past the last token that it had issued: the clocks of the servers differ by less than that lease.
 *   - A running process signals the loss of a hold at its own deadline, which is earlier than the deadlines on the
 *     servers.
 * Votes for a live caller are renewed, and lapse only by LATES, PAUSES and LAPSES. Progress never relies on a lapse. A
 * renewal that finds the hold gone on a majority is not a step: it only ends the hold earlier than its deadline would.
 *
 * CHANCE. A refused caller tries again after a random pause that grows. So at some time it tries while the others do
 * nothing (ALONE). How soon that happens is measured, not modelled. In the model, a caller tries again, or gives its
 * votes back, only when it is alone, except EARLIES times.
 *
 * Each kind of fault has a number that bounds it:
 *   CRASHES   server 0 stops. By symmetry, server 0 stands for any server
 *   RESTARTS  server 0 restarts without its data
 *   LOSSES    a call of `acquire` or `tend` does not run, or a reply or the message of a promotion is lost
 *   LATES     a holder cannot renew any more, but its process runs
 *   PAUSES    a holder cannot renew any more, because its process is stopped until after its deadline
 *   LAPSES    the vote for a live waiter lapses, or its client no longer counts the vote
 *   QUITS     a waiter gives up
 *   EARLIES   an unfair caller tries although it cannot get a majority, or during another caller's attempt; a fair
 *             caller gives its votes back at any time
 *
 * Properties:
 *   I1  become(): when a caller is granted the lock, no other caller counts itself as the holder (`overlap`), and a
 *       majority has voted for the new holder: the votes of a minority never suffice (`minority`)
 *   I2  become(): the token of a grant is larger than that of every earlier grant, by whichever majority
 *   I4  ltl progress: a state in which a caller waits and none holds never lasts, so each wait ends: with the lock, or
 *       given up. Servers 1 and 2 are always up. No fairness is assumed. As in spec/baton.pml, looks that would change
 *       nothing are no steps
 *   I8  become(): every earlier hold that was lost has been signalled (`unsaid`), except that of a stopped process
 *
 * UNORDERED switches off the check of I2, and UNVOTED the check of the second half of I1. Without these switches, the
 * search of some mutants would stop at these checks, before it finds the worse violation that the mutant is meant to
 * show.
 *
 * Each mutant removes one rule: NO_WRITE_BACK, SET_BACK, COUNT_RESTARTED, COUNT_YOUNG, OWN_LEASE, FROM_REPLY,
 * LATEST_DEADLINE, KEEP_MINORITY, KEEP_TICKETS, LATE_LEAVE, UNSAID. scripts/models.ts says what each of them breaks.
 */

#ifndef FAIR
#define FAIR 0 /* a set of clients */
#endif
#ifndef CALLERS
#define CALLERS 7 /* a set of ids: the existing callers */
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef LATES
#define LATES 0
#endif
#ifndef PAUSES
#define PAUSES 0
#endif
#ifndef LAPSES
#define LAPSES 0
#endif
#ifndef QUITS
#define QUITS 0
#endif
#ifndef EARLIES
#define EARLIES 0
#endif
#ifndef AHEAD
#define AHEAD 0
#endif
#ifndef DISPUTES
#define DISPUTES 0
#endif

#define SERVERS 3
#define IDS 4
#define NONE IDS

/* A set of ids, of clients, of servers or of votes has one bit for each member. */
#define in(set, i) (((set) >> (i)) & 1)
#define put(set, i) set = (set) | (1 << (i))
#define take(set, i) set = (set) & ~(1 << (i))

/* An id is one call of a client. The ids 0 and 1 are successive calls of client 0; the ids 2 and 3, of client 1. */
#define client(i) ((i) / 2)
#define second(i) ((i) & 1)
#define exists(i) in(CALLERS, i)
#define fair(i) in(FAIR, client(i))

#define vote(i, s) ((i) * SERVERS + (s))
#define of(v) ((v) / SERVERS)
#define at(v) ((v) % SERVERS)

/* Whether a set of servers is a majority. */
#define many(set) (in(set, 0) + in(set, 1) + in(set, 2) >= 2)

mtype = { idle, waiting, holding, over };
mtype = { nothing, asking, raising, renewing, placing, granted, refused };
mtype = { plain, unasked, unheard, ahead, disputed };

/* ---- the state of the servers ------------------------------------------------------------------------------------ */

byte hold[SERVERS] = NONE;    /* the id that has the server's vote; NONE: no id has it, or the vote has lapsed */
byte clock[SERVERS];          /* the last token; the field `clock` of lua/ */
byte queue[SERVERS];          /* the ids in the queue */
#ifdef TICKETS
byte ticket[12];              /* the ticket of each id on each server; 0: none */
#endif
bool down;                    /* server 0 has stopped */
byte memory;                  /* the last token that server 0 had issued when it stopped */

/* ---- the state of the clients ------------------------------------------------------------------------------------ */

mtype st[IDS] = over;         /* idle: has not called yet; waiting: in any waiting state of src/key/waiter.ts */
byte trying;                  /* unfair waiters whose attempt is undecided */
short proved;                 /* votes that their caller still counts */
byte old;                     /* callers that still count a vote which server 0 gave before it stopped */
byte fresh;                   /* clients that do not count server 0, because it has not been up for long enough */
byte overdue;                 /* holders that cannot renew any more */
byte stopped;                 /* holders whose process is stopped */
byte lease[IDS];              /* the token of each id's lease */
byte least[IDS];              /* the floor of each id's attempt */
byte seen[2];                 /* the largest token that each client has seen */

/* ---- what is under way between clients and servers --------------------------------------------------------------- */

/* What is under way between a caller and a server: a request, the reply to it, or the message of a promotion. */
mtype ask[12] = nothing;
byte token[12];               /* the token of each vote, or the larger token that is being written to its server */
short leaves;
#ifdef LATE_LEAVE
short again;                  /* leaves that have run and will run once more, because the client got no answer */
byte repeats = 1;
#endif

/* ---- faults that may still happen, and what is chosen for the next script ---------------------------------------- */

byte crashes = CRASHES, restarts = RESTARTS, losses = LOSSES, lates = LATES, pauses = PAUSES, lapses = LAPSES,
  quits = QUITS, earlies = EARLIES, aheads = AHEAD, disputes = DISPUTES;
mtype fate = plain;

/* ---- variables for the properties -------------------------------------------------------------------------------- */

byte holders, waiters, last;

/* These variables are used only within one step. */
hidden byte w, k, x, y, used;
hidden byte overlap, unsaid, minority, first;

/* ---- the votes that a caller counts ------------------------------------------------------------------------------ */

#define votes(i) ((((proved) >> ((i) * SERVERS)) & 7 & ~in(fresh, client(i))) | in(old, i))
#ifdef LATEST_DEADLINE
#define HELD(i) (votes(i) != 0)
#else
#define HELD(i) many(votes(i))
#endif

inline become(i, state) {
  holders = holders - (st[i] == holding) + (state == holding);
  waiters = waiters - (st[i] == waiting) + (state == waiting);
  st[i] = state;
  printf("client %d, caller %d: %e\n", client(i), second(i), state);
  if
  :: state == holding ->
     overlap = false; unsaid = false; k = 0;
     do
     :: k < IDS && k != i && st[k] == holding ->
        overlap = overlap || HELD(k); unsaid = unsaid || !in(stopped, k); k++
     :: k < IDS && !(k != i && st[k] == holding) -> k++
     :: k == IDS -> break
     od;
     assert(!overlap); /* I1 */
     assert(!unsaid); /* I8 */
#ifndef UNVOTED
     minority = (hold[0] == i || in(old, i)) + (hold[1] == i) + (hold[2] == i) < 2;
     assert(!minority); /* I1 */
#endif
#ifndef UNORDERED
     assert(lease[i] > last); /* I2 */
#endif
     last = lease[i]
  :: else
  fi
}

/* ---- merging states whose difference does not matter ------------------------------------------------------------- */

#define known(v) (in(proved, v) || (at(v) == 0 && in(old, of(v))) || ask[v] != nothing || hold[at(v)] == of(v))

/* Called at the end of every step. */
inline tidy() {
  w = 0;
  do
  :: w < IDS && exists(w) ->
     x = vote(w, 0); y = 0;
     do
     :: x < vote(w, SERVERS) ->
        token[x] = (known(x) -> token[x] : 0);
#ifdef TICKETS
        ticket[x] = (hold[at(x)] == w || in(queue[at(x)], w) -> ticket[x] : 0);
#endif
        y = y || known(x) || in(leaves, x);
        x++
     :: else -> break
     od;
     if
     :: st[w] == over && !y -> lease[w] = 0; least[w] = 0; take(overdue, w)
     :: else
     fi;
     w++
  :: w < IDS && !exists(w) -> w++
  :: w == IDS -> break
  od;
  fate = plain
}

/* ---- scripts of lua/mutex/ --------------------------------------------------------------------------------------- */

#define larger(a, b) ((a) > (b) -> (a) : (b))

/* Gives the server's vote to the id `i`, with a new token. `floor`: the smallest token that may be issued. */
inline grant(i, s, floor) {
  clock[s] = larger(clock[s] + 1, floor) + (fate == ahead);
  aheads = aheads - (fate == ahead);
  fate = (fate == ahead -> plain : fate);
  hold[s] = i; take(queue[s], i); token[vote(i, s)] = clock[s];
  printf("  redis: server %d votes for %d.%d, token %d\n", s, client(i), second(i), clock[s])
}

#ifdef TICKETS
/* The ticket of `k` on the server, if `k` waits there; otherwise 0. */
#define TICKET(k, s) (st[k] == waiting -> ticket[vote(k, s)] : 0)
#define LARGEST(s) larger(larger(TICKET(0, s), TICKET(1, s)), larger(TICKET(2, s), TICKET(3, s)))
/* Whether `k` is before `j` in the queue of the server. */
#define BEFORE(k, j, s) (in(queue[s], k) && (!in(queue[s], j) || ticket[vote(k, s)] < ticket[vote(j, s)]))
#define EARLIER(j, k, s) (BEFORE(k, j, s) -> k : j)
#define FIRST(s) (1 << EARLIER(EARLIER(EARLIER(0, 1, s), 2, s), 3, s))
#else
#define FIRST(s) queue[s]
#endif

/*
 * Gives the server's vote to the first id in the queue. This is the smallest id, so that all servers have the same
 * order; with the fault `disputed`, it is the largest. The server then sends that id a message. If a request of that id
 * is under way, no message is sent: the reply to this request will report the vote.
 */
inline promote(s, floor) {
  if
  :: queue[s] != 0 ->
     k = 0; first = FIRST(s);
     do
     :: k < IDS && in(first, k) && (fate != disputed || (queue[s] >> (k + 1)) == 0) -> break
     :: else -> k++
     od;
     disputes = disputes - (fate == disputed);
     fate = (fate == disputed -> plain : fate);
     grant(k, s, floor);
     if
     :: (ask[vote(k, s)] == nothing || ask[vote(k, s)] == refused) && fate == unheard ->
        losses--; fate = plain; printf("  lost: its message\n")
     :: (ask[vote(k, s)] == nothing || ask[vote(k, s)] == refused) && fate != unheard -> ask[vote(k, s)] = granted
     :: else
     fi
  :: else
  fi
}

inline endVote(s, floor) {
  hold[s] = NONE; promote(s, floor)
}

/* Runs the script `acquire`, or `tend` for a fair waiter. A refusal contains the last token of the server. */
inline answer(i, s, v) {
  printf("redis: server %d is asked by %d.%d\n", s, client(i), second(i));
  if
  :: hold[s] == NONE && queue[s] == 0 ->
#ifdef TICKETS
     ticket[v] = 1;
#endif
     grant(i, s, least[i])
  :: hold[s] != i && (hold[s] != NONE || queue[s] != 0) ->
#ifdef TICKETS
     ticket[v] = (in(queue[s], i) -> ticket[v] : LARGEST(s) + 1);
#endif
     queue[s] = queue[s] | (fair(i) << i);
     if
     :: hold[s] == NONE -> promote(s, least[i])
     :: else
     fi
  :: else
  fi;
  if
  :: hold[s] == i -> ask[v] = granted
  :: else -> ask[v] = refused; token[v] = clock[s]
  fi
}

#ifdef TICKETS
/* The largest ticket that `i` knows to have. */
#define KNOWN(v) (ask[v] == nothing || ask[v] == placing -> ticket[v] : 0)
#define MINE(i) larger(larger(KNOWN(vote(i, 0)), KNOWN(vote(i, 1))), KNOWN(vote(i, 2)))

/* Gives `i` the largest of its tickets on this server, too. If the server has voted for `i`, it votes again. */
inline place(i, s, v) {
  printf("redis: server %d receives the ticket of %d.%d\n", s, client(i), second(i));
  ticket[v] = MINE(i); put(queue[s], i); hold[s] = (hold[s] == i -> NONE : hold[s]);
  if
  :: hold[s] == NONE -> promote(s, least[i])
  :: else
  fi;
  ask[v] = (hold[s] == i -> granted : refused)
}
#endif

/* Writes a token to a server that has voted for `i` with a smaller token. */
inline raise(i, s, v) {
  printf("redis: server %d receives token %d from %d.%d\n", s, token[v], client(i), second(i));
  if
  :: hold[s] == i -> clock[s] = larger(clock[s], token[v]); ask[v] = granted
  :: else -> ask[v] = refused
  fi
}

/* Runs a renewal. If the server is free, it votes for the hold of `i`, with the token of that hold. */
inline renew(i, s, v) {
  printf("redis: server %d is asked to join the hold of %d.%d\n", s, client(i), second(i));
  if
  :: hold[s] == NONE && queue[s] == 0 ->
     hold[s] = i; token[v] = lease[i];
#ifdef SET_BACK
     clock[s] = lease[i];
#else
     clock[s] = larger(clock[s], lease[i]);
#endif
     ask[v] = granted
  :: hold[s] == i -> token[v] = lease[i]; clock[s] = larger(clock[s], lease[i]); ask[v] = granted
  :: else -> ask[v] = refused
  fi
}

/*
 * Runs a request. A stopped server does not answer, and that counts as a refusal. If the caller has taken the attempt
 * back meanwhile, the reply is ignored.
 */
inline serve(v) {
  if
  :: at(v) == 0 && down -> ask[v] = refused
  :: !(at(v) == 0 && down) && fate == unasked ->
     losses--; fate = plain; ask[v] = refused; printf("  lost: a request of %d.%d\n", client(of(v)), second(of(v)))
  :: !(at(v) == 0 && down) && fate != unasked && ask[v] == asking -> answer(of(v), at(v), v)
  :: !(at(v) == 0 && down) && fate != unasked && ask[v] == raising -> raise(of(v), at(v), v)
#ifdef TICKETS
  :: !(at(v) == 0 && down) && fate != unasked && ask[v] == placing -> place(of(v), at(v), v)
#endif
  :: !(at(v) == 0 && down) && fate != unasked && ask[v] == renewing -> renew(of(v), at(v), v)
  fi;
  if
  :: fate == unheard ->
     losses--; fate = plain; ask[v] = refused; printf("  lost: the reply to %d.%d\n", client(of(v)), second(of(v)))
  :: else
  fi;
  ask[v] = (in(leaves, v) -> nothing : ask[v]);
  tidy()
}

/* Takes back a vote, or releases a hold. The token of the lease becomes the floor of the server's next grant. */
inline leave(v) {
#ifdef LATE_LEAVE
  again = (in(again, v) -> 0 : again | ((in(leaves, v) && repeats > 0) << v)); repeats = 0;
#endif
  take(leaves, v); take(queue[at(v)], of(v));
  printf("redis: server %d takes back everything of %d.%d\n", at(v), client(of(v)), second(of(v)));
  if
  :: hold[at(v)] == of(v) -> used = (lease[of(v)] -> lease[of(v)] + 1 : 0); endVote(at(v), used)
  :: else
  fi;
  tidy()
}

/* The faults that may happen to the next script. */
#define CHOICES(v) \
  if \
  :: true \
  :: losses > 0 && ask[v] == asking -> fate = unasked \
  :: losses > 0 && ask[v] != raising && ask[v] != renewing -> fate = unheard \
  :: aheads > 0 && (ask[v] == asking || queue[at(v)] != 0) -> fate = ahead \
  :: disputes > 0 && queue[at(v)] != 0 -> fate = disputed \
  fi

/* ---- steps of the callers ---------------------------------------------------------------------------------------- */

#define REQUEST(v) (ask[v] == asking || ask[v] == raising || ask[v] == renewing || ask[v] == placing)

inline takeBack(i) {
  x = vote(i, 0);
  do
  :: x < vote(i, SERVERS) ->
     leaves = leaves | ((hold[at(x)] == i || REQUEST(x) || in(queue[at(x)], i)) << x);
     ask[x] = (REQUEST(x) -> ask[x] : nothing);
     take(proved, x);
     x++
  :: else -> break
  od;
  take(old, i); take(trying, i)
}

/*
 * Sets `w` to the largest token of the votes, and `k` to the number of servers that have this token. Writes this token
 * to the servers that have voted with a smaller one.
 */
inline compare(i) {
  w = 0; k = 0; x = vote(i, 0);
  do
  :: x < vote(i, SERVERS) ->
     w = (in(votes(i), at(x)) && token[x] > w -> token[x] : w); x++
  :: else -> break
  od;
#ifdef NO_WRITE_BACK
  k = 2;
#else
  x = vote(i, 0);
  do
  :: x < vote(i, SERVERS) && in(votes(i), at(x)) && ask[x] == nothing && token[x] == w -> k++; x++
  :: x < vote(i, SERVERS) && in(votes(i), at(x)) && ask[x] == nothing && token[x] < w -> token[x] = w; ask[x] = raising; x++
  :: x < vote(i, SERVERS) && !(in(votes(i), at(x)) && ask[x] == nothing) -> x++
  :: x == vote(i, SERVERS) -> break
  od
#endif
}

/* Sets `y` to the servers that have voted for `i` or may still vote for it. Omits servers whose votes do not count. */
inline hope(i) {
  y = votes(i); x = vote(i, 0);
  do
  :: x < vote(i, SERVERS) ->
     y = y | ((ask[x] != nothing && ask[x] != refused && !in(leaves, x) && !(at(x) == 0 && in(fresh, client(i)))) << at(x)); x++
  :: else -> break
  od
}

/*
 * Decides again whether caller `i` gets or keeps the lock, or has to take its votes back. Called after the votes that
 * the caller counts have changed.
 */
inline settle(i) {
  if
  :: st[i] == waiting && many(votes(i)) ->
     compare(i);
     if
     :: k >= 2 -> lease[i] = w; take(trying, i); become(i, holding)
     :: else
     fi
  :: st[i] == waiting && !many(votes(i)) && in(trying, i) ->
     hope(i);
     if
     :: !many(y) ->
        printf("client %d: no majority\n", client(i));
#ifdef KEEP_MINORITY
        take(trying, i)
#else
        takeBack(i)
#endif
     :: else
     fi
#ifndef UNSAID
  :: st[i] == holding && !HELD(i) && !in(stopped, i) ->
     printf("client %d: its hold is lost\n", client(i)); become(i, over); takeBack(i)
#endif
  :: else
  fi
}

/* Whether the caller `i` asks the server for no vote, because its votes do not count. */
#ifdef COUNT_YOUNG
#define YOUNG(i, s) 0
#else
#define YOUNG(i, s) ((s) == 0 && in(fresh, client(i)))
#endif

/* Receives a reply, or the message of a promotion. */
inline receive(v) {
  seen[client(of(v))] = larger(seen[client(of(v))], token[v]);
  if
  :: ask[v] == granted && st[of(v)] == holding -> put(proved, v)
  :: ask[v] == granted && st[of(v)] == waiting ->
     leaves = leaves | (YOUNG(of(v), at(v)) << v); proved = proved | (!YOUNG(of(v), at(v)) << v);
     old = old & ~((at(v) == 0) << of(v))
  :: ask[v] == granted && !(st[of(v)] == waiting || st[of(v)] == holding) -> put(leaves, v)
  :: ask[v] == refused && st[of(v)] == waiting ->
     take(proved, v); old = old & ~((at(v) == 0) << of(v))
  :: else
  fi;
  ask[v] = nothing;
  settle(of(v)); tidy()
}

/* Whether caller of(v) may ask server at(v): none of its earlier requests to the server, or replies, is under way. */
#define READY(v) (ask[v] == nothing && !in(leaves, v))

inline begin(i) {
  least[i] = (seen[client(i)] -> seen[client(i)] + 1 : 0); trying = trying | (!fair(i) << i);
  x = vote(i, 0);
  do
  :: x < vote(i, SERVERS) -> ask[x] = (READY(x) && !YOUNG(i, at(x)) -> asking : ask[x]); x++
  :: else -> break
  od
}

#define COUNTS(i, s) (!((s) == 0 && (down || in(fresh, client(i)))))
#define COULD(i, s) (READY(vote(i, s)) && COUNTS(i, s))
#define FREE(i, s) (COULD(i, s) && hold[s] == NONE && queue[s] == 0)
/* Whether no message of the id `i` is under way. */
#define QUIET(i) (ask[vote(i, 0)] == nothing && ask[vote(i, 1)] == nothing && ask[vote(i, 2)] == nothing && \
  ((leaves >> vote(i, 0)) & 7) == 0)
#define STILL(i, k) ((k) == (i) || !exists(k) || QUIET(k))
#define ALONE(i) (STILL(i, 0) && STILL(i, 1) && STILL(i, 2) && STILL(i, 3))
/* Whether the caller `i` is unfair and has been refused. */
#define WAITS(i) (st[i] == waiting && !fair(i) && !in(trying, i))
#define TRIES(i) (WAITS(i) && FREE(i, 0) + FREE(i, 1) + FREE(i, 2) >= 2 && ALONE(i))
#define TRIES_EARLY(i) (WAITS(i) && earlies > 0 && !TRIES(i) && COULD(i, 0) + COULD(i, 1) + COULD(i, 2) >= 2)

/*
 * Whether a fair waiter asks this server again. It does so only if the server has voted for it and the vote does not
 * count, if the server is free, or if the server's queue lacks the waiter. Otherwise the request would change nothing.
 */
#define LOOKS(v) (st[of(v)] == waiting && fair(of(v)) && READY(v) && !in(proved, v) && !(at(v) == 0 && down) && \
  !YOUNG(of(v), at(v)) && \
  (hold[at(v)] == of(v) || hold[at(v)] == NONE || !in(queue[at(v)], of(v))))

/*
 * PUTS_BACK is true if a fair waiter gives its votes back: it has the votes of a minority only, another waiter has
 * votes too, no message of any caller is under way, and no look would change anything.
 */
#define WANTED(i, k) ((k) != (i) && exists(k) && st[k] == waiting && (hold[0] == (k) || hold[1] == (k) || hold[2] == (k)))
#define MINOR(i) (st[i] == waiting && fair(i) && QUIET(i) && ((proved >> vote(i, 0)) & 7) != 0 && !many(votes(i)))
#define LOOKED(k) (!LOOKS(vote(k, 0)) && !LOOKS(vote(k, 1)) && !LOOKS(vote(k, 2)))
#define PUTS_BACK(i) (MINOR(i) && ALONE(i) && LOOKED(0) && LOOKED(1) && LOOKED(2) && LOOKED(3) && \
  (WANTED(i, 0) || WANTED(i, 1) || WANTED(i, 2) || WANTED(i, 3)))

inline putBack(i) {
  printf("client %d puts back a minority\n", client(i));
  x = vote(i, 0);
  do
  :: x < vote(i, SERVERS) && in(proved, x) -> take(proved, x); put(leaves, x); x++
  :: x < vote(i, SERVERS) && !in(proved, x) -> x++
  :: x == vote(i, SERVERS) -> break
  od;
  take(old, i); tidy()
}

#ifdef TICKETS
/* Whether a fair waiter has a smaller ticket on this server than on another, and knows that. */
#define PLACES(v) (st[of(v)] == waiting && fair(of(v)) && READY(v) && !(at(v) == 0 && down) && ticket[v] != 0 && \
  ticket[v] < MINE(of(v)) && !many(votes(of(v))))
#endif

/* Whether a renewal would make the server join the hold. */
#define RENEWS(v) (st[of(v)] == holding && !in(overdue, of(v)) && READY(v) && !in(proved, v) && !(at(v) == 0 && down) && \
  (hold[at(v)] == of(v) || (hold[at(v)] == NONE && queue[at(v)] == 0)))

proctype Caller(byte i) {
end:
  do
  :: d_step { st[i] == idle && (!second(i) || st[i - 1] == over) -> become(i, waiting); begin(i); tidy() }
  :: d_step { TRIES(i) -> printf("client %d tries again\n", client(i)); begin(i); tidy() }
  :: d_step { TRIES_EARLY(i) -> earlies--; printf("client %d tries early\n", client(i)); begin(i); tidy() }
#ifndef TICKETS
#ifndef KEEP_MINORITY
  :: d_step { PUTS_BACK(i) -> putBack(i) }
  :: d_step { MINOR(i) && !PUTS_BACK(i) && earlies > 0 -> earlies--; putBack(i) }
#endif
#endif
  :: d_step { st[i] == holding && !in(stopped, i) -> become(i, over); takeBack(i); tidy() }
  :: d_step { st[i] == waiting && quits > 0 -> quits--; printf("client %d gives up\n", client(i)); become(i, over); takeBack(i); tidy() }
  :: d_step { st[i] == holding && lates > 0 && !in(overdue, i) -> lates--; put(overdue, i); tidy() }
  :: d_step { st[i] == holding && pauses > 0 && !in(overdue, i) -> pauses--; put(overdue, i); put(stopped, i); tidy() }
  /* The process resumes, and finds that it has lost the hold. */
  :: d_step { in(stopped, i) && !HELD(i) -> take(stopped, i); become(i, over); takeBack(i); tidy() }
#ifdef UNSAID
  :: d_step { st[i] == holding && !in(stopped, i) && !HELD(i) && hold[1] != i && hold[2] != i -> become(i, over); takeBack(i); tidy() }
#endif
  :: d_step { in(old, i) -> take(old, i); settle(i); tidy() }
  od
}

/* ---- steps of the network, and of time --------------------------------------------------------------------------- */

#define LEAVES(v) (in(leaves, v) && !REQUEST(v))
#define GIVES(v) (ask[v] == granted || ask[v] == refused)
#define HAS(v) (hold[at(v)] == of(v))
/* Whether the client stops counting the vote. */
#define ENDS(v) (in(proved, v) && (in(overdue, of(v)) || !HAS(v)))
#define ENDS_EARLY(v) (in(proved, v) && !ENDS(v) && lapses > 0 && st[of(v)] == waiting)
/* Whether the vote lapses on its server. The client has already stopped counting it. */
#define LAPSES_NOW(v) (HAS(v) && !in(proved, v) && (in(overdue, of(v)) || (lapses > 0 && st[of(v)] == waiting)))

inline lapse(v) {
  printf("redis: the vote of server %d for %d.%d lapses\n", at(v), client(of(v)), second(of(v)));
  lapses = lapses - !in(overdue, of(v));
  hold[at(v)] = NONE;
#ifndef FROM_REPLY
  ask[v] = (ask[v] == granted -> refused : ask[v]);
#endif
  tidy()
}

proctype Vote(byte v) {
end:
  do
  :: atomic { REQUEST(v) -> CHOICES(v); d_step { serve(v) } }
  :: atomic { LEAVES(v) -> CHOICES(v); d_step { leave(v) } }
#ifdef LATE_LEAVE
  :: d_step { in(again, v) && !in(leaves, v) -> leave(v) }
#endif
  :: d_step { GIVES(v) -> receive(v) }
  :: d_step { LOOKS(v) -> ask[v] = asking; tidy() }
#ifdef TICKETS
#ifndef KEEP_TICKETS
  :: d_step { PLACES(v) -> take(proved, v); ask[v] = placing; tidy() }
#endif
#endif
  :: d_step { RENEWS(v) -> ask[v] = renewing; tidy() }
  :: d_step { ENDS(v) -> take(proved, v); settle(of(v)); tidy() }
  :: d_step { ENDS_EARLY(v) -> lapses--; take(proved, v); settle(of(v)); tidy() }
  :: d_step { LAPSES_NOW(v) -> lapse(v) }
  od
}

/*
 * Server 0 stops. Its data is lost, and so are its replies that are under way. A leave to this server is dropped,
 * unless another request of the same caller is under way to this server: the leave has to run after that request.
 */
inline crash() {
  printf("redis: server 0 stops\n");
  crashes--; down = true; memory = clock[0]; clock[0] = 0; hold[0] = NONE; queue[0] = 0;
  w = 0;
  do
  :: w < IDS ->
     old = old | (in(proved, vote(w, 0)) << w);
     take(proved, vote(w, 0));
     ask[vote(w, 0)] = (GIVES(vote(w, 0)) -> refused : ask[vote(w, 0)]);
     leaves = (REQUEST(vote(w, 0)) -> leaves : leaves & ~(1 << vote(w, 0)));
     w++
  :: else -> break
  od;
  tidy()
}

inline restart() {
  printf("redis: server 0 restarts without its data\n");
  restarts--; down = false;
#ifndef COUNT_RESTARTED
  fresh = 3;
#endif
  tidy()
}

#ifdef OWN_LEASE
#define LONG_UP(c) ((old & (3 << ((c) * 2))) == 0)
#else
#define LONG_UP(c) (old == 0)
#endif

/*
 * Called when the votes of server 0 begin to count again for the client. If server 0 has voted for a waiter since its
 * restart, it may have given a token that is too small, because it had forgotten the last one. So the vote is given
 * back. An undecided attempt asks the server now.
 */
inline putBackYoung(i) {
#ifndef COUNT_YOUNG
  if
  :: st[i] == waiting && hold[0] == i ->
     put(leaves, vote(i, 0)); take(proved, vote(i, 0));
     ask[vote(i, 0)] = (REQUEST(vote(i, 0)) -> ask[vote(i, 0)] : nothing)
  :: st[i] == waiting && hold[0] != i && in(trying, i) && READY(vote(i, 0)) -> ask[vote(i, 0)] = asking
  :: else
  fi;
#endif
  settle(i)
}

inline count(c) {
  printf("client %d counts server 0 again\n", c);
  take(fresh, c); clock[0] = larger(clock[0], memory);
  putBackYoung(c * 2); putBackYoung(c * 2 + 1);
  tidy()
}

proctype Faults() {
end:
  do
  :: d_step { crashes > 0 -> crash() }
  :: d_step { restarts > 0 && down -> restart() }
  :: d_step { in(fresh, 0) && LONG_UP(0) -> count(0) }
  :: d_step { in(fresh, 1) && LONG_UP(1) -> count(1) }
  od
}

init {
  byte i;
  atomic {
    do
    :: i < IDS && exists(i) -> d_step { st[i] = idle }; i++
    :: i < IDS && !exists(i) -> i++
    :: i == IDS -> i = 0; break
    od;
    do
    :: i < IDS && exists(i) -> run Caller(i); run Vote(vote(i, 0)); run Vote(vote(i, 1)); run Vote(vote(i, 2)); i++
    :: i < IDS && !exists(i) -> i++
    :: i == IDS -> i = 0; break
    od;
    run Faults()
  }
}

#ifdef PROGRESS
ltl progress { []<> (holders > 0 || waiters == 0) } /* I4 */
#endif
