/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and the algorithms that decide them.
 *
 * Concept. A `struct weir_limit` is a limit made ready for deciding ("compiled"): immutable, shared
 * by all threads. A state is what one key of one limit has used: a `struct weir_cell` of 16 bytes,
 * or, for the algorithms that need more, a span of `limit->span_words` 64-bit words. All zero bytes
 * are a fresh state. Nothing here allocates, reads a clock, or calls anything but mem*.
 *
 * Notation: N = rate, W = window_ns, B = burst, c = cost, t = now, T = W/N (exact, a rational).
 *
 *   algorithm        a cost c is admitted iff                               state
 *   fixed_window     count(floor(t/W)) + c <= N                             cell
 *   sliding_window   S = 1: k[i] + floor(k[i-1]*(W-e)/W) + c <= N           cell (see below)
 *                    S > 1: S+1 counters of segments of w = W/S             span
 *   sliding_log      sum of costs in (t-W, t] + c <= N                      span
 *   token_bucket     level >= c, level refills N per W up to B              cell
 *   gcra             max(TAT,t) + c*T - t <= B*T                            cell
 *   leaky_bucket     level + c <= B, level leaks N per W                    cell
 *   leaky_queue      delay = max(next,t)-t; delay + (c-1)*T <= B*T          cell
 *   concurrency      costs of leases in flight + c <= N                     span
 *   quota            count(period) + c <= N + what came over                cell
 *   counter          always: it is no limit (src/core/counter.h)            cell
 *   prepaid          max(c, 1) <= what is left of units that were given     cell
 *
 * token_bucket, gcra and leaky_bucket are one function of time (ITU-T I.371, "virtual scheduling"
 * is the "continuous-state leaky bucket"), so all three keep the theoretical arrival time TAT:
 * cell.a whole nanoseconds, cell.b the remainder in units of 1/denom ns. leaky_queue is a gcra of
 * depth B + 1 that reports its delay. The sliding window with S = 1 is Cloudflare's two counters
 * (2017, "How we built rate limiting capable of scaling to millions of domains"), with S = 60
 * Figma's (2017, "An alternative approach to rate limiting").
 *
 * Arithmetic is exact over the whole range: integers, 128 bits wide where a product needs it.
 *
 * Time. t is nanoseconds since the epoch, below 2^62. It should not decrease for one state. Where
 * it does, nothing is credited: windows and logs decide at the latest time that the state has seen
 * (to the start of its segment), buckets find the same TAT further away.
 *
 * Threads: no state of its own. A state has one writer at a time; the caller sees to that.
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/error.h>

#pragma GCC visibility push(default)

enum weir_algorithm {
    WEIR_FIXED_WINDOW,
    WEIR_SLIDING_WINDOW,
    WEIR_SLIDING_LOG,
    WEIR_TOKEN_BUCKET,
    WEIR_GCRA,
    WEIR_LEAKY_BUCKET,
    WEIR_LEAKY_QUEUE,
    WEIR_CONCURRENCY,
    WEIR_QUOTA,   /* N per period of a calendar */
    WEIR_COUNTER, /* no limit: a number with a life, which Redis commands keep in a table */
    WEIR_PREPAID, /* units that were given, above another limit (src/core/prepaid.h) */
};
#define WEIR_ALGORITHMS (WEIR_PREPAID + 1)

/* "Never": no wait makes it admissible. Also the value of a time beyond the range. */
#define WEIR_NEVER UINT64_MAX

#define WEIR_WINDOW_MIN_NS UINT64_C(1000000)                    /* 1 ms */
#define WEIR_WINDOW_MAX_NS (UINT64_C(366) * 86400 * 1000000000) /* 366 days */
#define WEIR_RATE_MAX ((UINT64_C(1) << 32) - 1)                 /* windows, log, concurrency */
#define WEIR_BUCKET_MAX (UINT64_C(1) << 40)                     /* N and B of buckets */
#define WEIR_DEPTH_MAX_NS (UINT64_C(1) << 62)                   /* B*W/N of buckets */
#define WEIR_LOG_MAX 10000                                      /* N of sliding_log */
#define WEIR_LEASES_MAX 10000                                   /* leases in flight of one key */
#define WEIR_SEGMENTS_MAX 120
#define WEIR_BOUNDS_MIN 2 /* periods of a quota's calendar */

