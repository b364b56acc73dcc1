/* SPDX-License-Identifier: Apache-2.0 */
/* `reject`: what is refused, and the body that a denial gets. */
#include "rules/actions/reject.h"
#include "test.h"

#include "rules_test.h"

#define LIMIT(reject) "limits:\n- {name: a, key: [], rate: 9/s, reject: " reject "}\n"

TEST("what is wrong is reported")
{
    static const struct test_problem_case cases[] = {
        {LIMIT("429"), "2:41: `reject` must be a mapping, not a text\n"},
        {LIMIT("{status: 200}"),
         "2:50: `status` must be one of 400, 401, 402, 403, 404, 409, 413, 429, 500, 503, "
         "not `200`; did you mean `400`?\n"},
        {LIMIT("{tarpit: 1h}"), "2:50: `tarpit` must be 1ms to 1min, not `1h`\n"},
        {LIMIT("{headers: {}}"), "2:51: `headers` must be a mapping of 1 to 8 names to values\n"},
        {LIMIT("{headers: {'a b': c}}"), "2:52: `a b` is not the name of a header field\n"},
        {LIMIT("{headers: {Content-Length: '0'}}"),
         "2:52: weir sets `Content-Length` itself; remove it from `headers`\n"},
        {LIMIT("{headers: {ratelimit-policy: '0'}}"),
         "2:52: weir sets `ratelimit-policy` itself; remove it from `headers`\n"},
        {LIMIT("{headers: {x-ratelimit-reset: '0'}}"),
         "2:52: weir sets `x-ratelimit-reset` itself; remove it from `headers`\n"},
        {LIMIT("{headers: {X-Why: '{{why}}'}}"),
         "2:59: the value, at byte 0: unknown variable; use {{retry_after}}, {{limit}}, "
         "{{remaining}} or {{reason}}\n"},
        {LIMIT("{headers: {X-A: '{{limit}}{{limit}}{{limit}}', X-B: '{{limit}}{{limit}}{{limit}}', "
               "X-C: '{{limit}}{{limit}}{{limit}}'}}"),
         "2:51: `headers` have more than 6 variables together\n"},
        {LIMIT("{form: json, body: '{}'}"),
         "2:42: `form` is that of a body that `body` replaces\n"},
        {LIMIT("{documentation: docs/limits}"),
         "2:57: `documentation` must be a URL of at most 256 bytes, such as "
         "`https://example.com/docs/limits`\n"},
        {"headers: [dimension]\n" LIMIT("{headers: {X-RateLimit-Dimension: a}}"),
         "3:52: weir sets `X-RateLimit-Dimension` itself; remove it from `headers`\n"},
        {"reject: {tarpit: 1s}\nlimits: []\n", "1:10: `reject` has no key `tarpit`; its keys are "
                                               "status, above_status, form, headers, body, "
                                               "content_type, documentation\n"},
        {LIMIT("{headers: {X-RateLimit-Status: '200'}}"),
         "2:52: weir sets `X-RateLimit-Status` itself; remove it from `headers`\n"},
        {LIMIT("{headers: {X-Weir-Delay-Ms: '0'}}"),
         "2:52: weir sets `X-Weir-Delay-Ms` itself; remove it from `headers`\n"},
        {LIMIT("{headers: {A: \"b\\r\\nC: d\"}}"),
         "2:55: the value of a header field must be visible ASCII characters, and spaces between "
         "them\n"},
        {LIMIT("{content_type: text/plain}"),
         "2:42: `content_type` is that of a `body`, which is missing\n"},
        {LIMIT("{body: x, content_type: html}"),
         "2:65: `content_type` must be a media type such as `application/json`\n"},
        {LIMIT("{body: '{{retry}}'}"),
         "2:48: `body`, at byte 0: unknown variable; use {{retry_after}}, {{limit}}, "
         "{{remaining}} or {{reason}}\n"},
        {LIMIT("{body: 'see {{limit}', content_type: text/plain}"),
         "2:48: `body`, at byte 4: `{{` has no `}}`\n"},
        {LIMIT("{body: '{\"a\":{{reason}}}'}"),
         "2:48: `body` is not JSON when its variables are filled in, in its line 1: invalid token "
         "near 'api'\n"},
        {LIMIT("{bdy: x}"), "2:42: `reject` has no key `bdy`; did you mean `body`?\n"},
    };
    TEST_REFUSED_ALL(cases);
}

