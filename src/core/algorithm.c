/* SPDX-License-Identifier: Apache-2.0 */
/* see algorithm.h */
#include "core/algorithm.h"

#include "core/bucket.h"
#include "core/counter.h"
#include "core/prepaid.h"
#include "core/quota.h"
#include "core/span/concurrency.h"
#include "core/span/expiry_list.h"
#include "core/span/log.h"
#include "core/span/segments.h"
#include "core/window.h"

/* --- In a cell -------------------------------------------------------------------------------- */

static const struct cell_algorithm windows = {
    .report = window_report,
};
static const struct cell_upkeep windows_upkeep = {
    .charge_denied = window_charge,
    .fill = window_fill,
    .refund = window_refund,
    .valid = window_valid,
    .convert = window_convert,
};

static const struct cell_algorithm buckets = {
    .report = bucket_report,
};
static const struct cell_upkeep buckets_upkeep = {
    .charge_denied = bucket_charge_denied,
    .fill = bucket_charge_denied,
    .refund = bucket_refund,
    .valid = bucket_valid,
    .convert = bucket_convert,
};

static const struct cell_algorithm quotas = {
    .test = quota_test,
    .charge = quota_charge,
    .report = quota_report,
};
static const struct cell_upkeep quotas_upkeep = {
    .fresh_at = quota_fresh_at,
    .charge_denied = quota_charge,
    .fill = quota_fill,
    .refund = quota_refund,
    .valid = quota_valid,
};

static const struct cell_algorithm counters = {
    .test = counter_test,
    .charge = counter_charge,
    .report = counter_report,
};
static const struct cell_upkeep counters_upkeep = {
    .fresh_at = counter_fresh_at,
    .charge_denied = counter_charge,
    .fill = counter_charge,
    .refund = counter_refund,
    .valid = counter_valid,
};

static const struct cell_algorithm prepaid_units = {
    .test = prepaid_test,
    .charge = prepaid_charge,
    .report = prepaid_report,
};
static const struct cell_upkeep prepaid_units_upkeep = {
    .fresh_at = counter_fresh_at, /* they end as a counter that has an end */
    .charge_denied = prepaid_charge,
    .fill = prepaid_charge,
    .refund = prepaid_refund,
    .valid = prepaid_valid,
};

/* --- In a span -------------------------------------------------------------------------------- */

static const struct span_algorithm segmented = {
    .test = segments_test,
    .charge = segments_charge,
    .report = segments_report,
};
static const struct span_upkeep segmented_upkeep = {
    .fresh_at = segments_fresh_at,
    .refund = segments_refund,
    .valid = segments_valid,
};

static const struct span_algorithm logs = {
    .test = log_test,
    .charge = log_charge,
    .report = log_report,
    .words = log_span_words,
    .fits = log_fits,
    .compact = log_compact,
};
static const struct span_upkeep logs_upkeep = {
    .fresh_at = log_fresh_at,
    .refund = log_refund,
    .valid = log_valid,
    .needs = log_needs,
    .full_words = log_full_words,
    .resize = log_resize,
};

static const struct span_algorithm leases = {
    .test = concurrency_test,
    .charge = concurrency_charge,
    .report = expiry_list_report,
    .words = expiry_list_span_words,
    .fits = expiry_list_fits,
};
static const struct span_upkeep leases_upkeep = {
    .fresh_at = expiry_list_fresh_at,
    .refund = concurrency_refund,
    .valid = expiry_list_valid,
    .needs = expiry_list_needs,
    .full_words = expiry_list_full_words,
    .resize = expiry_list_resize,
};

/* --- The table -------------------------------------------------------------------------------- */

#define BUCKET (ALGORITHM_CHOSEN | ALGORITHM_BURST | ALGORITHM_ANY_WINDOW)

