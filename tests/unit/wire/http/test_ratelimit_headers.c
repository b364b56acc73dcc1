/* SPDX-License-Identifier: Apache-2.0 */
/* wire/ratelimit_headers: every dialect, byte for byte, and read back as structured fields. */
#include "../answer_make.h"
#include "test.h"

#include "structured_list.h"
#include "wire/http/ratelimit_headers.h"

static struct weir_answer answer;
static struct answer_limits limits;

/* The longest answer ends at an unmapped page. */
static const char *written(uint32_t dialects, uint64_t wall_s)
{
    static char copy[WEIR_RATELIMIT_HEADERS_MAX + 1];
    struct guarded guarded = guarded_new(WEIR_RATELIMIT_HEADERS_MAX);
    char *out = guarded.end - WEIR_RATELIMIT_HEADERS_MAX;
    size_t size = weir_ratelimit_headers_write(dialects, &answer, wall_s, out);
    assert_true(size <= WEIR_RATELIMIT_HEADERS_MAX);
    memcpy(copy, out, size);
    copy[size] = '\0';
    guarded_free(&guarded);
    return copy;
}

TEST("the draft is two lists")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "login", WEIR_SLIDING_LOG, 5, 60 * SECOND);
    entry->report.remaining = 4;
    entry->report.reset_after_ns = 11 * SECOND + 1;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0), "RateLimit-Policy: \"login\";q=5;w=60\r\n"
                                                        "RateLimit: \"login\";r=4;t=48\r\n");
    entry = answer_add(&answer, &limits, "api", WEIR_FIXED_WINDOW, 1000, 3600 * SECOND);
    entry->report.remaining = 999;
    answer.now_ns = 7 * 3600 * SECOND - 1;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"login\";q=5;w=60, \"api\";q=1000;w=3600\r\n"
                        "RateLimit: \"login\";r=4;t=48, \"api\";r=999;t=1\r\n");
}

TEST("texts that are made once are those that are written each time")
{
    static struct weir_limit_texts texts[WEIR_CHECKS_MAX];
    static char names[WEIR_CHECKS_MAX][WEIR_RATELIMIT_NAME_MAX + 1];
    static const enum weir_algorithm algorithms[] = {WEIR_GCRA, WEIR_CONCURRENCY, WEIR_LEAKY_BUCKET,
                                                     WEIR_FIXED_WINDOW};
    answer_start(&answer);
    for (unsigned i = 0; i < WEIR_CHECKS_MAX; i++) {
        memset(names[i], 'a' + (int)(i % 26), i * 2 + 2);
        struct weir_answer_limit *entry =
            answer_add(&answer, &limits, names[i], algorithms[i % 4], UINT64_MAX >> 2 * i,
                       i % 3 == 0 ? UINT64_MAX / SECOND * SECOND : 1 + i);
        entry->report.remaining = UINT64_MAX >> i;
    }
    char *each = strdup(written(WEIR_HEADERS_DRAFT, 0));
    for (unsigned i = 0; i < WEIR_CHECKS_MAX; i++) {
        weir_ratelimit_texts_make(&texts[i], answer.limits[i].name, answer.limits[i].limit);
        assert_true(texts[i].policy_size > 0);
        answer.limits[i].texts = &texts[i];
    }
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0), each);
    free(each);
}

TEST("a name that has to be escaped, or is none, has no texts")
{
    static const char *const bad[] = {
        "a\"b", "a\\b", "a\nb",
        "0123456789012345678901234567890123456789012345678901234567890123x"};
    const struct weir_limit limit = {.spec = {.algorithm = WEIR_GCRA, .rate = 1, .window_ns = 1}};
    struct weir_limit_texts texts;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weir_ratelimit_texts_make(&texts, weir_bytes_of(bad[i]), &limit);
        assert_int_equal(texts.policy_size, 0);
    }
}

