/** How to read the page. docs/benchmarks.md explains it at length. */
import { type Markup, markup } from './html-markup.ts'

export const help: Markup = markup`<section id="reading"><h2>How to read this</h2>
<ul class="legend">
<li class="baton fair"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> redis-baton</li>
<li class="rival fair"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> rival that promises first come, first served</li>
<li class="rival"><svg class="sample" aria-hidden="true"><circle class="mark" cx="50%" cy="50%" r="5"/></svg> rival that promises no order (a ring, not a dot)</li>
<li class="floor fair"><svg class="sample" aria-hidden="true"><line class="range" x1="0" x2="100%" y1="50%" y2="50%"/><circle class="mark" cx="50%" cy="50%" r="5"/></svg> floor: not a lock to use, but the least that Redis needs for the same thing</li>
</ul>
<dl>
<dt>A dot and its bar</dt>
<dd>The median of the rounds, and the least and the greatest of them. If two bars overlap, this run does not tell which is faster.</dd>
<dt>“1 of 3 rounds”</dt>
<dd>A lock that failed in a scenario, or left calls that did not return, was not tried there again; or the run was interrupted. The
figures are of fewer rounds than those beside them, and of one round nothing tells how steady they are.</dd>
<dt>Hand-off, together with “back to the releaser”</dt>
<dd>A hand-off counts only where the next owner was already waiting when the lock was released. A lock whose waiters poll is mostly
taken again by the one that has just released it: it is awake, the others sleep. Throughput is high because hardly anything is handed
to anybody. Its few hand-offs look short too: releases follow each other so closely that whoever gets through at last, perhaps after
seconds, finds one just before. A low hand-off counts where the share that goes back is low as well. The burst, where each waiter
comes only once, shows what handing over really costs.</dd>
<dt>Jain’s index</dt>
<dd>How evenly acquisitions were shared among <i>n</i> waiters: 1 if all had as many, 1/<i>n</i> if one had all. 0.5 is as if half of the
waiters had shared everything and the other half had got nothing.</dd>
<dt>Overtaken, longest wait, starved</dt>
<dd>How many requests that were made later got the lock before one that was made earlier, at the most; 0 is strict order, and a few are
due to requests under way at the same time. A starved waiter got nothing in the whole trial, so its wait is in no other figure.</dd>
<dt>Floors</dt>
<dd>A token popped from a list, a token passed by a message, and a bare SET with a checked delete. They have no lease and no fencing,
or nobody who waits. The message floor crosses to the other process each time and the list floor does not, and some locks need no Redis
within a process: compare “hand-off p50 across processes” too.</dd>
<dt>Overlaps</dt>
<dd>Two holders at once. Anything but 0 means that it was not a lock.</dd>
<dt>Ratios, not absolutes</dt>
<dd>The locks took turns within one run on one machine. Compare figures of this page with each other, not with those of another.</dd>
</dl></section>`
