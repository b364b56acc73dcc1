/* SPDX-License-Identifier: Apache-2.0 */
/* see log.h */
#include "core/span/log.h"

#include "core/check.h"
#include "core/span/span.h"

#define LOG_KIND_SHIFT 62
enum { LOG_TIME, LOG_COST = 2, LOG_DEAD = 3 }; /* bits 63 and 62 */
#define LOG_DEAD_WORD (UINT64_C(3) << LOG_KIND_SHIFT)
#define LOG_SUM_MASK ((UINT64_C(1) << 48) - 1)

struct log_ring {
    uint64_t sum;
    uint32_t head, used, room, events, dead, events_max;
};

struct log_event {
    uint64_t time_ns, cost; /* cost 0: a dead word */
    uint32_t words;
};

/* What has not expired. */
struct log_view {
    uint64_t sum;
    uint32_t skipped, dead, events; /* words before it, and how many of them are dead; its events */
};

static uint32_t log_room(const struct weir_limit *limit, uint64_t word0)
{
    uint32_t room = word0 >> 32 & 0xffff;

    return room != 0 ? room : limit->span_words - LOG_HEADER_WORDS;
}

static void log_clear(struct log_ring *ring)
{
    ring->sum = 0;
    ring->head = ring->used = ring->events = ring->dead = 0;
}

/* False: the header cannot be right; the log is then empty. */
static bool log_load(const struct weir_limit *limit, const struct span_view *span,
                     struct log_ring *ring)
{
    uint64_t word0 = span_word(span, 0), word1 = span_word(span, 1);
    uint32_t most = span->words > LOG_HEADER_WORDS ? span->words - LOG_HEADER_WORDS : 0;

    ring->sum = word1 & LOG_SUM_MASK;
    ring->dead = (uint32_t)(word1 >> 48);
    ring->head = word0 & 0xffff;
    ring->used = word0 >> 16 & 0xffff;
    ring->room = log_room(limit, word0);
    ring->events = (uint32_t)(word0 >> 48);
    ring->events_max = log_events_max(limit);
    if (ring->room <= most && ring->used <= ring->room && ring->head < ring->room &&
        ring->events + ring->dead <= ring->used && (ring->events == 0) == (ring->used == 0))
        return true;
    if (ring->room > most)
        ring->room = most;
    log_clear(ring);
    return false;
}

static void log_store(const struct span_change *change, const struct log_ring *ring)
{
    uint64_t room = span_read(change, 0) >> 32 & 0xffff;

    if (ring->events == 0) {
        span_write(change, 0, room << 32);
        span_write(change, 1, 0);
        return;
    }
    span_write(change, 0,
               ring->head | (uint64_t)ring->used << 16 | room << 32 | (uint64_t)ring->events << 48);
    span_write(change, 1, (ring->sum & LOG_SUM_MASK) | (uint64_t)ring->dead << 48);
}

/* The word of the span that holds the i-th word used; i may be `used` to append. */
static uint32_t log_place(const struct log_ring *ring, uint32_t i)
{
    uint32_t at = ring->head + i;

    return LOG_HEADER_WORDS + (at < ring->room ? at : at - ring->room);
}

static uint64_t log_word(const struct span_change *change, const struct log_ring *ring, uint32_t i)
{
    return span_read(change, log_place(ring, i));
}

static uint32_t log_kind(uint64_t word)
{
    return (uint32_t)(word >> LOG_KIND_SHIFT);
}

/* The event, or the dead word, that begins at the i-th word used. */
static void log_read(const struct span_change *change, const struct log_ring *ring, uint32_t i,
                     struct log_event *event)
{
    uint64_t next = 0;

    event->time_ns = log_word(change, ring, i);
    event->cost = log_kind(event->time_ns) == LOG_DEAD ? 0 : 1;
    event->words = 1;
    if (event->cost == 0 || i + 1 >= ring->used)
        return;
    next = log_word(change, ring, i + 1);
    if (log_kind(next) == LOG_COST) {
        event->cost = (uint32_t)next;
        event->words = 2;
    }
}