TEST("without a reset t is how long what is left lasts at the limits pace")
{
    static const enum weir_algorithm buckets[] = {WEIR_TOKEN_BUCKET,   WEIR_GCRA,
                                                  WEIR_LEAKY_BUCKET,   WEIR_LEAKY_QUEUE,
                                                  WEIR_SLIDING_WINDOW, WEIR_SLIDING_LOG};
    for (size_t i = 0; i < sizeof buckets / sizeof buckets[0]; i++) {
        answer_start(&answer);
        struct weir_answer_limit *entry =
            answer_add(&answer, &limits, "b", buckets[i], 7, 10 * SECOND);
        entry->report.limit = 20;
        entry->report.reset_after_ns = 99 * SECOND;
        entry->report.remaining = 2; /* 2 * 10 / 7 = 2.86 s */
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                            "RateLimit-Policy: \"b\";q=7;w=10\r\nRateLimit: \"b\";r=2;t=3\r\n");
        entry->report.remaining = 15; /* the burst is not shown: r <= q */
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                            "RateLimit-Policy: \"b\";q=7;w=10\r\nRateLimit: \"b\";r=7;t=10\r\n");
        entry->report.remaining = 0;
        entry->next_ns = SECOND + 1;
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                            "RateLimit-Policy: \"b\";q=7;w=10\r\nRateLimit: \"b\";r=0;t=2\r\n");
    }
}

TEST("at a scale the quota and the pace are the part that the request may use")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "b", WEIR_TOKEN_BUCKET, 7, 10 * SECOND);
    entry->scale = 60; /* 4 of 7 */
    entry->report.limit = 4;
    entry->report.remaining = 2;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"b\";q=4;w=10\r\nRateLimit: \"b\";r=2;t=5\r\n");
    entry->scale = 1;
    entry->report.remaining = 1;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"b\";q=1;w=10\r\nRateLimit: \"b\";r=1;t=10\r\n");
}

TEST("the window of a bucket is exact over the whole range")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "b", WEIR_GCRA, WEIR_BUCKET_MAX, WEIR_WINDOW_MAX_NS);
    entry->report.remaining = WEIR_BUCKET_MAX - 1; /* 366 days - 28.76 us */
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"b\";q=1099511627776;w=31622400\r\n"
                        "RateLimit: \"b\";r=1099511627775;t=31622400\r\n");
    entry->report.remaining = WEIR_BUCKET_MAX / 2; /* exactly half a window */
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"b\";q=1099511627776;w=31622400\r\n"
                        "RateLimit: \"b\";r=549755813888;t=15811200\r\n");
}

TEST("a window or period ends at its end however fresh it is")
{
    static const uint64_t bounds[] = {0, 5000 * SECOND, 9000 * SECOND};
    for (int fresh = 0; fresh < 2; fresh++) {
        answer_start(&answer);
        answer.now_ns = 5400 * SECOND;
        struct weir_answer_limit *entry =
            answer_add(&answer, &limits, "hour", WEIR_FIXED_WINDOW, 10, 3600 * SECOND);
        entry->report.remaining = fresh ? 10 : 3;
        entry->report.reset_after_ns = fresh ? 0 : 1800 * SECOND;
        entry = answer_add(&answer, &limits, "month", WEIR_QUOTA, 10, 4000 * SECOND);
        limits.limits[1].spec.bounds = bounds;
        limits.limits[1].spec.bound_count = 3;
        limits.limits[1].spec.rollover = 5;
        entry->report.remaining = fresh ? 15 : 3;
        entry->report.reset_after_ns = fresh ? 0 : 7600 * SECOND; /* what comes over lasts longer */
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                            fresh ? "RateLimit-Policy: \"hour\";q=10;w=3600, \"month\";q=10\r\n"
                                    "RateLimit: \"hour\";r=10;t=1800, \"month\";r=10;t=3600\r\n"
                                  : "RateLimit-Policy: \"hour\";q=10;w=3600, \"month\";q=10\r\n"
                                    "RateLimit: \"hour\";r=3;t=1800, \"month\";r=3;t=3600\r\n");
    }
}

