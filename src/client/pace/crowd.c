/* SPDX-License-Identifier: Apache-2.0 */
/* see crowd.h */
#include "client/pace/crowd.h"

#include "base/random.h"
#include "client/instant.h"

/* Others: used > NOTICED * own - (NOTICED - 1), so that one's own first request is none. */
#define NOTICED 4
/* The second request goes in this part of the time that is left. */
#define PROBE_FROM 0.04
#define PROBE_SPAN 0.08
#define PROBE_MOST_NS UINT64_C(30000000000)
/* The part of the limit that is aimed at. */
#define AIM 0.98
/* A projection before this part of the window says little. */
#define EARLY 0.16
/* But where so much seems unused, one slot is moved to where more can be seen: by this chance, or
 * surely where nobody else has sent. It is moved into the next window: where clients have about one
 * unit each and all is used, a second request in this one is refused. */
#define UNUSED_EARLY 0.6
#define MOVED 0.3
#define MOVED_FROM 1.0 /* windows from now; */
#define MOVED_FEW 0.5  /* where each client has so many units or more: */
#define FEW 3
#define MOVED_SPAN 0.3
/* So far above the limit the projected use shrinks the slots. */
#define OVER 0.08
/* A large unused part comes from clients that end, and more will follow. */
#define LARGE 0.05
#define BOOST 3
#define GROWTH_MOST 6 /* times the slots */
/* What stays unused is known when half of the window has passed. A client whose last requests fit
 * into this share of it sends them at once; one that only knows which requests wait, and that more
 * may come, takes less: all others do so at the same time. */
#define SPARE_FROM 0.5
#define SPARE_LARGE 1.2
#define SPARE_SHARE 0.5
#define SPARE_SHARE_WAITING 0.1
/* A window of slots is longer by 1/250, so that the unit is free when its slot comes. */
#define LONGER 250

bool weir_crowd_valid(const struct weir_crowd *crowd, uint64_t most_ns)
{
    return crowd->state <= WEIR_CROWD_HOLDING && crowd->slots <= WEIR_CROWD_SLOTS_MOST &&
           crowd->counted_ns <= most_ns && crowd->sent_ns <= most_ns &&
           crowd->found_ns <= most_ns && crowd->adjusted_ns <= most_ns + WEIR_INSTANT_HORIZON_NS &&
           crowd->next_ns <= most_ns + WEIR_INSTANT_HORIZON_NS && crowd->clients >= 0 &&
           crowd->clients < 1e18 && crowd->probe >= -1 && crowd->probe <= 1 &&
           crowd->spare > -1e18 && crowd->spare < 1e18 && crowd->least > -1e18 && crowd->least <= 1;
}

static double chance(uint64_t *seed)
{
    return (double)weir_random_up_to(seed, 999999) / 1e6;
}

uint64_t weir_crowd_interval(const struct weir_crowd *crowd, uint64_t window_ns, uint64_t margin_ns)
{
    uint32_t slots = crowd->state == WEIR_CROWD_FINDING ? crowd->admitted : crowd->slots;

    return (window_ns + window_ns / LONGER + margin_ns) / (slots > 1 ? slots : 1);
}

static uint64_t interval_of(const struct weir_crowd *crowd, const struct weir_crowd_view *view)
{
    return weir_crowd_interval(crowd, view->window_ns, view->margin_ns);
}

void weir_crowd_send(struct weir_crowd *crowd, uint64_t window_ns, uint64_t margin_ns,
                     uint64_t now_ns)
{
    if (now_ns > crowd->counted_ns + window_ns) {
        crowd->own_before = now_ns > crowd->counted_ns + 2 * window_ns ? 0 : crowd->own_now;
        crowd->own_now = 0;
        crowd->counted_ns = now_ns;
    }
    crowd->own_now++;
    if (crowd->state != WEIR_CROWD_NONE && now_ns > crowd->sent_ns + 2 * window_ns) {
        crowd->state = WEIR_CROWD_NONE;
        crowd->anew = 1;
    }
    crowd->sent_ns = now_ns;
    crowd->next_ns = now_ns + weir_crowd_interval(crowd, window_ns, margin_ns);
}

/* After the reset, as far from the last request as slots are, and not all clients at once. */
static void wait_for_reset(struct weir_crowd *crowd, const struct weir_crowd_view *view,
                           uint64_t *seed)
{
    uint64_t interval = interval_of(crowd, view), next = crowd->sent_ns + interval;

    if (crowd->adjusted_ns == crowd->found_ns || next < view->reset_hi_ns)
        next = view->reset_hi_ns;
    crowd->next_ns = next + weir_random_up_to(seed, interval / 2);
}

