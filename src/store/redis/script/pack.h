/* SPDX-License-Identifier: Apache-2.0 */
/* What scripts and C tell each other: kinds of states, packed checks, the decision's header, and
 * the parts of replies. All numbers are little-endian doubles that hold whole numbers.
 *
 *   check     kind (1), the check's flags (1), then
 *     windows       window or segment in us, N, cost, and the largest count (S = 1) or S (S > 1)
 *     log           W in us, N, cost
 *     prepaid       the same; of a refund that gives units, charged_at is when they end
 *     concurrency   life in us, N, cost, the lease's id (8) and owner (8)
 *     buckets       unit, period (see lua/bucket.lua), cost * T as us and units, depth likewise
 *     quota         the calendar's name (8), N, what comes over at most, cost, and when seven
 *                   periods begin: that of the batch's time, two before it, four after it
 *
 *             and of a debit with a floor of debt (flag 128): cost, and how far it may go, as a
 *             bucket's depth or as units and 0. Flag 4: one more rate of the shadow limit before.
 *             Last, of a check with a scale (flag 8; core/scale.h): percent (1), its kind (1), and
 *             a bucket's whole depth, or zeros; the bucket's cost and depth are at the scale
 *
 *   header    op (1; 128 more of a refund that is `unused`), policy (1), action (1), a refund's
 * charged_at in us; an action is 0, 1 to reserve, 2 to roll back, 3 and 4 as 0 and 1 for plain
 * checks
 *
 *   part      mark (1), then the state after the decision and the server's time in us; or, of a
 *             plain check on a cell that was charged, the state itself, which begins with its kind.
 *             Bits of the mark: 0 admitted, 1 charged, 2 and 3 see lua/segments.lua. Of a debit
 * with a floor, last: the cost that was charged
 */
#ifndef WEIR_STORE_REDIS_SCRIPT_PACK_H
#define WEIR_STORE_REDIS_SCRIPT_PACK_H

#include "core/bucket.h"
#include "store/redis/script/script.h"

/* The first byte of a state is at least this: see form.c. */
#define REDIS_KIND_FIRST 0xe0

/* Buckets count from this time, in us, so that the end of time is a double too. */
#define REDIS_EPOCH_US (UINT64_C(1) << 50)

/* The end of time: weir/limit.h. */
#define REDIS_TIME_MAX_US ((UINT64_C(1) << 62) / 1000)

/* The largest whole number such that all below it are doubles. */
#define REDIS_NUMBER_MAX ((UINT64_C(1) << 53) - 1)

#define REDIS_PACKED_FLOOR 24
#define REDIS_PACKED_SCALE 18
#define REDIS_PACKED_MORE (REDIS_PACKED_FLOOR + REDIS_PACKED_SCALE)
#define REDIS_PACKED_MAX (90 + REDIS_PACKED_MORE)       /* bytes of a packed check: a quota's */
#define REDIS_PACKED_SHORT_MAX (50 + REDIS_PACKED_MORE) /* of any other: a bucket's */
#define REDIS_FLAG_MORE 4
#define REDIS_FLAG_SCALE 8
#define REDIS_FLAG_FLOOR 128
#define REDIS_QUOTA_BOUNDS 7
#define REDIS_QUOTA_BOUNDS_BEFORE 2
#define REDIS_HEADER_SIZE 11
#define REDIS_OP_UNUSED 128

/* Each returns where it ended: a word; a number; a whole number, where one beyond REDIS_NUMBER_MAX
 * is larger than anything that it is compared with; a bucket's time as us and units. */
char *redis_put_word(char *out, uint64_t word);
char *redis_put_double(char *out, double number);
char *redis_put(char *out, uint64_t value);
char *redis_put_bucket_time(char *out, const struct weir_limit *limit, struct bucket_time time);

/* Whether a check of the decision is a debit with a floor of debt. */
bool redis_has_floor(const struct weir_decision *decision, const struct weir_check *check);
/* Adds its floor of debt to a packed check, at its end `out`. */
char *redis_pack_floor(char *out, const struct weir_check *check);
/* Adds its scale to a packed check, at its end `out`. */
char *redis_pack_scale(char *out, const struct weir_check *check);
/* `plain`: see redis_script_write. */
char *redis_pack_header(char *out, const struct redis_batch *batch, bool plain);

/* Reads a whole number up to `max` and moves *in behind it; false: it is none. */
bool redis_unpack(const char **in, uint64_t max, uint64_t *value);

/* Microseconds and units of a bucket as the core's nanoseconds and 1/denom of one. */
struct bucket_time redis_bucket_time(const struct weir_limit *limit, uint64_t us, uint64_t units);

#endif
