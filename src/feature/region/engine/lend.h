/* SPDX-License-Identifier: Apache-2.0 */
/* Lending at the engine: a decision that only floors deny is tried once more with units that the
 * homes of its keys have lent, or admit now; see feature/region/rules/region.h for floors and
 * homes.
 *
 * A region's worker holds portions of the home's state in advance (store/redis/share/share.h), by a
 * store on the Redis of that region. They are asked for in the background, from the moment on that
 * a floor is half used. A decision waits for another region only where its limit has `wait`, and no
 * longer: then the home decides what portions do not cover (question.h).
 *
 *   own limits ──▶ allowed    a floor is half used: its home is asked for a portion
 *        └───────▶ denied by floors alone
 *                     ├──▶ portions cover all of them    the units are taken, and the other checks
 *                     │        ├──▶ allowed              are decided once more, without the floors
 *                     │        ├──▶ denied, failed       the units go back into their portions
 *                     │        └──▶ failed, with an idempotency key: the units stay charged
 *                     ├──▶ not all, but the homes of the rest may be waited for: they are asked
 *                     │        ├──▶ all admit           as if portions covered them
 *                     │        └──▶ one denies, fails,  the units go back; denied by the home, or,
 *                     │             is late             if it has said nothing, by the floor
 *                     └──▶ they do not: denied; they are asked for
 *
 * Why the bound holds. A portion is charged at the home before its units can be taken, so what is
 * lent is a part of what the home's part of the limit admits. A unit is admitted once at most: it
 * goes back only where the request is denied, and only into the portion that it is of, while that
 * portion has not been settled (share_unspend). A request that is cancelled between the tries has
 * its units put back; of a process that dies then they stay charged. They also stay charged where a
 * request with an idempotency key is cancelled or fails then: the own store may have recorded it as
 * allowed, and admits its repetition without a charge. The time of a lent admission is that of
 * taking the unit.
 *
 * Where another limit denies the second try, that limit is to blame: the floor was covered, so that
 * it counts and reports as admitted.
 *
 * A limit of several rates lends each rate by itself: the rates that its floor denies come from the
 * home, the others are charged to the floor. Each rate's sum over all regions is bounded alone.
 *
 * Not lent: reservations, which are settled where they were charged; what a limit that is no floor
 * denies too; checks in shadow, which deny nobody. The same are not asked for. A denial says the
 * shorter of the waits for the floor and for the home.
 *
 * Memory: in the scratch of a decision that floors deny. Threads: those of the engine.
 */
#ifndef WEIR_ENGINE_LEND_H
#define WEIR_ENGINE_LEND_H

#include "engine/hook.h" /* weir_hook_lend */

#endif
