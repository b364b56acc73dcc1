/* wire/ratelimit_headers: every dialect, byte for byte, and read back as structured fields. */
#include "answer_make.h"

#include "structured_list.h"
#include "wire/ratelimit_headers.h"

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

static void the_draft_is_two_lists(void **state)
{
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "login", WEIR_SLIDING_LOG, 5, 60 * SECOND);
    told->report.remaining = 4;
    told->report.reset_after_ns = 11 * SECOND + 1;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0), "RateLimit-Policy: \"login\";q=5;w=60\r\n"
                                                        "RateLimit: \"login\";r=4;t=12\r\n");
    told = answer_add(&answer, &limits, "api", WEIR_FIXED_WINDOW, 1000, 3600 * SECOND);
    told->report.remaining = 999;
    told->report.reset_after_ns = 1;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"login\";q=5;w=60, \"api\";q=1000;w=3600\r\n"
                        "RateLimit: \"login\";r=4;t=12, \"api\";r=999;t=1\r\n");
}

static void the_window_of_a_bucket_shrinks_with_what_is_left(void **state)
{
    static const enum weir_algorithm buckets[] = {WEIR_TOKEN_BUCKET, WEIR_GCRA, WEIR_LEAKY_BUCKET,
                                                  WEIR_LEAKY_QUEUE};
    for (size_t i = 0; i < 4; i++) {
        answer_start(&answer);
        struct weir_answer_limit *told =
            answer_add(&answer, &limits, "b", buckets[i], 7, 10 * SECOND);
        told->report.limit = 20;
        told->report.reset_after_ns = 99 * SECOND;
        told->report.remaining = 2; /* 2 * 10 / 7 = 2.86 s */
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                            "RateLimit-Policy: \"b\";q=7;w=10\r\nRateLimit: \"b\";r=2;t=3\r\n");
        told->report.remaining = 15; /* the burst is not told: r <= q */
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                            "RateLimit-Policy: \"b\";q=7;w=10\r\nRateLimit: \"b\";r=7;t=10\r\n");
        told->report.remaining = 0;
        told->next_ns = SECOND + 1;
        assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                            "RateLimit-Policy: \"b\";q=7;w=10\r\nRateLimit: \"b\";r=0;t=2\r\n");
    }
}

static void the_window_of_a_bucket_is_exact_over_the_whole_range(void **state)
{
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "b", WEIR_GCRA, WEIR_BUCKET_MAX, WEIR_WINDOW_MAX_NS);
    told->report.remaining = WEIR_BUCKET_MAX - 1; /* 366 days - 28.76 us */
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"b\";q=1099511627776;w=31622400\r\n"
                        "RateLimit: \"b\";r=1099511627775;t=31622400\r\n");
    told->report.remaining = WEIR_BUCKET_MAX / 2; /* exactly half a window */
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"b\";q=1099511627776;w=31622400\r\n"
                        "RateLimit: \"b\";r=549755813888;t=15811200\r\n");
}

static void a_window_of_a_part_of_a_second_is_left_out(void **state)
{
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "ms", WEIR_FIXED_WINDOW, 10, SECOND / 10);
    told->report.remaining = 10;
    told->report.reset_after_ns = 0;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"ms\";q=10\r\nRateLimit: \"ms\";r=10;t=0\r\n");
}

static void a_limit_of_zero_never_admits_and_has_no_window_to_tell(void **state)
{
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "off", WEIR_TOKEN_BUCKET, 0, SECOND);
    told->next_ns = WEIR_NEVER;
    answer.allowed = false;
    answer.denied_by = 0;
    answer.retry_after_ns = WEIR_NEVER;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"off\";q=0;w=1\r\nRateLimit: \"off\";r=0\r\n");
}

static void concurrency_names_its_unit_and_no_window(void **state)
{
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "jobs", WEIR_CONCURRENCY, 3, 30 * SECOND);
    told->report.remaining = 1;
    told->report.reset_after_ns = 30 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"jobs\";q=3;qu=\"concurrent-requests\"\r\n"
                        "RateLimit: \"jobs\";r=1\r\n");
    told->report.remaining = 0;
    told->next_ns = 30 * SECOND;
    assert_string_equal(written(WEIR_HEADERS_DRAFT, 0),
                        "RateLimit-Policy: \"jobs\";q=3;qu=\"concurrent-requests\"\r\n"
                        "RateLimit: \"jobs\";r=0;t=30\r\n");
}

