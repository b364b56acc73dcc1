/* SPDX-License-Identifier: Apache-2.0 */
/* see share_server.h */
#include "share_server.h"

#include <math.h>
#include <string.h>

#include "core/span/segments.h"

enum { NO_RECORD = -1 };

void share_server_init(struct share_server *server)
{
    memset(server, 0, sizeof *server);
}

/* --- The state, cell or span ------------------------------------------------------------------ */

static bool test(const struct share_server *server, const struct weir_limit *limit, uint64_t at_ns,
                 uint64_t cost)
{
    uint64_t delay_ns;

    return limit->span_words > 0 ? weir_span_test(limit, server->span, at_ns, cost)
                                 : weir_cell_test(limit, &server->cell, at_ns, cost, &delay_ns);
}

static void charge(struct share_server *server, const struct weir_limit *limit, uint64_t at_ns,
                   uint64_t cost)
{
    struct weir_use use = {.now_ns = at_ns, .cost = cost};
    struct weir_edits edits;

    if (limit->span_words == 0) {
        weir_cell_charge(limit, &server->cell, at_ns, cost);
        return;
    }
    if (!weir_span_fits(limit, server->span, at_ns, cost, 1))
        weir_span_compact(limit, server->span, at_ns);
    weir_span_charge(limit, server->span, &use, &edits);
    weir_edits_apply(&edits, server->span);
}

static void refund(struct share_server *server, const struct weir_limit *limit, uint64_t now_ns,
                   uint64_t charged_at_ns, uint64_t cost)
{
    struct weir_use use = {.now_ns = now_ns, .cost = cost, .charged_at_ns = charged_at_ns};
    struct weir_edits edits;

    if (limit->span_words == 0) {
        weir_cell_refund(limit, &server->cell, now_ns, charged_at_ns, cost);
        return;
    }
    weir_span_refund(limit, server->span, &use, &edits);
    weir_edits_apply(&edits, server->span);
}

static void report(const struct share_server *server, const struct weir_limit *limit,
                   uint64_t now_ns, uint64_t cost, struct weir_report *out)
{
    struct weir_use use = {.now_ns = now_ns, .cost = cost};

    if (limit->span_words > 0)
        weir_span_report(limit, server->span, &use, false, out);
    else
        weir_cell_report(limit, &server->cell, &use, false, out);
}

bool share_server_decide(struct share_server *server, const struct weir_limit *limit, uint64_t cost,
                         uint64_t now_ns)
{
    if (!test(server, limit, now_ns, cost))
        return false;
    charge(server, limit, now_ns, cost);
    return true;
}

/* --- Records ---------------------------------------------------------------------------------- */

static bool live(const struct share_server_record *record, uint64_t now_ns)
{
    for (int i = 0; i < SHARE_PORTIONS; i++)
        if (record->portion[i].id != 0 && record->portion[i].end_ns > now_ns)
            return true;
    return false;
}

static bool forgotten(const struct share_server_record *record, uint64_t now_ns)
{
    uint64_t last_ns = record->seen_ns;

    for (int i = 0; i < SHARE_PORTIONS; i++)
        if (record->portion[i].id != 0 && record->portion[i].end_ns > last_ns)
            last_ns = record->portion[i].end_ns;
    return last_ns + SHARE_SERVER_KEEP_NS <= now_ns;
}

/* Forgets the dead, finds the caller, and adds up the demand of those who hold nothing. */
static int find(struct share_server *server, uint64_t holder, uint64_t now_ns, double *waiting)
{
    uint32_t kept = 0;
    int found = NO_RECORD;

    *waiting = 0;
    for (uint32_t i = 0; i < server->count; i++) {
        struct share_server_record *record = &server->record[i];

        if (record->holder != holder && forgotten(record, now_ns))
            continue;
        if (record->holder == holder)
            found = (int)kept;
        else if (!live(record, now_ns))
            *waiting += (double)record->demand;
        server->record[kept++] = *record;
    }
    for (uint32_t i = kept; i < server->count; i++)
        memset(&server->record[i], 0, sizeof server->record[i]);
    server->count = kept;
    return found;
}

static struct share_server_record *new_record(struct share_server *server, uint64_t holder)
{
    struct share_server_record *record = &server->record[server->count];

    server->count++;
    record->holder = holder;
    return record;
}

/* --- Giving and taking back --------------------------------------------------------------------
 */