const struct algorithm_row algorithm_rows[ALGORITHMS] = {
    [WEIR_FIXED_WINDOW] = {"fixed_window", WEIR_RATE_MAX, ALGORITHM_CHOSEN | ALGORITHM_RESETS,
                           .init = window_init, .cell = &windows, .span = &segmented},
    [WEIR_SLIDING_WINDOW] = {"sliding_window", WEIR_RATE_MAX, ALGORITHM_CHOSEN | ALGORITHM_SEGMENTS,
                             .init = window_init, .cell = &windows, .span = &segmented},
    [WEIR_SLIDING_LOG] = {"sliding_log", WEIR_LOG_MAX, ALGORITHM_CHOSEN, .init = log_init,
                          .cell = &buckets, .span = &logs},
    [WEIR_TOKEN_BUCKET] = {"token_bucket", WEIR_BUCKET_MAX, BUCKET, .init = bucket_init,
                           .cell = &buckets, .span = &leases},
    [WEIR_GCRA] = {"gcra", WEIR_BUCKET_MAX, BUCKET, .init = bucket_init, .cell = &buckets,
                   .span = &leases},
    [WEIR_LEAKY_BUCKET] = {"leaky_bucket", WEIR_BUCKET_MAX, BUCKET, .init = bucket_init,
                           .cell = &buckets, .span = &leases},
    /* Rules files call it leaky_bucket, with `queue`. */
    [WEIR_LEAKY_QUEUE] = {"leaky_bucket", WEIR_BUCKET_MAX,
                          (BUCKET & ~ALGORITHM_CHOSEN) | ALGORITHM_QUEUE, .init = bucket_init,
                          .cell = &buckets, .span = &leases},
    [WEIR_CONCURRENCY] = {"concurrency", WEIR_LEASES_MAX,
                          ALGORITHM_CHOSEN | ALGORITHM_LEASES | ALGORITHM_ANY_WINDOW,
                          .init = concurrency_init, .cell = &buckets, .span = &leases},
    [WEIR_QUOTA] = {"quota", WEIR_RATE_MAX, ALGORITHM_CALENDAR | ALGORITHM_RESETS,
                    .init = quota_init, .cell = &quotas, .span = &leases},
    [WEIR_COUNTER] = {"counter", COUNTER_WIDE_BITS, ALGORITHM_ANY_WINDOW, .init = counter_init,
                      .cell = &counters, .span = &leases},
    [WEIR_PREPAID] = {"prepaid", WEIR_RATE_MAX, ALGORITHM_ANY_WINDOW, .init = prepaid_init,
                      .cell = &prepaid_units, .span = &leases},
};

const char *const algorithm_words[] = {
    "fixed_window", "sliding_window", "sliding_log", "token_bucket",
    "gcra",         "leaky_bucket",   "concurrency", NULL};

const struct algorithm_upkeep algorithm_upkeeps[ALGORITHMS] = {
    [WEIR_FIXED_WINDOW] = {&windows_upkeep, &segmented_upkeep, NULL},
    [WEIR_SLIDING_WINDOW] = {&windows_upkeep, &segmented_upkeep, NULL},
    [WEIR_SLIDING_LOG] = {&buckets_upkeep, &logs_upkeep, NULL},
    [WEIR_TOKEN_BUCKET] = {&buckets_upkeep, &leases_upkeep, NULL},
    [WEIR_GCRA] = {&buckets_upkeep, &leases_upkeep, NULL},
    [WEIR_LEAKY_BUCKET] = {&buckets_upkeep, &leases_upkeep, NULL},
    [WEIR_LEAKY_QUEUE] = {&buckets_upkeep, &leases_upkeep, NULL},
    [WEIR_CONCURRENCY] = {&buckets_upkeep, &leases_upkeep, NULL},
    [WEIR_QUOTA] = {&quotas_upkeep, &leases_upkeep, quota_converts},
    [WEIR_COUNTER] = {&counters_upkeep, &leases_upkeep, NULL},
    [WEIR_PREPAID] = {&prepaid_units_upkeep, &leases_upkeep, NULL},
};