/* What a user configures. Zero is the default where there is one. */
struct weir_limit_spec {
    enum weir_algorithm algorithm;
    uint64_t rate; /* N: requests per window; 0 denies every cost above 0; concurrency: leases */
    uint64_t window_ns; /* W; the life of a lease for concurrency; for a quota what a period lasts
                           about, and exactly beyond the calendar's end */
    uint64_t burst;     /* B, buckets only; 0: the same as rate */
    uint32_t segments;  /* S, sliding_window only, must divide W; 0: 1 */
    bool strict;        /* sliding_window only: the oldest segment counts in full */
    /* quota only */
    uint64_t rollover;      /* R: the most that comes over from the period before; at most N */
    uint64_t calendar;      /* names the calendar: states of another one start fresh */
    const uint64_t *bounds; /* when its periods begin, ns, each later than the one before; borrowed
                               for as long as the limit is used */
    uint32_t bound_count;   /* at least WEIR_BOUNDS_MIN */
};

/* Compiled. Read what is above the line. What is below it is weir's own, some of it for the
 * daemon's rules and stores alone: programs give it room, and copy it; its members may become
 * others within a soversion, and take as many bytes. */
struct weir_limit {
    struct weir_limit_spec spec; /* with its defaults filled in */
    uint64_t capacity;   /* the largest cost ever admitted: N; B; B + 1 for leaky_queue; N + R
                            for quota */
    uint32_t span_words; /* 0: the state is a cell; else words that are enough for its span */
    uint16_t id;         /* what the table that interned it calls its parameters; 0: none */
    bool packs;          /* a cell that weir_cell_pack can put into 12 bytes */
    /* ------------------------------------------------------------------------------------- */
    bool yields;        /* set by its owner: in a full table, its states make room for any other */
    bool digest;        /* set by its owner: a remote store names its states by 128 bits of SHA-256
                           instead of the key's text */
    uint8_t index_bits; /* windows: bits of the packed window index */
    uint8_t count_bits; /* windows: bits of each packed counter */
    bool plain;         /* buckets without a queue: N > 0, and T is whole nanoseconds */
    uint64_t denom;     /* buckets: N / gcd(N, W) */
    uint64_t period_ns, period_rem; /* buckets: T = period_ns + period_rem / denom */
    uint64_t depth_ns, depth_rem;   /* buckets: capacity * T */
    uint64_t segment_ns;            /* windows: w = W / S */
    const char *name;               /* the rule's, for keys in a remote store; NULL: a command's */
    const struct weir_limit *local; /* one node's part of this limit: decides instead, in this
                                       node's table, while the remote store cannot; NULL: itself */
};

/* Compiles `spec` into `limit` (the caller's; copy it freely). `limit->id` becomes 0.
 * Errors: WEIR_ERR_RANGE when the spec is outside the ranges above; `reason` (may be NULL) names
 * the field, its value and the range; for segments that do not divide W, the nearest number that
 * does. */
int weir_limit_init(struct weir_limit *limit, const struct weir_limit_spec *spec,
                    struct weir_reason *reason) __attribute__((warn_unused_result));

/* The name in rules files ("leaky_bucket" for both leaky algorithms); static storage. */
const char *weir_algorithm_name(enum weir_algorithm algorithm);

/* Buckets: a = TAT in ns, b = its remainder / denom. fixed_window: a = window index, b = count.
 * sliding_window with S = 1: a = window index, b = k[i] | k[i-1] << 32. quota: see core/quota.h;
 * prepaid: core/prepaid.h. */
struct weir_cell {
    uint64_t a, b;
};

/* What a client may learn of one limit. Describes the state after the decision. */
struct weir_report {
    uint64_t limit;          /* the capacity */
    uint64_t remaining;      /* the largest cost that would be admitted now */
    uint64_t retry_after_ns; /* 0 if allowed; else the smallest d such that the same cost is
                                admitted at t + d and denied at t + d - 1; or WEIR_NEVER */
    uint64_t reset_after_ns; /* the smallest d such that the state at t + d equals a fresh one */
};

/* A lease of a concurrency limit. */
struct weir_lease {
    uint64_t id;    /* never 0; chosen by the caller, unique among those in flight of one key */
    uint64_t owner; /* 0: none; ended together by weir_span_end_owner, weir_span_end_dead */
};