static bool is_bucket(const struct weir_limit *limit)
{
    return limit->spec.algorithm >= WEIR_TOKEN_BUCKET && limit->spec.algorithm <= WEIR_LEAKY_BUCKET;
}

static void settle(struct share_server *server, const struct weir_limit *limit,
                   struct share_server_record *record, const struct share_call *call,
                   uint64_t now_ns, uint64_t *forfeited)
{
    for (int i = 0; i < SHARE_PORTIONS; i++) {
        const struct share_settlement *settled = &call->settled[i];
        struct share_server_portion *portion = &record->portion[i];

        if (settled->id == 0 || portion->id != settled->id)
            continue;

        uint64_t unused = portion->amount > settled->used ? portion->amount - settled->used : 0;

        if (is_bucket(limit) && (now_ns > portion->end_ns || portion->end_ns != server->end_ns)) {
            *forfeited += unused;
        } else {
            refund(server, limit, now_ns, portion->at_ns, unused);
            server->returned += unused;
        }
        memset(portion, 0, sizeof *portion);
    }
}

/* When a portion given now would end, and the time that it is charged at. */
struct terms {
    uint64_t end_ns, charged_at_ns,
        longer_at_ns; /* longer_at_ns: asking then gives a longer life */
    bool renewable;
    double room; /* units to be had, about */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void window_terms(const struct share_server *server, const struct weir_limit *limit,
                         const struct share_call *call, uint64_t now_ns, struct terms *terms)
{
    uint64_t w = limit->segment_ns;
    uint64_t newest = limit->span_words > 0 ? server->span[0] : server->cell.a;
    uint64_t index = most(now_ns / w, newest), segment_end_ns = (index + 1) * w;
    struct weir_report known;

    report(server, limit, now_ns, 1, &known);
    terms->room = (double)known.remaining;
    terms->end_ns = least(now_ns + call->life_ns, segment_end_ns);
    terms->renewable = terms->end_ns < segment_end_ns;
    terms->charged_at_ns = most(now_ns, index * w);
    terms->longer_at_ns = segment_end_ns;
}

static void log_terms(const struct share_server *server, const struct weir_limit *limit,
                      const struct share_call *call, uint64_t now_ns, struct terms *terms)
{
    uint64_t w = limit->spec.window_ns, fresh_at_ns = weir_span_fresh_at(limit, server->span);
    uint64_t at_ns = fresh_at_ns > now_ns + w ? fresh_at_ns - w : now_ns;
    struct weir_limit endless = *limit; /* so that what is used, and one more, is admitted ... */
    struct weir_report known;

    endless.spec.rate = WEIR_RATE_MAX;
    report(server, &endless, now_ns, 1, &known);

    uint64_t used = WEIR_RATE_MAX - known.remaining;

    terms->room = (double)limit->spec.rate - (double)used;
    terms->end_ns = now_ns + call->life_ns;
    if (used > 0) { /* ... once the oldest has expired */
        report(server, &endless, now_ns, known.remaining + 1, &known);

        uint64_t expiry_ns = now_ns + known.retry_after_ns;

        terms->end_ns = least(terms->end_ns, expiry_ns - 1000);
        terms->longer_at_ns = expiry_ns;
    }
    terms->end_ns = most(terms->end_ns, at_ns);
    terms->charged_at_ns = terms->end_ns;
    terms->renewable = true;
}

/* As lua/share.lua has it: the state is us and units, `unit` of which are a microsecond. */
static void bucket_terms(const struct share_server *server, const struct weir_limit *limit,
                         const struct share_call *call, uint64_t now_ns, struct terms *terms)
{
    uint64_t over_ns = server->cell.a > now_ns ? server->cell.a - now_ns : 0;
    uint64_t life_ns = most(call->life_ns, least(over_ns / 1000 * 1000, call->life_long_ns));
    double unit = (double)limit->denom * 1000, period, depth, owed;

    terms->end_ns = now_ns + life_ns;
    if (over_ns < life_ns)
        owed = (double)(life_ns / 1000) * unit;
    else
        owed = (double)(over_ns / 1000) * unit +
               (double)(over_ns % 1000 * limit->denom + server->cell.b);
    period = (double)limit->period_ns * (double)limit->denom + (double)limit->period_rem;
    depth = (double)(limit->depth_ns / 1000) * unit +
            (double)(limit->depth_ns % 1000 * limit->denom + limit->depth_rem);
    terms->room = floor((depth - owed) / period);
    terms->charged_at_ns = terms->end_ns;
    terms->renewable = true;
    terms->longer_at_ns = now_ns;
}

/* Buckets are tested at the time of the call, on a state that has moved to the portion's end. */
static bool admits(const struct share_server *server, const struct weir_limit *limit,
                   const struct terms *terms, uint64_t now_ns, uint64_t cost)
{
    struct share_server moved;

    if (!is_bucket(limit))
        return test(server, limit, terms->charged_at_ns, cost);
    moved.cell = server->cell;
    if (moved.cell.a < terms->end_ns)
        moved.cell = (struct weir_cell){terms->end_ns, 0};
    return test(&moved, limit, now_ns, cost);
}

/* The caller's part of the room: by demand, among those who hold nothing now. */
static uint64_t amount_of(const struct share_server *server, const struct weir_limit *limit,
                          const struct share_call *call, const struct terms *terms, uint64_t now_ns,
                          double waiting)
{
    double part = floor(terms->room * (double)call->demand / ((double)call->demand + waiting));
    double amount = fmin((double)call->want, fmax((double)call->need, part));

    if (!admits(server, limit, terms, now_ns, call->need))
        return 0;
    if (amount > (double)call->need && !admits(server, limit, terms, now_ns, (uint64_t)amount))
        amount = (double)call->need;
    return (uint64_t)amount;
}

static void give(struct share_server *server, const struct weir_limit *limit,
                 struct share_server_record *record, const struct share_call *call, uint64_t now_ns,
                 double waiting, struct share_reply *reply)
{
    struct terms terms;
    struct share_server_portion *portion = &record->portion[call->place];

    memset(portion, 0, sizeof *portion);
    if (is_bucket(limit))
        bucket_terms(server, limit, call, now_ns, &terms);
    else if (limit->spec.algorithm == WEIR_SLIDING_LOG)
        log_terms(server, limit, call, now_ns, &terms);
    else
        window_terms(server, limit, call, now_ns, &terms);

    uint64_t amount = amount_of(server, limit, call, &terms, now_ns, waiting);

    if (amount == 0) {
        /* A full bucket has less room for a portion than for an exact decision. */
        reply->too_short = is_bucket(limit) && test(server, limit, now_ns, call->need);
        reply->retry_ns = call->life_min_ns;
        return;
    }
    if (terms.end_ns < now_ns + call->life_min_ns) {
        reply->too_short = true;
        reply->retry_ns = terms.longer_at_ns - now_ns;
        return;
    }
    if (is_bucket(limit) && server->cell.a < terms.end_ns)
        server->cell = (struct weir_cell){terms.end_ns, 0};
    charge(server, limit, is_bucket(limit) ? now_ns : terms.charged_at_ns, amount);
    server->charged += amount;
    server->end_ns = most(server->end_ns, terms.end_ns);
    *portion = (struct share_server_portion){call->id, amount, terms.charged_at_ns, terms.end_ns};
    reply->amount = amount;
    reply->life_ns = terms.end_ns - now_ns;
    reply->renewable = terms.renewable;
}

/* The caller has made a later call before: this one comes twice, or was overtaken. */
static bool stale(const struct share_server *server, const struct share_call *call)
{
    for (uint32_t i = 0; i < server->count; i++)
        if (server->record[i].holder == call->holder)
            return call->id <= server->record[i].last_id;
    return server->count == SHARE_SERVER_HOLDERS;
}

static void take(struct share_server *server, const struct weir_limit *limit,
                 const struct share_call *call, uint64_t now_ns, struct share_reply *reply)
{
    double waiting;
    int found = find(server, call->holder, now_ns, &waiting);
    struct share_server_record *record =
        found == NO_RECORD ? new_record(server, call->holder) : &server->record[found];

    record->last_id = call->id;
    record->demand = call->demand;
    record->seen_ns = now_ns;
    settle(server, limit, record, call, now_ns, &reply->forfeited);
    if (call->want > 0)
        give(server, limit, record, call, now_ns, waiting, reply);
}

void share_server_execute(struct share_server *server, const struct weir_limit *limit,
                          const struct share_call *call, uint64_t now_ns, struct share_reply *reply)
{
    struct weir_report known;

    memset(reply, 0, sizeof *reply);
    reply->id = call->id;
    if (!stale(server, call))
        take(server, limit, call, now_ns, reply);
    report(server, limit, now_ns, call->need, &known);
    reply->remaining = known.remaining;
    reply->reset_ns = known.reset_after_ns;
    if (!reply->too_short)
        reply->retry_ns = known.retry_after_ns;
}