static void warnings_are_one_list_beside_any_dialect(void **state)
{
    static const char expected[] = "X-RateLimit-Warning: \"month\";threshold=80;used=85;limit=100, "
                                   "\"odd\\\"one\";threshold=100;used=999999999999999;"
                                   "limit=999999999999999\r\n";
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "month", WEIR_QUOTA, 100, 3600 * SECOND);
    told->warning = (struct weir_answer_warning){85, 100, 80};
    answer_add(&answer, &limits, "quiet", WEIR_QUOTA, 100, 3600 * SECOND);
    told = answer_add(&answer, &limits, "odd\"one", WEIR_QUOTA, 100, 3600 * SECOND);
    told->warning = (struct weir_answer_warning){UINT64_MAX, UINT64_MAX, 100};
    told = answer_add(&answer, &limits, "shadow", WEIR_QUOTA, 100, 3600 * SECOND);
    told->warning = (struct weir_answer_warning){85, 100, 80};
    told->shadow = true;
    for (uint32_t dialects = 1; dialects < 32; dialects++) {
        const char *fields = written(dialects, 0);
        const char *at = strstr(fields, "X-RateLimit-Warning: ");
        assert_non_null(at);
        assert_string_equal(at, expected);
        assert_null(strstr(at + 1, "X-RateLimit-Warning: "));
    }
    assert_string_equal(written(0, 0), "");
}

static void the_other_dialects_are_three_fields(void **state)
{
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "a", WEIR_TOKEN_BUCKET, 100, 60 * SECOND);
    told->report = (struct weir_report){120, 119, 0, 600000000};
    assert_string_equal(written(WEIR_HEADERS_DRAFT_03, 0),
                        "RateLimit-Limit: 120\r\nRateLimit-Remaining: 119\r\n"
                        "RateLimit-Reset: 1\r\n");
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 1700000000),
                        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
                        "X-RateLimit-Reset: 1\r\n");
    assert_string_equal(written(WEIR_HEADERS_X_EPOCH, 1700000000),
                        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
                        "X-RateLimit-Reset: 1700000002\r\n");
    told->report.reset_after_ns = 0;
    assert_string_equal(written(WEIR_HEADERS_X_EPOCH, 1700000000),
                        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
                        "X-RateLimit-Reset: 1700000000\r\n");
    told->report.reset_after_ns = 600000000;
    assert_string_equal(written(WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA, 1700000000),
                        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
                        "X-RateLimit-Reset: 1700000002\r\n");
    assert_string_equal(
        written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_DRAFT_03 | WEIR_HEADERS_X_DELTA, 0),
        "RateLimit-Policy: \"a\";q=100;w=60\r\n"
        "RateLimit: \"a\";r=100;t=60\r\n"
        "RateLimit-Limit: 120\r\nRateLimit-Remaining: 119\r\nRateLimit-Reset: 1\r\n"
        "X-RateLimit-Limit: 120\r\nX-RateLimit-Remaining: 119\r\n"
        "X-RateLimit-Reset: 1\r\n");
}

static void one_limit_is_told_as_the_tightest(void **state)
{
    answer_start(&answer);
    answer_add(&answer, &limits, "a", WEIR_GCRA, 100, SECOND)->report.remaining = 50;
    answer_add(&answer, &limits, "b", WEIR_GCRA, 30, SECOND)->report.remaining = 20;
    answer_add(&answer, &limits, "c", WEIR_GCRA, 40, SECOND)->report.remaining = 20;
    struct weir_answer_limit *shadow = answer_add(&answer, &limits, "d", WEIR_GCRA, 1, SECOND);
    shadow->shadow = true;
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 0),
                        "X-RateLimit-Limit: 30\r\nX-RateLimit-Remaining: 20\r\n"
                        "X-RateLimit-Reset: 0\r\n");
    answer.allowed = false;
    answer.denied_by = 0;
    answer.retry_after_ns = 1;
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 0),
                        "X-RateLimit-Limit: 100\r\nX-RateLimit-Remaining: 50\r\n"
                        "X-RateLimit-Reset: 0\r\nRetry-After: 1\r\n");
}