/* The lease owners that are alive: the entry of an owner is at its id modulo WEIR_LEASE_OWNERS; 0:
 * none of those is alive. */
#define WEIR_LEASE_OWNERS 256
struct weir_lease_owners {
    uint64_t id[WEIR_LEASE_OWNERS];
};

/* One use of a state, for the calls that need more than five arguments (which is all that BPF
 * passes). Zero where a call does not read it. */
struct weir_use {
    uint64_t now_ns, cost;
    uint64_t charged_at_ns;  /* refunds only */
    struct weir_lease lease; /* concurrency only: charges, and refunds of a part of a lease */
};

/* --- States in a cell ---------------------------------------------------------------------- */

/* Whether a cost is admitted at `now`. Changes nothing. *delay_ns (never NULL) is how long an
 * admitted request of a leaky_queue has to wait, rounded up; 0 for the others and when denied. */
bool weir_cell_test(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                    uint64_t cost, uint64_t *delay_ns);

/* Charges a cost whether it is admitted or not (a debit): counters saturate at 2^32 - 1 (at the
 * packed width where that is smaller), buckets go into debt, at most to a TAT of 2^63 - 1 ns. A
 * bucket of rate 0 never admits and so keeps nothing. */
void weir_cell_charge(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t cost);

/* Charges a denied cost (`on_deny: charge`): windows count in full, buckets stop at empty. */
void weir_cell_charge_denied(const struct weir_limit *limit, struct weir_cell *cell,
                             uint64_t now_ns, uint64_t cost);

/* Gives a cost back that was charged at `charged_at_ns`: only to the window or bucket that was
 * charged, at most what is there; nothing when that has expired. */
void weir_cell_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t charged_at_ns, uint64_t cost);

/* The report of a decision on `use->cost` whose state afterwards is `cell`. */
void weir_cell_report(const struct weir_limit *limit, const struct weir_cell *cell,
                      const struct weir_use *use, bool allowed, struct weir_report *report);

/* The first time at which the state equals a fresh one; <= now_ns means it is fresh. */
uint64_t weir_cell_fresh_at(const struct weir_limit *limit, const struct weir_cell *cell);

/* Carries what was used under `from` over to `to`, in units (see weir_limit_converts). A bucket's
 * debt is rounded down to the new limit's 1/denom ns. */
void weir_cell_convert(const struct weir_limit *from, const struct weir_limit *to,
                       struct weir_cell *cell, uint64_t now_ns);

/* Packs a cell of a limit with `packs` into 12 bytes, without loss; and back. */
void weir_cell_pack(const struct weir_limit *limit, const struct weir_cell *cell,
                    uint32_t packed[3]);
void weir_cell_unpack(const struct weir_limit *limit, const uint32_t packed[3],
                      struct weir_cell *cell);

/* --- States in a span ----------------------------------------------------------------------- */

/* A span of limit->span_words words, all zero, is a fresh state and has room for whatever comes. A
 * log or leases may have less room: a span that weir_span_resize made of any size from
 * weir_span_needs up. A caller that keeps states in such spans calls weir_span_fits before every
 * charge, and rewrites the state where the charge does not fit; so a state is as large as what it
 * holds. Segments always have limit->span_words words.
 *
 * A change to a span is a list of words to write, so that a store can journal it before it touches
 * shared memory. word < weir_span_words, each at most once. */
#define WEIR_EDITS_MAX 64
struct weir_edits {
    uint32_t count;
    uint32_t word[WEIR_EDITS_MAX];
    uint64_t value[WEIR_EDITS_MAX];
};

bool weir_span_test(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns,
                    uint64_t cost);

/* As weir_cell_charge (and, since windows count in full, as weir_cell_charge_denied); the change
 * goes to `edits`, which this call empties first, and `span` stays as it is. A debit that finds N
 * leases charges nothing. Where the charge does not fit (weir_span_fits), a log lets its newest
 * events expire together with this one, so that it denies early but never late; of leases nothing
 * is charged. */
void weir_span_charge(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, struct weir_edits *edits);

/* As weir_cell_refund. Concurrency: gives back a part of the lease `use->lease.id`. */
void weir_span_refund(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, struct weir_edits *edits);

/* Concurrency: ends a lease, or one batch (WEIR_EDITS_MAX) of an owner's. Returns how many ended.
 */