static void expect_body(const char *reject, uint64_t retry_after_ns, const char *expected)
{
    static struct weir_answer answer;
    static char text[1024], out[WEIR_TEMPLATE_OUT_MAX];
    snprintf(text, sizeof(text), "limits:\n- {name: a, key: [], rate: 9/s, reject: %s}\n", reject);
    struct weir_rules *rules = test_load(text);
    answer.denied_by = 1;
    answer.retry_after_ns = retry_after_ns;
    answer.limits[1].name = (struct weir_bytes){"a<\"\n\\&'", 7};
    answer.limits[1].report = (struct weir_report){.limit = 9, .remaining = 3};
    answer.reject = weir_rules_reject(rules, 0);
    size_t size = weir_reject_body_write(&answer, out);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(out, expected, size);
    weir_rules_unref(rules);
}

TEST("variables are escaped for the content type")
{
    expect_body("{body: '{\"r\":{{retry_after}},\"w\":\"{{ reason }}\"}'}", 1000000001,
                "{\"r\":2,\"w\":\"a<\\\"\\u000a\\\\&'\"}");
    expect_body("{body: '[{{retry_after}},{{limit}},{{remaining}}]',"
                " content_type: 'application/problem+json; charset=utf-8'}",
                WEIR_NEVER, "[null,9,3]");
    expect_body("{body: '{{reason}}{{retry_after}}', content_type: TEXT/HTML}", WEIR_NEVER,
                "a&lt;&quot; \\&amp;&#39;never");
    expect_body("{body: '}} {{reason}} {', content_type: text/plain}", 0, "}} a<\" \\&' {");
    expect_body("{body: 'x', content_type: text/plain}", 0, "x");
}

TEST("what is given is kept")
{
    struct weir_rules *rules =
        test_load(LIMIT("{status: 503, tarpit: 250ms, headers: {Link: </a>; rel=help}}"));
    const struct weir_reject *reject = weir_rules_reject(rules, 0);
    assert_int_equal(reject->status, 503);
    assert_int_equal(reject->tarpit_ns, 250000000);
    assert_int_equal(reject->header_count, 1);
    assert_memory_equal(reject->headers[0].value.parts[0].text.data, "</a>; rel=help", 14);
    assert_int_equal(reject->body.count, 0);
    weir_rules_unref(rules);
}

TEST("a limit has what the file says, and its own in place of it")
{
    struct weir_rules *rules = test_load(
        "reject: {form: json, status: 403, headers: {X-A: '1', X-B: '2'}, documentation: "
        "'https://example.com/l'}\n"
        "limits:\n"
        "- {name: plain, key: [], rate: 9/s}\n"
        "- {name: own, key: [], rate: 9/s, reject: {above_status: 413, headers: {X-C: '3'}}}\n"
        "- {name: worded, key: [], rate: 9/s, reject: {body: '{}'}}\n"
        "- {name: formed, key: [], rate: 9/s, reject: {form: problem}}\n");
    const struct weir_reject *all = weir_rules_reject_all(rules);
    const struct weir_reject *own = weir_rules_reject(rules, 1);
    assert_null(weir_rules_reject(rules, 0));
    assert_int_equal(all->form, WEIR_REJECT_JSON);
    assert_int_equal(all->header_count, 2);
    assert_int_equal(own->form, WEIR_REJECT_JSON);
    assert_int_equal(own->status, 403);
    assert_int_equal(own->above_status, 413);
    assert_int_equal(own->header_count, 1);
    assert_memory_equal(own->headers[0].name.data, "X-C", 3);
    assert_memory_equal(own->documentation.data, "https://example.com/l", 21);
    assert_int_equal(weir_rules_reject(rules, 2)->body.count, 1);
    assert_int_equal(weir_rules_reject(rules, 3)->form, WEIR_REJECT_PROBLEM);
    weir_rules_unref(rules);
}

TEST("fields that weir does not set may be set")
{
    struct weir_rules *rules = test_load("headers: []\n" LIMIT(
        "{headers: {X-RateLimit-Dimension: '{{reason}}', X-Ratelimit-Retry-After: "
        "'{{retry_after}}', X-RateLimit-Limit: '{{limit}}'}}"));
    assert_int_equal(weir_rules_reject(rules, 0)->header_count, 3);
    weir_rules_unref(rules);
}

RUN_TESTS()
