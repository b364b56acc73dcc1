/* SPDX-License-Identifier: Apache-2.0 */
/* wire/answer_json and wire/json_string: what clients read, byte for byte. */
#include "../answer_make.h"
#include "test.h"

#include "core/text/utf8.h"
#include "wire/json/answer.h"

static struct weir_answer answer;
static struct answer_limits limits;

static const char *written(void)
{
    static char copy[WEIR_ANSWER_JSON_MAX + 1];
    struct guarded guarded = guarded_new(WEIR_ANSWER_JSON_MAX);
    size_t size = weir_answer_json_write(&answer, guarded.start);
    memcpy(copy, guarded.start, size);
    copy[size] = '\0';
    guarded_free(&guarded);
    return copy;
}

static const char *problem(enum weir_problem_type type, unsigned status, const char *detail)
{
    static char copy[WEIR_PROBLEM_JSON_MAX + 1];
    struct guarded guarded = guarded_new(WEIR_PROBLEM_JSON_MAX);
    size_t size = weir_problem_json_write(type, status, detail, &answer, guarded.start);
    memcpy(copy, guarded.start, size);
    copy[size] = '\0';
    guarded_free(&guarded);
    return copy;
}

TEST("an answer without limits is allowed")
{
    answer_start(&answer);
    assert_string_equal(written(), "{\"allowed\":true,\"denied_by\":null,\"retry_after_ms\":0,"
                                   "\"delay_ms\":0,\"limits\":[]}");
}

TEST("a denial names its limit and rounds times up")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "login", WEIR_SLIDING_LOG, 5, 60 * SECOND);
    entry->allowed = false;
    entry->report = (struct weir_report){5, 0, 12 * SECOND - 999999, 60 * SECOND};
    entry = answer_add(&answer, &limits, "api", WEIR_LEAKY_QUEUE, 10, SECOND);
    entry->shadow = true;
    entry->report = (struct weir_report){UINT64_MAX, UINT64_MAX, 0, 1};
    answer.allowed = false;
    answer.denied_by = 0;
    answer.retry_after_ns = 12 * SECOND - 999999;
    answer.delay_ns = 1000001;
    assert_string_equal(
        written(),
        "{\"allowed\":false,\"denied_by\":\"login\",\"retry_after_ms\":12000,\"delay_ms\":2,"
        "\"limits\":[{\"name\":\"login\",\"algorithm\":\"sliding_log\",\"allowed\":false,"
        "\"shadow\":false,\"cost\":1,\"limit\":5,\"remaining\":0,\"retry_after_ms\":12000,"
        "\"reset_after_ms\":60000},"
        "{\"name\":\"api\",\"algorithm\":\"leaky_bucket\",\"allowed\":true,\"shadow\":true,"
        "\"cost\":1,"
        "\"limit\":18446744073709551615,\"remaining\":18446744073709551615,\"retry_after_ms\":0,"
        "\"reset_after_ms\":1}]}");
}

TEST("never and unlimited are null")
{
    answer_start(&answer);
    struct weir_answer_limit *entry = answer_add(&answer, &limits, "free", WEIR_GCRA, 1, SECOND);
    entry->unlimited = true;
    entry = answer_add(&answer, &limits, "must", WEIR_GCRA, 1, SECOND);
    entry->limit = NULL;
    entry->allowed = false;
    entry->report = (struct weir_report){0, 0, WEIR_NEVER, 0};
    answer.allowed = false;
    answer.denied_by = 1;
    answer.retry_after_ns = WEIR_NEVER;
    assert_string_equal(
        written(),
        "{\"allowed\":false,\"denied_by\":\"must\",\"retry_after_ms\":null,\"delay_ms\":0,"
        "\"limits\":[{\"name\":\"free\",\"algorithm\":\"gcra\",\"allowed\":true,\"shadow\":false,"
        "\"cost\":1,"
        "\"limit\":null,\"remaining\":null,\"retry_after_ms\":0,\"reset_after_ms\":0},"
        "{\"name\":\"must\",\"algorithm\":null,\"allowed\":false,\"shadow\":false,\"cost\":1,"
        "\"limit\":0,\"remaining\":0,\"retry_after_ms\":null,\"reset_after_ms\":0}]}");
}

TEST("a lease is reported where there is one")
{
    answer_start(&answer);
    answer.lease = (struct weir_bytes){"abc-123", 7};
    assert_string_equal(written(), "{\"allowed\":true,\"denied_by\":null,\"retry_after_ms\":0,"
                                   "\"delay_ms\":0,\"lease\":\"abc-123\",\"limits\":[]}");
}