TEST("where nothing is left t is retry after")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "log", WEIR_SLIDING_LOG, 10, 60 * SECOND);
    entry->next_ns = 40 * SECOND + 1;
    entry->report.reset_after_ns = 101 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA, 0),
                        "RateLimit-Policy: \"log\";q=10;w=60\r\nRateLimit: \"log\";r=0;t=41\r\n"
                        "X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 0\r\n"
                        "X-RateLimit-Reset: 41\r\n");
    answer.allowed = entry->allowed = false; /* a cost of 2, say, which waits for longer */
    answer.denied_by = 0;
    answer.retry_after_ns = entry->report.retry_after_ns = 55 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA, 0),
                        "RateLimit-Policy: \"log\";q=10;w=60\r\nRateLimit: \"log\";r=0;t=55\r\n"
                        "X-RateLimit-Limit: 10\r\nX-RateLimit-Remaining: 0\r\n"
                        "X-RateLimit-Reset: 55\r\nRetry-After: 55\r\n");
    answer.retry_after_ns = entry->report.retry_after_ns = WEIR_NEVER; /* a cost above the limit */
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"log\";q=10;w=60\r\nRateLimit: \"log\";r=0;t=41\r\n");
}

/* As `Retry-After: 60` of a cost of 9,999 in 10,000/min, of which 6 are left. */
TEST("a denied cost has its own wait as t whatever is left")
{
    static const enum weir_algorithm algorithms[] = {
        WEIR_TOKEN_BUCKET,   WEIR_GCRA,        WEIR_LEAKY_BUCKET, WEIR_LEAKY_QUEUE,
        WEIR_SLIDING_WINDOW, WEIR_SLIDING_LOG, WEIR_CONCURRENCY};
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        bool windowed = algorithms[i] != WEIR_CONCURRENCY;
        answer_start(&answer);
        struct weir_answer_limit *entry =
            answer_add(&answer, &limits, "b", algorithms[i], 10000, 60 * SECOND);
        entry->report.remaining = 6;
        entry->report.reset_after_ns = 70 * SECOND;
        entry->report.retry_after_ns = answer.retry_after_ns = 60 * SECOND;
        answer.allowed = entry->allowed = false;
        answer.denied_by = 0;
        const char *text = written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA, 0);
        assert_non_null(strstr(text, "RateLimit: \"b\";r=6;t=60\r\n"));
        assert_non_null(strstr(text, "X-RateLimit-Reset: 60\r\nRetry-After: 60\r\n"));
        entry->report.retry_after_ns = answer.retry_after_ns = WEIR_NEVER;
        text = written(WEIR_HEADERS_DRAFT, 0);
        assert_non_null(strstr(text, windowed ? "r=6;t=1\r\n" : "r=6\r\n"));
    }
}

TEST("a denied cost of nothing waits less than one")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "debt", WEIR_TOKEN_BUCKET, 1, 60 * SECOND);
    entry->next_ns = 90 * SECOND;
    entry->report.retry_after_ns = answer.retry_after_ns = 30 * SECOND;
    answer.allowed = entry->allowed = false;
    answer.denied_by = 0;
    assert_non_null(strstr(written(WEIR_HEADERS_DRAFT, 0), "r=0;t=30\r\nRetry-After: 30\r\n"));
}

TEST("a denial by a window still tells its end")
{
    answer_start(&answer);
    answer.now_ns = 5400 * SECOND;
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "hour", WEIR_FIXED_WINDOW, 10, 3600 * SECOND);
    entry->report.remaining = 3;
    entry->report.retry_after_ns = answer.retry_after_ns = 1800 * SECOND;
    answer.allowed = entry->allowed = false;
    answer.denied_by = 0;
    assert_non_null(strstr(written(WEIR_HEADERS_DRAFT, 0), "r=3;t=1800\r\n"));
}