/* The same for what ends before the i-th word used, i > 0. */
static void log_read_back(const struct span_change *change, const struct log_ring *ring, uint32_t i,
                          struct log_event *event)
{
    uint64_t word = log_word(change, ring, i - 1);

    event->time_ns = word;
    event->cost = log_kind(word) == LOG_DEAD ? 0 : 1;
    event->words = 1;
    if (log_kind(word) == LOG_COST && i > 1) {
        event->cost = (uint32_t)word;
        event->time_ns = log_word(change, ring, i - 2);
        event->words = 2;
    }
}

/* The time that the log decides at: never before its newest event. */
static uint64_t log_time(const struct span_change *change, const struct log_ring *ring,
                         uint64_t now_ns)
{
    struct log_event newest;

    if (ring->events == 0)
        return now_ns;
    log_read_back(change, ring, ring->used, &newest);
    return newest.time_ns > now_ns ? newest.time_ns : now_ns;
}

static void log_view(const struct weir_limit *limit, const struct span_change *change,
                     const struct log_ring *ring, uint64_t now_ns, struct log_view *view)
{
    struct log_event event;

    *view = (struct log_view){.sum = ring->sum, .events = ring->events};
    if (ring->events == 0)
        return;
    log_read_back(change, ring, ring->used, &event);
    if (event.time_ns + limit->spec.window_ns <= now_ns) {
        *view = (struct log_view){.skipped = ring->used, .dead = ring->dead};
        return;
    }
    for (; view->skipped < ring->used && view->events > 0; view->skipped += event.words) {
        log_read(change, ring, view->skipped, &event);
        if (event.cost == 0) {
            view->dead++;
            continue;
        }
        if (event.time_ns + limit->spec.window_ns > now_ns)
            return;
        view->sum = span_less(view->sum, event.cost);
        view->events--;
    }
    /* A damaged state: otherwise the newest event is live. */
    *view = (struct log_view){.skipped = ring->used, .dead = ring->dead};
}

bool log_test(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
              uint64_t cost)
{
    const struct span_change read_only = {.span = *span};
    struct log_ring ring;
    struct log_view view;

    if (cost > limit->spec.rate)
        return false;
    log_load(limit, span, &ring);
    if (ring.sum <= limit->spec.rate - cost) /* even if nothing has expired */
        return true;
    log_view(limit, &read_only, &ring, log_time(&read_only, &ring, now_ns), &view);
    return view.sum <= limit->spec.rate - cost;
}

/* Takes the first `words` words used off the ring, `dead` of which are dead. */
static void log_advance(struct log_ring *ring, uint32_t words, uint32_t dead)
{
    ring->head = log_place(ring, words) - LOG_HEADER_WORDS;
    ring->used -= words;
    ring->dead = (uint32_t)span_less(ring->dead, dead);
    if (ring->used == 0)
        ring->head = 0;
}

static void log_purge(const struct weir_limit *limit, const struct span_change *change,
                      struct log_ring *ring, uint64_t now_ns)
{
    struct log_view view;

    log_view(limit, change, ring, now_ns, &view);
    log_advance(ring, view.skipped, view.dead);
    ring->sum = view.sum;
    ring->events = view.events;
}

/* Takes the newest event off, and the dead words before it. Returns its cost. */
static uint64_t log_pop(const struct span_change *change, struct log_ring *ring)
{
    struct log_event event;

    log_read_back(change, ring, ring->used, &event);
    ring->used -= event.words;
    ring->events--;
    ring->sum = span_less(ring->sum, event.cost);
    while (ring->used > 0 && log_kind(log_word(change, ring, ring->used - 1)) == LOG_DEAD) {
        ring->used--;
        ring->dead = (uint32_t)span_less(ring->dead, 1);
    }
    if ((ring->events == 0) != (ring->used == 0)) /* of a damaged state */
        log_clear(ring);
    return event.cost;
}