TEST("a standing is reported unless it is good")
{
    answer_start(&answer);
    answer.standing.level = (struct weir_bytes){"throttled", 9};
    answer.standing.ends_ns = WEIR_NEVER;
    assert_string_equal(written(),
                        "{\"allowed\":true,\"denied_by\":null,\"retry_after_ms\":0,\"delay_ms\":0,"
                        "\"standing\":{\"level\":\"throttled\",\"reason\":null,"
                        "\"ends_after_ms\":null},\"limits\":[]}");
}

TEST("a standing that refuses is what denies")
{
    answer_start(&answer);
    answer.allowed = false;
    answer.retry_after_ns = answer.standing.ends_ns = 10 * SECOND + 1;
    answer.standing.refused = true;
    answer.standing.level = (struct weir_bytes){"suspended", 9};
    answer.standing.reason = (struct weir_bytes){"\"abuse\"", 7};
    assert_string_equal(written(),
                        "{\"allowed\":false,\"denied_by\":\"standing\",\"retry_after_ms\":10001,"
                        "\"delay_ms\":0,\"standing\":{\"level\":\"suspended\","
                        "\"reason\":\"\\\"abuse\\\"\",\"ends_after_ms\":10001},\"limits\":[]}");
}

static const struct weir_answer_signal signals[WEIR_SIGNALS_MAX] = {
    {{"no-agent", 8}, 30}, {{"tool", 4}, 40}, {{"unproven", 8}, 15}};

TEST("a score is reported where there is one")
{
    answer_start(&answer);
    answer.score.class = (struct weir_bytes){"suspicious", 10};
    answer.score.score = 45;
    answer.score.held = 5;
    assert_string_equal(written(),
                        "{\"allowed\":true,\"denied_by\":null,\"retry_after_ms\":0,\"delay_ms\":0,"
                        "\"score\":{\"score\":45,\"class\":\"suspicious\"},\"limits\":[]}");
    answer.score.signals = signals;
    assert_non_null(strstr(written(), "\"class\":\"suspicious\",\"signals\":{\"no-agent\":30,"
                                      "\"unproven\":15}},\"limits\""));
    answer.score.held = 0;
    assert_non_null(strstr(written(), "\"signals\":{}},\"limits\""));
}

TEST("a limit beyond its threshold says so")
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "month", WEIR_QUOTA, 100, 60 * SECOND);
    entry->report = (struct weir_report){100, 15, 0, 60 * SECOND};
    entry->warning = (struct weir_answer_warning){85, 100, 80};
    answer_add(&answer, &limits, "day", WEIR_QUOTA, 9, 60 * SECOND);
    assert_string_equal(
        written(),
        "{\"allowed\":true,\"denied_by\":null,\"retry_after_ms\":0,\"delay_ms\":0,"
        "\"limits\":[{\"name\":\"month\",\"algorithm\":\"quota\",\"allowed\":true,"
        "\"shadow\":false,\"cost\":1,\"limit\":100,\"remaining\":15,\"retry_after_ms\":0,"
        "\"reset_after_ms\":60000,\"warning\":{\"threshold\":80,\"used\":85,\"limit\":100}},"
        "{\"name\":\"day\",\"algorithm\":\"quota\",\"allowed\":true,\"shadow\":false,"
        "\"cost\":1,\"limit\":9,\"remaining\":0,\"retry_after_ms\":0,\"reset_after_ms\":0}]}");
}

TEST("the longest answer fits its room")
{
    static char name[WEIR_ANSWER_NAME_MAX + 1], lease[1024], reason[WEIR_ANSWER_REASON_MAX];
    memset(reason, 1, sizeof reason);
    memset(name, 1, WEIR_ANSWER_NAME_MAX); /* six bytes each */
    memset(lease, 1, sizeof lease);
    answer_start(&answer);
    for (int i = 0; i < WEIR_CHECKS_MAX; i++) {
        struct weir_answer_limit *entry =
            answer_add(&answer, &limits, name, WEIR_SLIDING_WINDOW, 1, SECOND);
        entry->allowed = false;
        entry->report =
            (struct weir_report){UINT64_MAX, UINT64_MAX, WEIR_NEVER - 1, WEIR_NEVER - 1};
        entry->cost = UINT64_MAX;
        entry->warning = (struct weir_answer_warning){UINT64_MAX, UINT64_MAX, 100};
    }
    answer.allowed = false;
    answer.denied_by = 0;
    answer.retry_after_ns = WEIR_NEVER - 1;
    answer.delay_ns = WEIR_NEVER - 1;
    answer.lease = (struct weir_bytes){lease, sizeof lease};
    answer.standing.level = (struct weir_bytes){"challenged", 10};
    answer.standing.reason = (struct weir_bytes){reason, sizeof reason};
    answer.standing.ends_ns = WEIR_NEVER - 1;
    static struct weir_answer_signal longest[WEIR_SIGNALS_MAX];
    static char signal[WEIR_ANSWER_NAME_MAX];
    memset(signal, 'a', sizeof signal);
    for (int i = 0; i < WEIR_SIGNALS_MAX; i++)
        longest[i] = (struct weir_answer_signal){{signal, sizeof signal}, 100};
    answer.score.class = (struct weir_bytes){"suspicious", 10};
    answer.score.score = 3200;
    answer.score.held = UINT32_MAX;
    answer.score.signals = longest;
    assert_true(strlen(written()) > WEIR_ANSWER_JSON_MAX / 2);
    char detail[1000];
    memset(detail, 2, sizeof detail - 1);
    detail[sizeof detail - 1] = '\0';
    assert_true(strlen(problem(WEIR_PROBLEM_QUOTA_EXCEEDED, 429, detail)) < WEIR_PROBLEM_JSON_MAX);
}

