/** The section "How to read this" of the HTML report. docs/benchmarks.md and benchmarks/README.md explain more. */
import { type Markup, markup } from './html-markup.ts'

export const help: Markup = markup`<section id="reading"><h2>How to read this page</h2>
<ul class="legend">
<li class="baton fair"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> redis-baton</li>
<li class="rival fair"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> lock of another library that promises first come, first served</li>
<li class="rival"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> lock of another library that promises no order (drawn as a ring instead of a dot)</li>
<li class="floor fair"><svg class="sample" aria-hidden="true"><line class="range" x1="0" x2="100%" y1="50%" y2="50%"/><circle class="mark" cx="50%" cy="50%" r="5"/></svg> floor: the least work that Redis needs for the same hand-offs; a floor is not a usable lock</li>
</ul>
<dl>
<dt>A dot and its bar</dt>
<dd>The dot is the median of the rounds. The bar runs from the minimum to the maximum. If two bars overlap, this run does not show which
lock is faster.</dd>
<dt>“1 of 3 rounds”</dt>
<dd>This lock has figures from only 1 of 3 rounds. Either the run was interrupted, or the lock was left out of the later rounds of this
scenario, because it failed or some of its calls never returned. A single round does not show how much a figure varies.</dd>
<dt>Hand-off, together with “back to the releaser”</dt>
<dd>An acquisition counts as a hand-off only if the new holder was already waiting when the lock was released. If the waiters of a lock
poll, the caller that has just released mostly takes the lock again, because it is awake while the others sleep. Throughput is then high
because the lock is rarely handed over. The few hand-offs also look fast: a hand-off is measured from the last release, and there are so
many releases that the last one is always recent, even if the new holder has waited for seconds. So compare hand-off times only between
locks whose share “back to the releaser” is low. In the burst scenarios, each waiter takes the lock only once, so the time to drain shows
the real cost of handing over.</dd>
<dt>Jain’s index</dt>
<dd>How evenly the acquisitions were shared among <i>n</i> waiters: 1 if all waiters had equally many, 1/<i>n</i> if one waiter had all.
For example, the index is 0.5 if half of the waiters share all acquisitions equally and the other half get none.</dd>
<dt>Overtaken, longest wait, starved</dt>
<dd>“Overtaken by at most” says how many later requests were granted before an earlier one, in the worst case. 0 means strict order.
Even a strict queue may overtake a few requests, because requests sent at about the same time may arrive in another order. A starved waiter did not
get the lock during the whole measurement, so no other figure contains its wait.</dd>
<dt>Floors</dt>
<dd>The floors are a token popped from a list (floor-blpop), a token passed by a message (floor-publish), a message to all readers
(floor-broadcast), and a bare SET with a compare-and-delete (floor-set). They lack what a lock needs, such as a lease or fencing, and
floor-set cannot wait. A hand-off within a process may be cheaper than one to another process. Every hand-off of floor-publish goes to the
other process, some hand-offs of floor-blpop stay within a process, and some locks hand over within a process without Redis. So compare
locks and floors also by “hand-off p50 across processes”.</dd>
<dt>Overlaps</dt>
<dd>How often the lock was granted while another caller held it. This number must be 0. Any larger number means that the lock does not do its job.</dd>
<dt>Compare figures only within this page</dt>
<dd>All locks were measured in turn, in one run on one machine. Figures of another run come from other conditions, so do not compare them with figures of this page.</dd>
</dl></section>`