TEST("the reset of one limit is its t")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "a", WEIR_SLIDING_WINDOW, 100, 3600 * SECOND);
    entry->report.remaining = 50;
    entry->report.reset_after_ns = 6400 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_DRAFT_03, 0),
                        "RateLimit-Policy: \"a\";q=100;w=3600\r\n"
                        "RateLimit: \"a\";r=50;t=1800\r\n"
                        "RateLimit-Limit: 100\r\nRateLimit-Remaining: 50\r\n"
                        "RateLimit-Reset: 1800\r\n");
    answer_start(&answer); /* leases come back when they end: all of them by then */
    entry = answer_add(&answer, &limits, "jobs", WEIR_CONCURRENCY, 3, 30 * SECOND);
    entry->report.remaining = 1;
    entry->report.reset_after_ns = 20 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 0),
                        "X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: 1\r\n"
                        "X-RateLimit-Reset: 20\r\n");
}

TEST("every rate of a limit is a policy of its own")
{
    static struct weir_limit rates[2];
    rates[0].spec =
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = SECOND};
    rates[1].spec = (struct weir_limit_spec){
        .algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = 60 * SECOND};
    for (int tightest = 0; tightest < 2; tightest++) {
        answer_start(&answer);
        answer_add(&answer, &limits, "one", WEIR_GCRA, 1, SECOND)->report.remaining = 1;
        struct weir_answer_limit *entry =
            answer_add(&answer, &limits, "api", WEIR_SLIDING_LOG, 0, SECOND);
        for (int i = 0; i < 2; i++) {
            struct weir_answer_rate *rate = answer_add_rate(&answer, &rates[i]);
            rate->report.remaining = i == 0 ? 3 : 50;
            if (i == tightest) {
                entry->limit = rate->limit;
                entry->report = rate->report;
            }
        }
        assert_string_equal(
            written(WEIR_HEADERS_DRAFT, 0),
            "RateLimit-Policy: \"one\";q=1;w=1, \"api:1\";q=10;w=1, \"api:2\";q=100;w=60\r\n"
            "RateLimit: \"one\";r=1;t=1, \"api:1\";r=3;t=1, \"api:2\";r=50;t=30\r\n");
    }
}

TEST("a window of a part of a second is left out")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "ms", WEIR_FIXED_WINDOW, 10, SECOND / 10);
    entry->report.remaining = 10;
    entry->report.reset_after_ns = 0;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"ms\";q=10\r\nRateLimit: \"ms\";r=10;t=1\r\n");
}

TEST("a limit of zero never admits and has no window to tell")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "off", WEIR_TOKEN_BUCKET, 0, SECOND);
    entry->next_ns = WEIR_NEVER;
    answer.allowed = false;
    answer.denied_by = 0;
    answer.retry_after_ns = WEIR_NEVER;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"off\";q=0;w=1\r\nRateLimit: \"off\";r=0\r\n");
}

TEST("concurrency names its unit and no window")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "jobs", WEIR_CONCURRENCY, 3, 30 * SECOND);
    entry->report.remaining = 1;
    entry->report.reset_after_ns = 30 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"jobs\";q=3;qu=\"concurrent-requests\"\r\n"
                        "RateLimit: \"jobs\";r=1\r\n");
    entry->report.remaining = 0;
    entry->next_ns = 30 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"jobs\";q=3;qu=\"concurrent-requests\"\r\n"
                        "RateLimit: \"jobs\";r=0;t=30\r\n");
}