static uint64_t log_add(uint64_t a, uint64_t b)
{
    return b > UINT32_MAX || a + b > UINT32_MAX ? UINT32_MAX : a + b;
}

/* Puts an event behind all others, whose times are not later. It joins the newest where that has
 * its time, where there are N already, or where no words are left. */
static void log_append(const struct span_change *change, struct log_ring *ring, uint64_t time_ns,
                       uint64_t cost)
{
    struct log_event newest;

    cost = log_add(0, cost);
    if (ring->events > 0) {
        log_read_back(change, ring, ring->used, &newest);
        if (newest.time_ns == time_ns || ring->events == ring->events_max)
            cost = log_add(cost, log_pop(change, ring));
    }
    while (ring->room - ring->used < (cost > 1 ? 2 : 1) && ring->events > 0)
        cost = log_add(cost, log_pop(change, ring));
    span_write(change, log_place(ring, ring->used++), time_ns);
    if (cost > 1)
        span_write(change, log_place(ring, ring->used++),
                   cost | (uint64_t)LOG_COST << LOG_KIND_SHIFT);
    ring->events++;
    ring->sum += cost;
}

void log_charge(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use)
{
    struct log_ring ring;

    if (use->cost == 0)
        return;
    log_load(limit, &change->span, &ring);

    uint64_t now_ns = log_time(change, &ring, use->now_ns);

    log_purge(limit, change, &ring, now_ns);
    log_append(change, &ring, now_ns, use->cost);
    log_store(change, &ring);
}

/* Takes an event out that begins at the i-th word used. */
static void log_remove(const struct span_change *change, struct log_ring *ring, uint32_t i,
                       const struct log_event *event)
{
    if (i + event->words == ring->used) {
        log_pop(change, ring);
        return;
    }
    ring->events--;
    ring->sum = span_less(ring->sum, event->cost);
    if (i > 0) {
        for (uint32_t word = 0; word < event->words; word++)
            span_write(change, log_place(ring, i + word), LOG_DEAD_WORD);
        ring->dead += event->words;
        return;
    }

    uint32_t dead = 0;

    while (event->words + dead < ring->used &&
           log_kind(log_word(change, ring, event->words + dead)) == LOG_DEAD)
        dead++;
    log_advance(ring, event->words + dead, dead);
}

void log_refund(const struct weir_limit *limit, const struct span_change *change,
                const struct weir_use *use)
{
    struct log_ring ring;
    struct log_event event;

    log_load(limit, &change->span, &ring);
    if (use->cost == 0 ||
        use->charged_at_ns + limit->spec.window_ns <= log_time(change, &ring, use->now_ns))
        return;
    for (uint32_t i = ring.used; i > 0; i -= event.words) {
        log_read_back(change, &ring, i, &event);
        if (event.cost == 0 || event.time_ns > use->charged_at_ns)
            continue;
        if (event.time_ns < use->charged_at_ns)
            return;
        if (use->cost >= event.cost) {
            log_remove(change, &ring, i - event.words, &event);
        } else {
            ring.sum = span_less(ring.sum, use->cost);
            span_write(change, log_place(&ring, i - 1),
                       (event.cost - use->cost) | (uint64_t)LOG_COST << LOG_KIND_SHIFT);
        }
        log_store(change, &ring);
        return;
    }
}

/* When enough has expired for `excess` to be gone: the expiry of the event that goes last until
 * then. Something live is in the way. */
static uint64_t log_retry_at(const struct weir_limit *limit, const struct span_change *change,
                             const struct log_ring *ring, uint32_t first, uint64_t excess)
{
    struct log_event event;
    uint32_t i = first;

    for (;; i += event.words) {
        log_read(change, ring, i, &event);
        if (event.cost >= excess || i + event.words >= ring->used)
            return event.time_ns + limit->spec.window_ns;
        excess -= event.cost;
    }
}