static void find(struct weir_crowd *crowd, const struct weir_crowd_view *view, uint64_t used,
                 uint64_t *seed)
{
    uint64_t own = crowd->own_now + crowd->own_before;

    if (crowd->clients == 0 && crowd->probe >= 0)
        crowd->clients = (double)used / (1 + crowd->probe);
    else if (crowd->clients == 0)
        crowd->clients = used > own ? (double)(used - own + 1) : 1;
    double room = (double)view->remaining / crowd->clients;
    if (room < 1 || view->reset_hi_ns <= view->now_ns)
        wait_for_reset(crowd, view, seed);
    else
        crowd->next_ns =
            view->now_ns + (uint64_t)((double)(view->reset_hi_ns - view->now_ns) / room);
}

static void begin(struct weir_crowd *crowd, const struct weir_crowd_view *view, uint64_t used,
                  bool first, uint64_t *seed)
{
    uint64_t left_ns = view->reset_hi_ns > view->now_ns ? view->reset_hi_ns - view->now_ns : 0;

    crowd->state = WEIR_CROWD_FINDING;
    crowd->found_ns = view->reset_hi_ns;
    /* A window that all have begun together leaves gaps in the next one that are taken. */
    crowd->adjusted_ns = crowd->found_ns + (left_ns > view->window_ns / 2 ? view->window_ns : 0);
    crowd->clients = 0;
    crowd->probe = -1;
    crowd->used = used;
    crowd->admitted = first ? 1 : crowd->own_now + crowd->own_before;
    if (!first) {
        find(crowd, view, used, seed);
    } else if (view->remaining < used && left_ns <= PROBE_MOST_NS) {
        wait_for_reset(crowd, view, seed);
    } else {
        crowd->probe = chance(seed);
        crowd->next_ns =
            view->now_ns + (uint64_t)((double)(left_ns < PROBE_MOST_NS ? left_ns : PROBE_MOST_NS) *
                                      (PROBE_FROM + PROBE_SPAN * crowd->probe));
    }
}

static void hold(struct weir_crowd *crowd)
{
    crowd->state = WEIR_CROWD_HOLDING;
    crowd->slots = crowd->admitted > 1 ? crowd->admitted : 1;
    if (crowd->slots > WEIR_CROWD_SLOTS_MOST)
        crowd->slots = WEIR_CROWD_SLOTS_MOST;
    crowd->least = 1;
    crowd->spare = 0;
}

void weir_crowd_refused(struct weir_crowd *crowd)
{
    if (crowd->state == WEIR_CROWD_FINDING) {
        crowd->admitted -= crowd->admitted > 0; /* its answer was counted */
        hold(crowd);
    } else if (crowd->state == WEIR_CROWD_HOLDING && crowd->slots > 0) {
        crowd->slots--;
    }
}

/* By how many slots more or less, at the end of a third of a window. */
static double change_of(const struct weir_crowd *crowd, uint64_t limit)
{
    double slots = crowd->slots > 1 ? crowd->slots : 1, unused = crowd->least;

    if (unused >= 1)
        return 0;
    if (unused <= 0)
        return unused > -OVER || slots < 2 ? 0 : unused < -0.5 ? -slots / 2 : slots * unused;
    double more = slots * unused / (AIM - unused < 0.01 ? 0.01 : AIM - unused);
    double even = crowd->clients > 0 ? unused * (double)limit / crowd->clients : 0;
    more = even > more ? even : more;
    more = unused > LARGE ? BOOST * more : more;
    return more < GROWTH_MOST * slots ? more : GROWTH_MOST * slots;
}

static void adjust(struct weir_crowd *crowd, const struct weir_crowd_view *view, uint64_t *seed)
{
    double change = change_of(crowd, view->limit);
    int64_t whole = (int64_t)change - (change < 0);
    int64_t slots = crowd->slots + whole + (chance(seed) < change - (double)whole);

    if (slots < 1 && change < 0)
        slots = 1;
    crowd->slots = slots < WEIR_CROWD_SLOTS_MOST ? (uint32_t)slots : WEIR_CROWD_SLOTS_MOST;
    crowd->least = 1;
    crowd->adjusted_ns = view->now_ns;
}

/* Moves a slot to where more of a window can be seen. */
static void move(struct weir_crowd *crowd, const struct weir_crowd_view *view, uint64_t *seed)
{
    bool few = crowd->clients > 0 && (double)view->limit >= FEW * crowd->clients;
    double windows = (few ? MOVED_FEW : MOVED_FROM) + MOVED_SPAN * chance(seed);

    crowd->next_ns = view->now_ns + (uint64_t)((double)view->window_ns * windows);
}