static const char *told(size_t (*write)(const struct weir_problem_json *, char *),
                        const struct weir_problem_json *about)
{
    static char copy[WEIR_PROBLEM_JSON_MAX + 1];
    struct guarded guarded = guarded_new(WEIR_PROBLEM_JSON_MAX);
    size_t size = write(about, guarded.start);
    memcpy(copy, guarded.start, size);
    copy[size] = '\0';
    guarded_free(&guarded);
    return copy;
}

/* A denial by one limit of 10, of which 2 are left. */
static struct weir_problem_json deny(uint64_t cost, uint64_t retry_ns, unsigned status)
{
    answer_start(&answer);
    struct weir_answer_limit *entry =
        answer_add(&answer, &limits, "api", WEIR_SLIDING_WINDOW, 10, SECOND);
    entry->allowed = false;
    entry->cost = cost;
    entry->report = (struct weir_report){10, 2, retry_ns, SECOND};
    answer.allowed = false;
    answer.denied_by = 0;
    answer.retry_after_ns = retry_ns;
    return (struct weir_problem_json){
        .type = weir_problem_of(&answer), .status = status, .answer = &answer};
}

TEST("a denial says what is known of it, in both forms")
{
    struct weir_problem_json about = deny(3, 6 * SECOND + 1, 429);
    about.documentation = (struct weir_bytes){"https://e.org/d", 15};
    assert_string_equal(
        told(weir_problem_write, &about),
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\","
        "\"title\":\"Request cannot be satisfied as assigned quota has been exceeded\","
        "\"status\":429,\"violated-policies\":[\"api\"],\"retry_after\":7,\"limit\":10,"
        "\"remaining\":2,\"cost\":3,\"documentation\":\"https://e.org/d\"}");
    assert_string_equal(told(weir_error_json_write, &about),
                        "{\"error\":\"Too Many Requests\",\"code\":\"RATE_LIMIT_EXCEEDED\","
                        "\"message\":\"Rate limit exceeded for api. Retry after 7 seconds.\","
                        "\"retryAfter\":7,\"limit\":10,\"remaining\":2,\"cost\":3,"
                        "\"documentation\":\"https://e.org/d\"}");
    answer.retry_after_ns = SECOND;
    assert_non_null(strstr(told(weir_error_json_write, &about), "Retry after 1 second."));
}

TEST("a cost above the limit is a type of its own")
{
    struct weir_problem_json about = deny(11, WEIR_NEVER, 413);
    assert_int_equal(about.type, WEIR_PROBLEM_COST_ABOVE_LIMIT);
    assert_string_equal(
        told(weir_problem_write, &about),
        "{\"type\":\"tag:weir,2026:cost-above-limit\",\"title\":\"Request cannot be satisfied at "
        "any time as its cost is above the limit\",\"status\":413,\"violated-policies\":[\"api\"],"
        "\"limit\":10,\"remaining\":2,\"cost\":11}");
    assert_string_equal(told(weir_error_json_write, &about),
                        "{\"error\":\"Content Too Large\",\"code\":\"COST_ABOVE_LIMIT\","
                        "\"message\":\"The cost of 11 is above the limit of 10 for api. Waiting "
                        "does not help.\",\"limit\":10,\"remaining\":2,\"cost\":11}");
    assert_int_equal(deny(10, SECOND, 429).type, WEIR_PROBLEM_QUOTA_EXCEEDED);
    (void)deny(1, WEIR_NEVER, 429); /* a limit that admits nothing */
    answer.limits[0].report.limit = 0;
    assert_int_equal(weir_problem_of(&answer), WEIR_PROBLEM_QUOTA_EXCEEDED);
}