static void what_is_not_for_clients_is_not_told(void **state)
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
    answer_add(&answer, &limits, "told", WEIR_GCRA, 1, SECOND)->report.remaining = 1;
    assert_string_equal(written(WEIR_HEADERS_X_DELTA, 0),
                        "X-RateLimit-Limit: 1\r\nX-RateLimit-Remaining: 1\r\n"
                        "X-RateLimit-Reset: 0\r\n");
}

static void retry_after_stands_on_denials_with_a_finite_wait_only(void **state)
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

static void integers_are_clamped_to_fifteen_digits(void **state)
{
    answer_start(&answer);
    struct weir_answer_limit *told =
        answer_add(&answer, &limits, "huge", WEIR_FIXED_WINDOW, UINT64_MAX, 60 * SECOND);
    told->report = (struct weir_report){UINT64_MAX, UINT64_MAX, 0, SECOND};
    assert_string_equal(written(WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_DELTA, 0),
                        "RateLimit-Policy: \"huge\";q=999999999999999;w=60\r\n"
                        "RateLimit: \"huge\";r=999999999999999;t=1\r\n"
                        "X-RateLimit-Limit: 999999999999999\r\n"
                        "X-RateLimit-Remaining: 999999999999999\r\nX-RateLimit-Reset: 1\r\n");
}

/* The value of a field, or NULL. */
static const char *field(const char *fields, const char *name, size_t *size)
{
    const char *at = strstr(fields, name);
    *size = 0;
    if (at == NULL) {
        return NULL;
    }
    at += strlen(name);
    *size = (size_t)(strstr(at, "\r\n") - at);
    return at;
}

static void the_longest_answer_fits_and_any_answer_reads_back(void **state)
{
    static char names[WEIR_CHECKS_MAX][WEIR_RATELIMIT_NAME_MAX + 1];
    struct random_source random = {4};
    for (int round = 0; round < 2000; round++) {
        struct structured_list policies, quotas;
        size_t size = 0;
        answer_start(&answer);
        for (unsigned i = 0, count = 1 + (unsigned)random_below(&random, 32); i < count; i++) {
            size_t length = 1 + random_below(&random, WEIR_RATELIMIT_NAME_MAX);
            for (size_t j = 0; j < length; j++) {
                names[i][j] = (char)(round == 0 ? '"' : 0x20 + random_below(&random, 95));
            }
            names[i][round == 0 ? WEIR_RATELIMIT_NAME_MAX : length] = '\0';
            struct weir_answer_limit *told = answer_add(
                &answer, &limits, names[i], (enum weir_algorithm)random_below(&random, 8),
                random_next(&random) >> random_below(&random, 64),
                (1 + random_below(&random, 1000)) * (SECOND / 4));
            told->report.remaining = random_below(&random, told->report.limit | 1);
            told->report.reset_after_ns = random_next(&random) >> 10;
            told->next_ns = told->report.remaining > 0 ? 0 : SECOND;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_draft_is_two_lists),
        cmocka_unit_test(the_window_of_a_bucket_shrinks_with_what_is_left),
        cmocka_unit_test(the_window_of_a_bucket_is_exact_over_the_whole_range),
        cmocka_unit_test(a_window_of_a_part_of_a_second_is_left_out),
        cmocka_unit_test(a_limit_of_zero_never_admits_and_has_no_window_to_tell),
        cmocka_unit_test(concurrency_names_its_unit_and_no_window),
        cmocka_unit_test(warnings_are_one_list_beside_any_dialect),
        cmocka_unit_test(the_other_dialects_are_three_fields),
        cmocka_unit_test(one_limit_is_told_as_the_tightest),
        cmocka_unit_test(what_is_not_for_clients_is_not_told),
        cmocka_unit_test(retry_after_stands_on_denials_with_a_finite_wait_only),
        cmocka_unit_test(integers_are_clamped_to_fifteen_digits),
        cmocka_unit_test(the_longest_answer_fits_and_any_answer_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
