/* SPDX-License-Identifier: Apache-2.0 */
/* What happens where nothing can be decided, and what libweir says of rules to an operator. */
#include "library_place.h"
#include "test.h"

#include <string.h>

#include <weir/embed.h>
#include <weir/version.h>

/* Chosen, so that its default is not warned of. */
#define DRAFT "headers: [draft]\n"
#define LIMITS "limits: [ { name: a, key: [], rate: 1/h } ]\n"

TEST_WITH(place_setup, place_teardown, "the rules say it at their top")
{
    struct place *place = *state;
    write_rules(place, LIMITS);
    assert_int_equal(weir_rules_on_store_error(place->rules), WEIR_ON_STORE_ERROR_NONE);
    write_rules(place, "on_store_error: local\n" LIMITS);
    assert_int_equal(weir_rules_on_store_error(place->rules), WEIR_ON_STORE_ERROR_LOCAL);
    write_rules(place, "on_store_error: open\n" LIMITS);
    assert_int_equal(weir_rules_on_store_error(place->rules), WEIR_ON_STORE_ERROR_OPEN);
    write_rules(place, "on_store_error: closed\n" LIMITS);
    assert_int_equal(weir_rules_on_store_error(place->rules), WEIR_ON_STORE_ERROR_CLOSED);
    write_rules(place, "on_store_error: shut\n" LIMITS);
    assert_int_equal(weir_rules_on_store_error(place->rules), WEIR_ON_STORE_ERROR_NONE);
    assert_int_equal(weir_rules_on_store_error("/nowhere"), WEIR_ON_STORE_ERROR_NONE);
}

TEST_WITH(place_setup, place_teardown, "only a state that fails lets requests pass")
{
    const bool today = weir_still_takes(WEIR_REFUSED_FROM);
    for (int open_before = 0; open_before < 2; open_before++) {
        for (int says = WEIR_ON_STORE_ERROR_NONE; says <= WEIR_ON_STORE_ERROR_CLOSED; says++) {
            bool open = says == WEIR_ON_STORE_ERROR_OPEN ||
                        (says == WEIR_ON_STORE_ERROR_NONE && open_before && today);
            assert_int_equal(weir_passes(WEIR_ERR_BUSY, says, open_before), open);
            assert_int_equal(weir_passes(WEIR_ERR_IO, says, open_before), open);
            assert_false(weir_passes(WEIR_ERR_SYNTAX, says, open_before));
            assert_false(weir_passes(WEIR_ERR_RULES, says, open_before));
            assert_false(weir_passes(WEIR_ERR_MEMORY, says, open_before));
        }
    }
}

TEST_WITH(place_setup, place_teardown, "who lets requests pass by an old default is warned")
{
    const char *warning = weir_on_store_error_warning(WEIR_ON_STORE_ERROR_NONE, true);
    if (weir_still_takes(WEIR_REFUSED_FROM))
        assert_non_null(strstr(warning, "on_store_error: closed"));
    else
        assert_null(warning);
    assert_null(weir_on_store_error_warning(WEIR_ON_STORE_ERROR_NONE, false));
    assert_null(weir_on_store_error_warning(WEIR_ON_STORE_ERROR_OPEN, true));
    assert_null(weir_on_store_error_warning(WEIR_ON_STORE_ERROR_CLOSED, true));
}

/* Also where no limit gives back for the status, so that the mistake shows with the first report.
 */
TEST_WITH(place_setup, place_teardown, "a report of what was never reserved is an error")
{
    static const char *const tokens[] = {"", "x", "r1.AAAA", "garbage garbage"};
    static struct weir_answer_summary answer;
    static struct weir_reservation_token reservation;
    struct place *place = *state;
    write_rules(place, "limits: [ { name: a, key: [], rate: 90/h, refund_on: 5xx } ]\n");
    struct weir *weir = open_weir(place, NULL);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        struct weir_reservation_token token = {.place_count = 0};
        snprintf(token.text, sizeof token.text, "%s", tokens[i]);
        assert_int_equal(weir_report(weir, &token, 200), WEIR_ERR_SYNTAX);
        assert_int_equal(weir_report(weir, &token, 500), WEIR_ERR_SYNTAX);
    }
    const struct weir_call call = {
        .cost = 1, .reserve = WEIR_RESERVE_ALWAYS, .reservation = &reservation};
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_int_equal(weir_report(weir, &reservation, 200), 0);
    assert_int_equal(weir_report(weir, &reservation, 503), 0);
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_int_equal(answer.remaining, 89); /* the first one was given back */
    weir_close(weir);
}

/* --- What is deprecated ----------------------------------------------------------------------- */

struct said {
    int count;
    char last[512];
};

static void note(void *context, enum weir_say level, const char *text)
{
    struct said *said = context;
    said->count++;
    snprintf(said->last, sizeof said->last, "%s", text);
}

