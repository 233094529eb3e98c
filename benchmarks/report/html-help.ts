/** The section "How to read this" of the HTML report. docs/benchmarks.md explains more. */
import { type Markup, markup } from './html-markup.ts'

export const help: Markup = markup`<section id="reading"><h2>How to read this page</h2>
<ul class="legend">
<li class="baton fair"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> redis-baton</li>
<li class="rival fair"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> rival that promises first come, first served</li>
<li class="rival"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> rival that promises no order (a ring, not a dot)</li>
<li class="floor fair"><svg class="sample" aria-hidden="true"><line class="range" x1="0" x2="100%" y1="50%" y2="50%"/><circle class="mark" cx="50%" cy="50%" r="5"/></svg> floor: not a usable lock, but the least work with which Redis can do the same</li>
</ul>
<dl>
<dt>A dot and its bar</dt>
<dd>The dot is the median of the rounds. The bar runs from the minimum to the maximum. If two bars overlap, this run does not show which
lock is faster.</dd>
<dt>“1 of 3 rounds”</dt>
<dd>This lock has figures from only 1 of 3 rounds. Either the run was interrupted, or the lock was not tried again in this scenario,
because it had failed or some calls had not returned. A single round does not show how steady a figure is.</dd>
<dt>Hand-off, together with “back to the releaser”</dt>
<dd>An acquisition counts as a hand-off only if the new holder was already waiting when the lock was released. If the waiters of a lock
poll, the caller that has just released mostly takes the lock again, because it is awake while the others sleep. Throughput is then high
because the lock is rarely handed over. The few hand-offs look short, too: releases follow each other closely, so a successful poll
always comes shortly after a release, even if its caller has waited for seconds. So compare short hand-offs only of locks whose share
“back to the releaser” is low. In the burst, each waiter asks only once, so the time to drain shows the real cost of handing over.</dd>
<dt>Jain’s index</dt>
<dd>How evenly the acquisitions were shared among <i>n</i> waiters: 1 if all waiters had equally many, 1/<i>n</i> if one waiter had all.
For example, the index is 0.5 if half of the waiters share all acquisitions equally and the other half get none.</dd>
<dt>Overtaken, longest wait, starved</dt>
<dd>“Overtaken by at most” is the largest number of later requests that were granted before one earlier request. 0 means strict order.
Even a strict queue may overtake a few requests, because requests sent at about the same time may arrive in another order. A starved waiter did not
get the lock in the whole trial, so no other figure contains its wait.</dd>
<dt>Floors</dt>
<dd>The floors are a token popped from a list (floor-blpop), a token passed by a message (floor-publish), a message to all readers
(floor-broadcast), and a bare SET with a compare-and-delete (floor-set). They lack what a lock needs, such as a lease or fencing, and
floor-set cannot wait. Every hand-off of floor-publish goes to the other process. Hand-offs of floor-blpop may stay within a process,
and some locks hand over within a process without Redis. So also compare “hand-off p50 across processes”.</dd>
<dt>Overlaps</dt>
<dd>How often the lock was granted while others already held it. It must be 0. A larger number means that the lock does not exclude.</dd>
<dt>Ratios, not absolutes</dt>
<dd>The locks took turns within one run on one machine. Compare figures of this page with each other, but not with figures of another run.</dd>
</dl></section>`