void log_report(const struct weir_limit *limit, const struct span_view *span,
                const struct weir_use *use, struct weir_report *report)
{
    const struct span_change read_only = {.span = *span};
    struct log_ring ring;
    struct log_view view;
    uint64_t rate = limit->spec.rate, fresh_at_ns = log_fresh_at(limit, span);

    log_load(limit, span, &ring);
    log_view(limit, &read_only, &ring, log_time(&read_only, &ring, use->now_ns), &view);
    report->limit = rate;
    report->remaining = view.sum < rate ? rate - view.sum : 0;
    report->reset_after_ns = fresh_at_ns > use->now_ns ? fresh_at_ns - use->now_ns : 0;
    report->retry_after_ns = 0;
    if (use->cost > rate)
        report->retry_after_ns = WEIR_NEVER;
    else if (view.sum + use->cost > rate)
        report->retry_after_ns = span_less(
            log_retry_at(limit, &read_only, &ring, view.skipped, view.sum + use->cost - rate),
            use->now_ns);
}

uint64_t log_fresh_at(const struct weir_limit *limit, const struct span_view *span)
{
    const struct span_change read_only = {.span = *span};
    struct log_ring ring;
    struct log_event newest;

    log_load(limit, span, &ring);
    if (ring.events == 0)
        return 0;
    log_read_back(&read_only, &ring, ring.used, &newest);
    return newest.time_ns + limit->spec.window_ns;
}

uint32_t log_span_words(const struct weir_limit *limit, const struct span_view *span)
{
    return LOG_HEADER_WORDS + log_room(limit, span_word(span, 0));
}

/* Whether a charge writes its event without joining one that it would not join in a larger ring. */
bool log_fits(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
              uint64_t cost, uint32_t count)
{
    const struct span_change read_only = {.span = *span};
    struct log_ring ring;
    struct log_event newest;

    if (cost == 0)
        return true;
    log_load(limit, span, &ring);
    now_ns = log_time(&read_only, &ring, now_ns);
    if (ring.room - ring.used >= 2)
        return true;
    log_purge(limit, &read_only, &ring, now_ns);

    uint32_t words = cost > 1 ? 2 : 1;

    if (ring.events > 0) {
        log_read_back(&read_only, &ring, ring.used, &newest);
        if (newest.time_ns == now_ns || ring.events == ring.events_max)
            words = newest.words == 1;
    }
    return ring.room - ring.used >= words;
}

uint32_t log_needs(const struct weir_span_source *source, const struct weir_limit *to,
                   uint64_t cost, uint32_t count)
{
    uint32_t words = cost > 1 ? 2 : (uint32_t)cost, most = log_words(to);

    if (source) {
        const struct span_change read_only = {.span = span_of_source(source)};
        struct log_ring ring;
        uint64_t now_ns;

        log_load(source->limit, &read_only.span, &ring);
        now_ns = log_time(&read_only, &ring, source->now_ns);
        log_purge(source->limit, &read_only, &ring, now_ns);
        words += (uint32_t)span_less(ring.used, ring.dead);
    }
    if (words < LOG_ROOM_MIN)
        words = LOG_ROOM_MIN;
    words += LOG_HEADER_WORDS;
    return words < most ? words : most;
}

/* In order. Where there is less room, the oldest keep their events and all the others become one,
 * which expires with the newest: nothing is forgotten, and nothing expires early. */