/* Takes what an answer says of the use of this window: `part` of it has passed. */
static void observe(struct weir_crowd *crowd, const struct weir_crowd_view *view, double part,
                    double unused, uint64_t *seed)
{
    bool lasting = part >= EARLY && part >= SPARE_FROM * (SPARE_LARGE - unused) &&
                   view->now_ns >= crowd->adjusted_ns;
    crowd->spare = lasting ? unused * (double)view->limit : 0;
    if (view->remaining == 0)
        crowd->least = crowd->least < 0 ? crowd->least : 0;
    else if (part >= EARLY && unused < crowd->least)
        crowd->least = unused;
    if (view->now_ns >= crowd->adjusted_ns + view->window_ns / 10 * 3)
        adjust(crowd, view, seed);
    uint64_t next = view->now_ns + interval_of(crowd, view);
    crowd->next_ns = crowd->next_ns < next ? crowd->next_ns : next;
    if (part < EARLY && crowd->slots <= 1 && unused > UNUSED_EARLY &&
        (unused >= 1 || chance(seed) < MOVED * unused))
        move(crowd, view, seed);
}

static void leave(struct weir_crowd *crowd, uint64_t used)
{
    *crowd = (struct weir_crowd){.used = used,
                                 .own_now = crowd->own_now,
                                 .own_before = crowd->own_before,
                                 .counted_ns = crowd->counted_ns,
                                 .sent_ns = crowd->sent_ns};
}

/* What this client can have used of a window: slots that have just grown were not. */
static uint64_t own_of(const struct weir_crowd *crowd)
{
    uint64_t sent = (uint64_t)crowd->own_now + crowd->own_before;
    uint64_t own = crowd->slots < sent ? crowd->slots : sent;

    return own > 1 ? own : 1;
}

bool weir_crowd_learn(struct weir_crowd *crowd, const struct weir_crowd_view *view, uint64_t *seed)
{
    uint64_t used = view->limit > view->remaining ? view->limit - view->remaining : 0;
    uint64_t middle = view->reset_lo_ns / 2 + view->reset_hi_ns / 2;
    uint64_t left_ns = middle > view->now_ns ? middle - view->now_ns : 0;
    double part = left_ns < view->window_ns
                      ? (double)(view->window_ns - left_ns) / (double)view->window_ns
                      : 0;
    bool first = view->unseen > 0 || crowd->anew;

    crowd->anew = 0;
    if (view->unseen > 0) {
        crowd->own_now =
            view->unseen < WEIR_CROWD_SLOTS_MOST ? (uint32_t)view->unseen : WEIR_CROWD_SLOTS_MOST;
        crowd->counted_ns = crowd->sent_ns = view->now_ns;
        crowd->used = 0;
    }
    if (crowd->state == WEIR_CROWD_NONE) {
        uint64_t own = (uint64_t)crowd->own_now + crowd->own_before;
        crowd->used = crowd->used < used ? crowd->used : used;
        if (used - crowd->used > NOTICED * own - (NOTICED - 1))
            begin(crowd, view, used, first && own == 1, seed);
        return false;
    }
    if (crowd->state == WEIR_CROWD_FINDING && view->now_ns >= crowd->found_ns)
        hold(crowd);
    if (crowd->state == WEIR_CROWD_FINDING) {
        crowd->admitted++;
        if (crowd->admitted == 2 && crowd->probe >= 0 && used <= crowd->used + 1 &&
            view->remaining > 0) {
            leave(crowd, used); /* by whom it was used, has ended */
            return true;
        }
        find(crowd, view, used, seed);
        return false;
    }
    if (part > 0.25 && used <= own_of(crowd)) {
        leave(crowd, 0);
        return true;
    }
    part = part > 0.001 ? part : 0.001;
    double unused = AIM - (double)used / part / (double)view->limit;
    observe(crowd, view, part, used <= 1 && part < EARLY ? 1 : unused, seed);
    return false;
}

uint64_t weir_crowd_when(const struct weir_crowd *crowd, uint64_t expected, uint64_t waiting,
                         uint64_t now_ns)
{
    bool fits = (double)expected <= crowd->spare * SPARE_SHARE ||
                (double)waiting <= crowd->spare * SPARE_SHARE_WAITING;
    return crowd->state == WEIR_CROWD_HOLDING && fits ? now_ns : crowd->next_ns;
}