TEST("warnings are one list beside any dialect")
{
    static const char expected[] = "X-RateLimit-Warning: \"month\";threshold=80;used=85;limit=100, "
                                   "\"odd\\\"one\";threshold=100;used=999999999999999;"
                                   "limit=999999999999999\r\n";
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "month", WEIR_QUOTA, 100, 3600 * SECOND);
    entry->warning = (struct weir_answer_warning){85, 100, 80};
    answer_add(&answer, &limits, "quiet", WEIR_QUOTA, 100, 3600 * SECOND);
    entry = answer_add(&answer, &limits, "odd\"one", WEIR_QUOTA, 100, 3600 * SECOND);
    entry->warning = (struct weir_answer_warning){UINT64_MAX, UINT64_MAX, 100};
    entry = answer_add(&answer, &limits, "shadow", WEIR_QUOTA, 100, 3600 * SECOND);
    entry->warning = (struct weir_answer_warning){85, 100, 80};
    entry->shadow = true;
    for (uint32_t dialects = 1; dialects < 32; dialects++) {
        const char *fields = written(dialects, 0);
        const char *at = strstr(fields, "X-RateLimit-Warning: ");
        assert_non_null(at);
        assert_string_equal(at, expected);
        assert_null(strstr(at + 1, "X-RateLimit-Warning: "));
    }
    assert_string_equal(written(0, 0), "");
}

TEST("the other dialects are three fields")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "a", WEIR_TOKEN_BUCKET, 100, 60 * SECOND);
    entry->report = (struct weir_report){120, 119, 0, 600000000};
    assert_string_equal(written(WEIR_HEADERS_DRAFT_03, 0),
                        "RateLimit-Limit: 120\r\nRateLimit-Remaining: 119\r\n"
                        "RateLimit-Reset: 60\r\n");
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 1700000000),
                        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
                        "X-RateLimit-Reset: 60\r\n");
    assert_string_equal(written(WEIR_HEADERS_X_EPOCH, 1700000000),
                        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
                        "X-RateLimit-Reset: 1700000061\r\n");
    assert_string_equal(written(WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA, 1700000000),
                        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
                        "X-RateLimit-Reset: 1700000061\r\n");
    assert_string_equal(
        written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_DRAFT_03 | WEIR_HEADERS_X_DELTA, 0),
        "RateLimit-Policy: \"a\";q=100;w=60\r\n"
        "RateLimit: \"a\";r=100;t=60\r\n"
        "RateLimit-Limit: 120\r\nRateLimit-Remaining: 119\r\nRateLimit-Reset: 60\r\n"
        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
        "X-RateLimit-Reset: 60\r\n");
    answer_start(&answer); /* nothing is in flight */
    answer_add(&answer, &limits, "jobs", WEIR_CONCURRENCY, 3, 30 * SECOND)->report.remaining = 3;
    assert_string_equal(written(WEIR_HEADERS_X_EPOCH, 1700000000),
                        "X-RateLimit-Limit: 3\r\nX-RateLimit-Remaining: 3\r\n"
                        "X-RateLimit-Reset: 1700000000\r\n");
}

TEST("one limit is reported as the tightest")
{
    answer_start(&answer);
    answer_add(&answer, &limits, "a", WEIR_GCRA, 100, SECOND)->report.remaining = 50;
    answer_add(&answer, &limits, "b", WEIR_GCRA, 30, SECOND)->report.remaining = 20;
    answer_add(&answer, &limits, "c", WEIR_GCRA, 40, SECOND)->report.remaining = 20;
    struct weir_answer_limit *shadow = answer_add(&answer, &limits, "d", WEIR_GCRA, 1, SECOND);
    shadow->shadow = true;
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 0),
                        "X-RateLimit-Limit: 30\r\nX-RateLimit-Remaining: 20\r\n"
                        "X-RateLimit-Reset: 1\r\n");
    answer.allowed = false;
    answer.denied_by = 0;
    answer.retry_after_ns = 1;
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 0),
                        "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 50\r\n"
                        "X-RateLimit-Reset: 1\r\nRetry-After: 1\r\n");
}