static void note_mistake(void *context, const char *file, unsigned line, unsigned column,
                         const char *message)
{
    note(context, WEIR_SAY_WARNING, message);
}

TEST_WITH(place_setup, place_teardown, "what is deprecated is said when rules are read")
{
    struct place *place = *state;
    struct said said = {0}, mistakes = {0};
    const struct weir_options options = {.say = note, .say_context = &said};
    struct weir_reason reason;
    write_rules(place, DRAFT "limits: [ { name: a, key: [tenant], rate: 1/h } ]\n");
    assert_int_equal(weir_rules_check_file(place->rules, note_mistake, &mistakes, &reason), 0);
    assert_int_equal(mistakes.count, 1);
    assert_non_null(strstr(mistakes.last, "`tenant`"));
    struct weir *weir = open_weir(place, &options);
    assert_int_equal(said.count, 1);
    assert_non_null(strstr(said.last, "rules.yaml:3:28: unknown attribute `tenant`"));
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_int_equal(said.count, 2);
    write_rules(place, DRAFT "attributes: [tenant]\n"
                             "limits: [ { name: a, key: [tenant], rate: 1/h } ]\n");
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_int_equal(said.count, 2);
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "an opening says what headers that are not chosen mean now")
{
    struct place *place = *state;
    struct said said = {0};
    const struct weir_options options = {.say = note, .say_context = &said};
    struct weir_reason reason;
    write_rules(place, LIMITS);
    assert_non_null(weir_headers_warning(place->rules));
    struct weir *weir = open_weir(place, &options);
    assert_int_equal(said.count, 1);
    assert_non_null(strstr(said.last, "rules.yaml: X-RateLimit-Reset is a Unix time now"));
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_int_equal(said.count, 1);
    weir_close(weir);
    write_rules(place, DRAFT LIMITS);
    assert_null(weir_headers_warning(place->rules));
    weir = open_weir(place, &options);
    assert_int_equal(said.count, 1);
    weir_close(weir);
    write_rules(place, "limits: nonsense\n");
    assert_null(weir_headers_warning(place->rules));
}

/* By each door of libweir: names as texts, and handles. */
TEST_WITH(place_setup, place_teardown, "unknown names of requests are said once a minute")
{
    static struct weir_answer_summary answer;
    struct place *place = *state;
    struct said said = {0};
    const struct weir_options options = {.say = note, .say_context = &said};
    const struct weir_attribute_value wrong[] = {{"tennant", "acme"}}, right[] = {{"tenant", "x"}};
    struct weir_answer_summary summary;
    write_rules(place, DRAFT "attributes: [tenant]\n"
                             "limits: [ { name: a, key: [tenant], rate: 9/h } ]\n");
    struct weir *weir = open_weir(place, &options);
    assert_int_equal(weir_check(weir, right, 1, 1, &summary), 0);
    assert_int_equal(said.count, 0);
    assert_int_equal(weir_check(weir, wrong, 1, 1, &summary), 0);
    assert_int_equal(said.count, 1);
    assert_string_equal(said.last, "the attribute `tennant` of requests is neither built in nor "
                                   "declared, and was ignored 1 times; did you mean `tenant`?");
    const struct weir_value value = {weir_attribute(weir, "tenat"), "acme", 4};
    const struct weir_call call = {.values = &value, .count = 1, .cost = 1};
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_int_equal(said.count, 1); /* within the same minute */
    weir_close(weir);
}

TEST_WITH(place_setup, place_teardown, "a strict file refuses unknown names of programs")
{
    static struct weir_answer_summary answer;
    struct place *place = *state;
    struct said said = {0};
    const struct weir_options options = {.say = note, .say_context = &said};
    const struct weir_attribute_value wrong[] = {{"tennant", "acme"}};
    struct weir_answer_summary summary;
    write_rules(place, "strict_attributes: true\n" LIMITS);
    struct weir *weir = open_weir(place, &options);
    const struct weir_value value = {weir_attribute(weir, "tennant"), "acme", 4};
    const struct weir_call call = {.values = &value, .count = 1, .cost = 1};
    assert_int_equal(weir_check(weir, wrong, 1, 1, &summary), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_check_full(weir, &call, &answer), WEIR_ERR_SYNTAX);
    assert_int_equal(weir_front(weir, "nginx"), 0); /* its names are of a configuration */
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    weir_close(weir);
}

/* The reason of a failure is the first error, whatever is deprecated before it. */
TEST_WITH(place_setup, place_teardown, "a reason is an error")
{
    struct place *place = *state;
    struct weir *weir;
    struct weir_reason reason;
    write_rules(place, "limits: [ { name: a, key: [tenant], rate: 1/h, foo: 1 } ]\n");
    assert_int_equal(weir_open(&weir, place->rules, NULL, &reason), WEIR_ERR_RULES);
    assert_non_null(strstr(reason.text, "has no key `foo`"));
    assert_null(strstr(reason.text, "more)"));
}

RUN_TESTS()