void log_resize(const struct weir_span_source *source, const struct weir_limit *to, uint64_t *out,
                uint32_t words)
{
    const struct span_change old = {.span = span_of_source(source)};
    const struct span_change made = {.span = {out, words > 0 ? words : to->span_words}};
    struct log_ring from, ring;
    struct log_view view;
    struct log_event event;

    if (words > 0)
        out[0] = (uint64_t)(words - LOG_HEADER_WORDS) << 32;
    log_load(source->limit, &old.span, &from);
    log_view(source->limit, &old, &from, log_time(&old, &from, source->now_ns), &view);
    log_load(to, &made.span, &ring);
    for (uint32_t i = view.skipped; i < from.used; i += event.words) {
        log_read(&old, &from, i, &event);
        if (event.cost > 0)
            log_append(&made, &ring, event.time_ns, event.cost);
    }
    log_store(&made, &ring);
}

void log_compact(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns)
{
    const struct span_change in_place = {.span = *span};
    struct log_ring ring;
    uint32_t kept = 0;

    log_load(limit, span, &ring);
    log_purge(limit, &in_place, &ring, log_time(&in_place, &ring, now_ns));
    for (uint32_t i = 0; i < ring.used; i++) {
        uint64_t word = log_word(&in_place, &ring, i);

        if (log_kind(word) != LOG_DEAD)
            span_write(&in_place, log_place(&ring, kept++), word);
    }
    ring.used = kept;
    ring.dead = 0;
    log_store(&in_place, &ring);
}

/* The words used are times in order, each perhaps with a cost, and dead words between them; they
 * make the numbers of the header. */
bool log_valid(const struct weir_limit *limit, const struct span_view *span)
{
    const struct span_change read_only = {.span = *span};
    struct log_ring ring;
    struct log_event event = {0, 1, 1};
    uint64_t sum = 0, latest_ns = 0;
    uint32_t events = 0, dead = 0;

    if (!log_load(limit, span, &ring) || ring.room < LOG_ROOM_MIN || ring.events > ring.events_max)
        return false;
    for (uint32_t i = 0; i < ring.used; i += event.words) {
        log_read(&read_only, &ring, i, &event);
        dead += event.cost == 0 && event.words == 1;
        if (event.words == 1 && event.cost == 0 && i > 0 && event.time_ns == LOG_DEAD_WORD)
            continue;
        if (event.cost == 0 || log_kind(event.time_ns) != LOG_TIME || event.time_ns < latest_ns)
            return false;
        latest_ns = event.time_ns;
        sum += event.cost;
        events++;
    }
    return event.cost > 0 && events == ring.events && sum == ring.sum && dead == ring.dead;
}

/* How long ago the c-th of the newest units was; 0: there are not so many. */
static uint64_t log_age(const struct weir_limit *limit, const struct span_view *span,
                        uint64_t now_ns, uint64_t c)
{
    const struct span_change read_only = {.span = *span};
    struct log_ring ring;
    struct log_event event;

    log_load(limit, span, &ring);
    for (uint32_t i = ring.used; i > 0; i -= event.words) {
        log_read_back(&read_only, &ring, i, &event);
        if (event.cost >= c)
            return span_less(now_ns, event.time_ns);
        c -= event.cost;
    }
    return 0;
}

void log_look(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
              uint64_t cost, struct weir_report *report)
{
    struct weir_use use = {.now_ns = now_ns, .cost = 1};
    struct weir_report next;

    log_report(limit, span, &use, &next);
    use.cost = next.remaining + 1; /* fits when the oldest expires */
    report->limit = WEIR_LOOK_LOG;
    report->remaining = next.limit - next.remaining;
    if (cost > 0) {
        report->retry_after_ns = log_age(limit, span, now_ns, cost);
        return;
    }
    log_report(limit, span, &use, &next);
    if (next.retry_after_ns < limit->spec.window_ns)
        report->retry_after_ns = limit->spec.window_ns - next.retry_after_ns;
}

int log_init(struct weir_limit *limit, struct weir_reason *reason)
{
    limit->span_words = log_words(limit);
    return 0;
}

uint32_t log_full_words(const struct weir_limit *limit)
{
    uint32_t least = log_needs(NULL, limit, 0, 1), full = LOG_HEADER_WORDS + log_events_max(limit);

    return least > full ? least : full;
}