TEST("what is not for clients is not reported")
{
    answer_start(&answer);
    answer_add(&answer, &limits, "shadow", WEIR_GCRA, 1, SECOND)->shadow = true;
    answer_add(&answer, &limits, "unlimited", WEIR_GCRA, 1, SECOND)->unlimited = true;
    answer_add(&answer, &limits, "stateless", WEIR_GCRA, 1, SECOND)->limit = NULL;
    answer_add(&answer, &limits, "n\xc3\xa9", WEIR_GCRA, 1, SECOND);
    answer_add(&answer, &limits, "line\nend", WEIR_GCRA, 1, SECOND);
    answer_add(&answer, &limits, "del\x7f", WEIR_GCRA, 1, SECOND);
    answer_add(&answer, &limits,
               "12345678901234567890123456789012345678901234567890123456789012345", WEIR_GCRA, 1,
               SECOND);
    assert_string_equal(written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA, 0), "");
    answer.allowed = false;
    answer.denied_by = 2;
    answer.retry_after_ns = WEIR_NEVER;
    assert_string_equal(written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA, 0), "");
    answer_add(&answer, &limits, "entry", WEIR_GCRA, 1, SECOND)->report.remaining = 1;
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 0),
                        "X-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 1\r\n"
                        "X-RateLimit-Reset: 1\r\n");
}

TEST("retry after is on denials with a finite wait only")
{
    static const struct {
        bool allowed;
        uint64_t retry_after_ns;
        const char *expected;
    } cases[] = {
        {true, 0, ""},
        {false, WEIR_NEVER, ""},
        {false, 1, "Retry-After: 1\r\n"},
        {false, SECOND, "Retry-After: 1\r\n"},
        {false, SECOND + 1, "Retry-After: 2\r\n"},
        {false, WEIR_NEVER - 1, "Retry-After: 18446744074\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        answer_start(&answer);
        answer.allowed = cases[i].allowed;
        answer.retry_after_ns = cases[i].retry_after_ns;
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0), cases[i].expected);
        assert_string_equal(written(0, 0), cases[i].expected);
    }
}

TEST("integers are clamped to fifteen digits")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "huge", WEIR_FIXED_WINDOW, UINT64_MAX, 60 * SECOND);
    entry->report = (struct weir_report){UINT64_MAX, UINT64_MAX, 0, SECOND};
    assert_string_equal(written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA, 0),
                        "RateLimit-Policy: \"huge\";q=999999999999999;w=60\r\n"
                        "RateLimit: \"huge\";r=999999999999999;t=60\r\n"
                        "X-RateLimit-Limit: 999999999999999\r\n"
                        "X-RateLimit-Remaining: 999999999999999\r\nX-RateLimit-Reset: 60\r\n");
}

/* The value of a field, or NULL. */
static const char *field(const char *fields, const char *name, size_t *size)
{
    const char *at = strstr(fields, name);
    *size = 0;
    if (at == NULL)
        return NULL;
    at += strlen(name);
    *size = (size_t)(strstr(at, "\r\n") - at);
    return at;
}

TEST("a score is reported with its signals or not at all")
{
    static struct weir_answer_signal signals[WEIR_SIGNALS_MAX] = {{{"no-agent", 8}, 30},
                                                                  {{"tool", 4}, 40}};
    static char longest[WEIR_RATELIMIT_NAME_MAX];
    answer_start(&answer);
    answer.score.class = (struct weir_bytes){"suspicious", 10};
    answer.score.score = 70;
    answer.score.held = 3;
    assert_string_equal(written(15, 0), "");
    answer.score.signals = signals;
    assert_string_equal(written(0, 0),
                        "X-Weir-Score: suspicious;score=70, no-agent;add=30, tool;add=40\r\n");
    answer.score.held = 2;
    assert_string_equal(written(0, 0), "X-Weir-Score: suspicious;score=70, tool;add=40\r\n");
    memset(longest, 'a', sizeof longest);
    for (int i = 0; i < WEIR_SIGNALS_MAX; i++)
        signals[i] = (struct weir_answer_signal){{longest, sizeof longest}, 100};
    answer.score.held = UINT32_MAX;
    size_t size = strlen(written(0, 0));
    assert_true(size <= WEIR_SCORE_FIELD_MAX && size > WEIR_SCORE_FIELD_MAX - 160);
}