uint32_t weir_span_release(const struct weir_limit *limit, const uint64_t *span, uint64_t lease_id,
                           struct weir_edits *edits);
uint32_t weir_span_end_owner(const struct weir_limit *limit, const uint64_t *span, uint64_t owner,
                             struct weir_edits *edits);

/* Concurrency: ends one batch of the leases whose owner is none of `alive`; those without an owner
 * stay. Returns how many ended. */
uint32_t weir_span_end_dead(const struct weir_limit *limit, const uint64_t *span,
                            const struct weir_lease_owners *alive, struct weir_edits *edits);

/* Concurrency: the lease `use->lease.id` expires a whole life after use->now_ns, even if it has
 * expired, as long as the state still has it. Returns how many there are of this id: 0 or 1. */
uint32_t weir_span_renew(const struct weir_limit *limit, const uint64_t *span,
                         const struct weir_use *use, struct weir_edits *edits);

void weir_span_report(const struct weir_limit *limit, const uint64_t *span,
                      const struct weir_use *use, bool allowed, struct weir_report *report);

uint64_t weir_span_fresh_at(const struct weir_limit *limit, const uint64_t *span);

/* The words that a state takes for its own: those that may be read and written. It is a number of
 * the state's first two words, so check it against the memory of a state that comes from a file. */
uint32_t weir_span_words(const struct weir_limit *limit, const uint64_t *span);

/* Whether the state has room for `count` charges (1 or more) at `now_ns` of `cost` together. */
bool weir_span_fits(const struct weir_limit *limit, const uint64_t *span, uint64_t now_ns,
                    uint64_t cost, uint32_t count);

/* A state to be written anew, at `now_ns`: what has expired then is left out. 0: nothing has. */
struct weir_span_source {
    const struct weir_limit *limit;
    const uint64_t *span;
    uint64_t now_ns;
    uint32_t words; /* of the memory at `span`; 0: as many as the state says (weir_span_words) */
};

/* Words of a span of `to` that has room for what the source (NULL: a fresh state) has used, and
 * then for `count` charges of `cost` together; for leases whose costs are above 1 it may be more
 * than is necessary. Never more than to->span_words. */
uint32_t weir_span_needs(const struct weir_span_source *source, const struct weir_limit *to,
                         uint64_t cost, uint32_t count);

/* Writes to `out`, which is other memory, what the source (NULL: a fresh state) has used, as a
 * state of `to` of `words` words: at least weir_span_needs, at most 60,000; 0: to->span_words. All
 * of them are written. For a lower N of a log or of leases, what goes beyond merges into the
 * newest. Where weir_limit_converts says no, the state starts fresh. */
void weir_span_resize(const struct weir_span_source *source, const struct weir_limit *to,
                      uint64_t *out, uint32_t words);

/* For a state in plain memory with all its limit->span_words words, before a charge that does not
 * fit: makes it fit, in place. (weir_decide does.) */
void weir_span_compact(const struct weir_limit *limit, uint64_t *span, uint64_t now_ns);

/* weir_span_resize to to->span_words words, with all that `span` has, expired or not. */
void weir_span_convert(const struct weir_limit *from, const uint64_t *span,
                       const struct weir_limit *to, uint64_t *out);

/* Writes the edits to a span in plain memory. */
void weir_edits_apply(const struct weir_edits *edits, uint64_t *span);

/* Whether a state is one that these functions can have made of a fresh one: for tests, and before
 * anything else is done with a state from a file. Reads every word; takes O(N) for a log. */
bool weir_cell_valid(const struct weir_limit *limit, const struct weir_cell *cell);
bool weir_span_valid(const struct weir_limit *limit, const uint64_t *span);

/* --- Either ---------------------------------------------------------------------------------- */

/* Whether a state of `from` keeps its meaning, in units, under `to`: the same algorithm, and for
 * windows the same W, S and strict, for a log the same W. Otherwise `to` starts fresh. */
bool weir_limit_converts(const struct weir_limit *from, const struct weir_limit *to);

/* One decision on a state in plain memory: `state` is a cell, or a span of limit->span_words words.
 * Charges iff admitted. Returns whether it was; fills `report` and *delay_ns where not NULL. */
bool weir_decide(const struct weir_limit *limit, void *state, const struct weir_use *use,
                 struct weir_report *report, uint64_t *delay_ns);

#pragma GCC visibility pop

#endif