TEST("what a store that fails has not said is left out")
{
    struct weir_problem_json about = deny(1, 2 * SECOND, 503);
    answer.source = WEIR_SOURCE_CLOSED;
    about.type = weir_problem_of(&answer);
    assert_string_equal(told(weir_error_json_write, &about),
                        "{\"error\":\"Service Unavailable\",\"code\":\"SERVICE_UNAVAILABLE\","
                        "\"message\":\"The service cannot count requests now. Retry after 2 "
                        "seconds.\",\"retryAfter\":2}");
    answer.source = WEIR_SOURCE_STORE;
}

TEST("problems carry the types of the draft")
{
    answer_start(&answer);
    answer_add(&answer, &limits, "daily", WEIR_GCRA, 1, SECOND)->allowed = false;
    answer_add(&answer, &limits, "fine", WEIR_GCRA, 1, SECOND);
    struct weir_answer_limit *shadow = answer_add(&answer, &limits, "shadow", WEIR_GCRA, 1, SECOND);
    shadow->shadow = true;
    shadow->allowed = false;
    answer_add(&answer, &limits, "monthly", WEIR_GCRA, 1, SECOND)->allowed = false;
    assert_string_equal(
        problem(WEIR_PROBLEM_QUOTA_EXCEEDED, 429, NULL),
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\","
        "\"title\":\"Request cannot be satisfied as assigned quota has been exceeded\","
        "\"status\":429,\"violated-policies\":[\"daily\",\"monthly\"]}");
    for (int i = 1; i <= 3; i++) /* of three rates the second and the third deny */
        answer_add_rate(&answer, answer.limits[3].limit)->allowed = i == 1;
    assert_non_null(strstr(problem(WEIR_PROBLEM_QUOTA_EXCEEDED, 429, NULL),
                           ",\"violated-policies\":[\"daily\",\"monthly:2\",\"monthly:3\"]}"));
    assert_string_equal(
        problem(WEIR_PROBLEM_REDUCED_CAPACITY, 503, "a \"store\" is down"),
        "{\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\","
        "\"title\":\"Request cannot be satisfied due to temporary server capacity constraints\","
        "\"status\":503,\"detail\":\"a \\\"store\\\" is down\"}");
    assert_string_equal(problem(WEIR_PROBLEM_BLANK, 400, "cost: not a number"),
                        "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,"
                        "\"detail\":\"cost: not a number\"}");
    assert_string_equal(problem(WEIR_PROBLEM_BLANK, 599, NULL),
                        "{\"type\":\"about:blank\",\"title\":\"Unknown\",\"status\":599}");
}

static void assert_string(const char *text, size_t size, const char *expected)
{
    char out[512];
    size_t length = weir_json_string_write(text, size, out);
    out[length] = '\0';
    assert_string_equal(out, expected);
}

TEST("strings are escaped as json asks")
{
    assert_string("", 0, "\"\"");
    assert_string("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"");
    assert_string("\b\t\n\v\f\r\0\x1f\x7f", 9, "\"\\b\\t\\n\\u000b\\f\\r\\u0000\\u001f\x7f\"");
    assert_string("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
                  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

#define FFFD "\xef\xbf\xbd"

TEST("bytes that are no utf8 become replacement characters")
{
    assert_string("\xff", 1, "\"" FFFD "\"");
    assert_string("\xc3", 1, "\"" FFFD "\"");
    assert_string("\xc3(", 2, "\"" FFFD "(\"");
    assert_string("\xc0\x80", 2, "\"" FFFD FFFD "\"");
    assert_string("\xe0\x80\x80", 3, "\"" FFFD FFFD FFFD "\"");
    assert_string("\xed\xa0\x80", 3, "\"" FFFD FFFD FFFD "\"");
    assert_string("\xf4\x90\x80\x80", 4, "\"" FFFD FFFD FFFD FFFD "\"");
    assert_string("\xf0\x8f\xbf\xbf", 4, "\"" FFFD FFFD FFFD FFFD "\"");
    assert_string("\xe2\x82", 2, "\"" FFFD FFFD "\"");
}

/* Encodes as RFC 3629 says, for any number. */
static size_t encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)(0xf00 >> size | code);
    return size;
}

TEST("every character of unicode is utf8 and nothing else")
{
    char text[4];
    for (uint32_t code = 0; code < 0x200000; code++) {
        size_t size = encode(code, text);
        bool valid = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        assert_int_equal(weir_utf8_size(text, size), valid ? size : 0);
        if (valid && size > 1)
            assert_int_equal(weir_utf8_size(text, size - 1), 0);
    }
    unsigned valid_pairs = 0;
    for (uint32_t pair = 0; pair < 0x10000; pair++) {
        text[0] = (char)(pair >> 8);
        text[1] = (char)pair;
        valid_pairs += weir_utf8_size(text, 2) == 2;
    }
    assert_int_equal(valid_pairs, 0x800 - 0x80);
}

RUN_TESTS()