TEST("a standing is reported where it is asked for")
{
    static char longest[WEIR_RATELIMIT_REASON_MAX + 1];
    answer_start(&answer);
    answer.standing.level = (struct weir_bytes){"throttled", 9};
    answer.standing.ends_ns = 10 * SECOND + 1;
    assert_string_equal(written(15, 0), "");
    assert_string_equal(written(WEIR_HEADERS_STANDING, 0),
                        "X-RateLimit-Standing: throttled;t=11\r\n");
    answer.standing.ends_ns = WEIR_NEVER;
    answer.standing.reason = (struct weir_bytes){"a \"b\"", 5};
    assert_string_equal(written(WEIR_HEADERS_STANDING, 0),
                        "X-RateLimit-Standing: throttled;reason=\"a \\\"b\\\"\"\r\n");
    answer.standing.reason = (struct weir_bytes){"na\xc3\xafve", 6}; /* no structured string */
    assert_string_equal(written(WEIR_HEADERS_STANDING, 0), "X-RateLimit-Standing: throttled\r\n");
    memset(longest, '"', sizeof longest);
    answer.standing.reason = (struct weir_bytes){longest, WEIR_RATELIMIT_REASON_MAX};
    assert_int_equal(strlen(written(WEIR_HEADERS_STANDING, 0)),
                     strlen("X-RateLimit-Standing: throttled;reason=\"\"\r\n") +
                         2 * WEIR_RATELIMIT_REASON_MAX);
    answer.standing.reason.size++;
    assert_string_equal(written(WEIR_HEADERS_STANDING, 0), "X-RateLimit-Standing: throttled\r\n");
    answer.standing.level.data = NULL;
    assert_string_equal(written(WEIR_HEADERS_STANDING, 0), "");
}

TEST("the longest answer fits and any answer reads back")
{
    static char names[WEIR_CHECKS_MAX][WEIR_RATELIMIT_NAME_MAX + 1];
    uint64_t random = 4;
    for (int round = 0; round < 2000; round++) {
        struct structured_list policies, quotas;
        size_t size = 0;
        answer_start(&answer);
        for (unsigned i = 0, count = 1 + (unsigned)draw_below(&random, 32); i < count; i++) {
            size_t length = 1 + draw_below(&random, WEIR_RATELIMIT_NAME_MAX);
            for (size_t j = 0; j < length; j++)
                names[i][j] = (char)(round == 0 ? '"' : 0x20 + draw_below(&random, 95));
            names[i][round == 0 ? WEIR_RATELIMIT_NAME_MAX : length] = '\0';
            struct weir_answer_limit *entry =
                answer_add(&answer, &limits, names[i], (enum weir_algorithm)draw_below(&random, 8),
                           draw_next(&random) >> draw_below(&random, 64),
                           (1 + draw_below(&random, 1000)) * (SECOND / 4));
            entry->report.remaining = draw_below(&random, entry->report.limit | 1);
            entry->report.reset_after_ns = draw_next(&random) >> 10;
            entry->next_ns = entry->report.remaining > 0 ? 0 : SECOND;
        }
        const char *fields = written(15, UINT64_MAX / 2);
        const char *value = field(fields, "RateLimit-Policy: ", &size);
        assert_true(structured_list_read(&policies, value, size));
        value = field(fields, "RateLimit: ", &size);
        assert_true(structured_list_read(&quotas, value, size));
        assert_int_equal(policies.count, answer.count);
        assert_int_equal(quotas.count, answer.count);
        for (unsigned i = 0; i < answer.count; i++) {
            assert_string_equal(policies.members[i].string, names[i]);
            assert_string_equal(quotas.members[i].string, names[i]);
            int64_t q = structured_parameter(&policies.members[i], "q")->integer;
            int64_t r = structured_parameter(&quotas.members[i], "r")->integer;
            assert_true(r <= q);
            const struct structured_parameter *w = structured_parameter(&policies.members[i], "w");
            assert_true(w == NULL || w->integer > 0);
        }
    }
}

RUN_TESTS()
