/* SPDX-License-Identifier: Apache-2.0 */
/* see addon.h */
#include "addon.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/version.h>

#include "values.h"

#define STATUS_MIN 100u
#define STATUS_MAX 599u

/* --- Between C and JavaScript ----------------------------------------------------------------- */

/* The object that a method is called on, and its arguments; NULL: an exception is pending. The
 * class' signature has checked `this`. */
static struct handle *enter(napi_env env, napi_callback_info info, size_t count, napi_value *args)
{
    napi_value self;
    void *handle = NULL;
    size_t given = count;
    if (napi_get_cb_info(env, info, &given, args, &self, NULL) != napi_ok ||
        napi_unwrap(env, self, &handle) != napi_ok || !handle || given < count) {
        values_misused(env);
        return NULL;
    }
    struct handle *h = handle;
    if (!h->weir) {
        napi_throw_error(env, "WEIR_ERR_UNSUPPORTED", "weir is closed");
        return NULL;
    }
    return h;
}

static napi_value number(napi_env env, double value)
{
    napi_value result = NULL;
    napi_create_double(env, value, &result);
    return result;
}

/* --- Opening ---------------------------------------------------------------------------------- */

/* Tells V8 of the state, which it cannot see: objects that are forgotten would be collected only
 * when their own few bytes matter. */
static void tell_memory(napi_env env, const struct handle *handle, bool held)
{
    int64_t bytes = (int64_t)(weir_memory(handle->weir) + sizeof *handle), total;
    napi_adjust_external_memory(env, held ? bytes : -bytes, &total);
}

static void close_weir(napi_env env, struct handle *handle)
{
    if (!handle->weir)
        return;
    tell_memory(env, handle, false);
    weir_close(handle->weir);
    handle->weir = NULL;
}

static void close_handle(napi_env env, void *data, void *hint)
{
    struct handle *handle = data;
    close_weir(env, handle);
    lines_free(&handle->lines);
    if (handle->numbers)
        napi_delete_reference(env, handle->numbers);
    free(handle->checker.bytes);
    free(handle);
}

/* The array of numbers that both sides see, as the property `numbers`. */
static bool share_numbers(napi_env env, napi_value self, struct handle *handle)
{
    napi_value buffer, array;
    void *data;
    return napi_create_arraybuffer(env, CHECK_NUMBERS * sizeof(double), &data, &buffer) ==
               napi_ok &&
           napi_create_typedarray(env, napi_float64_array, CHECK_NUMBERS, buffer, 0, &array) ==
               napi_ok &&
           napi_set_named_property(env, self, "numbers", array) == napi_ok &&
           napi_create_reference(env, buffer, 1, &handle->numbers) == napi_ok &&
           (handle->checker.numbers = data, true);
}

enum argument {
    RULES,
    STATE,
    STATE_OWNER,
    STATE_GROUP,
    STATE_BYTES,
    STATE_MODE,
    STATE_PATIENCE_MS,
    STATE_OPEN_PATIENCE_MS,
    THREADS,
    LEASES_END,
    STATE_MUST_OPEN,
    TEST_CLOCK_MS,
    ARGUMENTS
};

#define PATH_ROOM 4096

static uint64_t ns_of_ms(uint64_t ms)
{
    return ms > UINT64_MAX / 1000000 ? WEIR_NEVER : ms * 1000000;
}

static int open_weir(napi_env env, const napi_value *args, struct handle *handle,
                     struct weir_reason *reason)
{
    char texts[STATE_GROUP + 1][PATH_ROOM];
    uint64_t numbers[ARGUMENTS] = {0};
    for (int i = RULES; i <= STATE_GROUP; i++)
        if (!values_text(env, args[i], texts[i], PATH_ROOM))
            return WEIR_ERR_TOO_LARGE;
    for (int i = STATE_BYTES; i <= TEST_CLOCK_MS; i++)
        if (!values_number(env, args[i], &numbers[i]))
            return WEIR_ERR_RANGE;
    if (numbers[STATE_MODE] > UINT_MAX || numbers[THREADS] > UINT_MAX)
        return WEIR_ERR_RANGE;
    const struct weir_options options = {
        .state_file = texts[STATE][0] ? texts[STATE] : NULL,
        .state_bytes = numbers[STATE_BYTES],
        .state_patience_ns = ns_of_ms(numbers[STATE_PATIENCE_MS]),
        .state_open_patience_ns = ns_of_ms(numbers[STATE_OPEN_PATIENCE_MS]),
        .state_owner = texts[STATE_OWNER][0] ? texts[STATE_OWNER] : NULL,
        .state_group = texts[STATE_GROUP][0] ? texts[STATE_GROUP] : NULL,
        .state_mode = (unsigned)numbers[STATE_MODE],
        .threads = (unsigned)numbers[THREADS],
        .leases_end_with_process = numbers[LEASES_END] != 0,
        .state_must_open = numbers[STATE_MUST_OPEN] != 0,
        .test_clock_ns = ns_of_ms(numbers[TEST_CLOCK_MS]),
        .say = lines_put,
        .say_context = &handle->lines,
    };
    int err = weir_open(&handle->weir, texts[RULES], &options, reason);
    if (err == 0)
        handle->on_store_error = weir_rules_on_store_error(texts[RULES]);
    return err;
}

static napi_value construct(napi_env env, napi_callback_info info)
{
    napi_value self, args[ARGUMENTS];
    size_t count = ARGUMENTS;
    struct weir_reason reason = {""};
    if (napi_get_cb_info(env, info, &count, args, &self, NULL) != napi_ok || count < ARGUMENTS)
        return values_misused(env);
    struct handle *handle = calloc(1, sizeof *handle);
    if (!handle)
        return values_fail(env, WEIR_ERR_MEMORY, NULL);
    lines_init(&handle->lines);
    int err = open_weir(env, args, handle, &reason);
    if (err == 0)
        tell_memory(env, handle, true);
    if (err == 0 && share_numbers(env, self, handle) &&
        napi_wrap(env, self, handle, close_handle, NULL, NULL) == napi_ok)
        return self;
    close_handle(env, handle, NULL);
    return values_fail(env, err < 0 ? err : WEIR_ERR_MEMORY, reason.text);
}

/* A method that a closed weir has, too. */
static struct handle *unwrap(napi_env env, napi_callback_info info)
{
    napi_value self;
    void *handle = NULL;
    if (napi_get_cb_info(env, info, NULL, NULL, &self, NULL) != napi_ok ||
        napi_unwrap(env, self, &handle) != napi_ok)
        return NULL;
    return handle;
}

/* [level, text, level, text, …] that are to be logged; levels are enum weir_say. */
static napi_value lines(napi_env env, napi_callback_info info)
{
    struct handle *handle = unwrap(env, info);
    napi_value list, value;
    uint32_t count = 0;
    struct line *line;
    if (!handle || napi_create_array(env, &list) != napi_ok)
        return NULL;
    while ((line = lines_take(&handle->lines))) {
        napi_status status = napi_set_element(env, list, count++, number(env, line->level));
        if (status == napi_ok)
            status = napi_create_string_utf8(env, line->text, NAPI_AUTO_LENGTH, &value);
        if (status == napi_ok)
            status = napi_set_element(env, list, count++, value);
        free(line);
        if (status != napi_ok)
            return NULL;
    }
    return list;
}

/* Why the state file cannot be opened; null: it is open. */
static napi_value state_error(napi_env env, napi_callback_info info)
{
    struct weir_reason why;
    napi_value result = NULL;
    struct handle *handle = enter(env, info, 0, NULL);
    if (!handle)
        return NULL;
    if (weir_state_check(handle->weir, &why) < 0)
        napi_create_string_utf8(env, why.text, NAPI_AUTO_LENGTH, &result);
    else
        napi_get_null(env, &result);
    return result;
}

static napi_value close_method(napi_env env, napi_callback_info info)
{
    struct handle *handle = enter(env, info, 0, NULL);
    if (handle)
        close_weir(env, handle);
    return NULL;
}

/* advance(ms) */
static napi_value advance(napi_env env, napi_callback_info info)
{
    napi_value args[1];
    uint64_t ms;
    struct handle *handle = enter(env, info, 1, args);
    if (!handle)
        return NULL;
    if (!values_number(env, args[0], &ms))
        return values_fail(env, WEIR_ERR_RANGE, NULL);
    int err = weir_advance(handle->weir, ns_of_ms(ms));
    return err < 0 ? values_fail(env, err,
                                 err == WEIR_ERR_UNSUPPORTED
                                     ? "only a weir of weir/testing has a clock to advance"
                                     : NULL)
                   : NULL;
}

static napi_value reload(napi_env env, napi_callback_info info)
{
    struct weir_reason reason;
    struct handle *handle = enter(env, info, 0, NULL);
    if (!handle)
        return NULL;
    int err = weir_reload(handle->weir, &reason);
    return err < 0 ? values_fail(env, err, reason.text) : NULL;
}

/* --- Attributes ------------------------------------------------------------------------------- */

static napi_value attribute(napi_env env, napi_callback_info info)
{
    char name[256];
    napi_value args[1];
    struct handle *handle = enter(env, info, 1, args);
    if (!handle)
        return NULL;
    int err = values_text(env, args[0], name, sizeof name) ? weir_attribute(handle->weir, name)
                                                           : WEIR_ERR_TOO_LARGE;
    return err < 0 ? values_fail(env, err, NULL) : number(env, err);
}

/* [name, …] by handle; null: the present rules do not read it. */
static napi_value attributes(napi_env env, napi_callback_info info)
{
    napi_value list, value;
    const char *name;
    struct handle *handle = enter(env, info, 0, NULL);
    if (!handle || napi_create_array(env, &list) != napi_ok)
        return NULL;
    for (int i = 0; (name = weir_attribute_name(handle->weir, i)); i++) {
        napi_status status = weir_attribute_is_read(handle->weir, i)
                                 ? napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &value)
                                 : napi_get_null(env, &value);
        if (status != napi_ok || napi_set_element(env, list, (uint32_t)i, value) != napi_ok)
            return NULL;
    }
    return list;
}

static napi_value refunds(napi_env env, napi_callback_info info)
{
    napi_value result = NULL;
    struct handle *handle = enter(env, info, 0, NULL);
    if (handle)
        napi_get_boolean(env, weir_gives_back(handle->weir), &result);
    return result;
}

/* passes(code): whether a request passes that this error left undecided, by what the rules say. The
 * handlers denied it when the rules could not say so. */
static napi_value passes(napi_env env, napi_callback_info info)
{
    napi_value args[1], result = NULL;
    char name[64];
    struct handle *handle = enter(env, info, 1, args);
    if (!handle)
        return NULL;
    bool known = values_text(env, args[0], name, sizeof name);
    napi_get_boolean(env, known && weir_passes(values_error(name), handle->on_store_error, false),
                     &result);
    return result;
}

/* [status, …] of outcomes that are strikes. */
static napi_value outcomes(napi_env env, napi_callback_info info)
{
    napi_value list;
    uint32_t count = 0;
    struct handle *handle = enter(env, info, 0, NULL);
    if (!handle || napi_create_array(env, &list) != napi_ok)
        return NULL;
    for (unsigned status = STATUS_MIN; status <= STATUS_MAX; status++)
        if (weir_is_strike(handle->weir, status) &&
            napi_set_element(env, list, count++, number(env, status)) != napi_ok)
            return NULL;
    return list;
}

/* --- Requests --------------------------------------------------------------------------------- */

static napi_value check(napi_env env, napi_callback_info info)
{
    napi_value values, text = NULL;
    struct handle *handle = enter(env, info, 1, &values);
    if (!handle)
        return NULL;
    int err = checker_check(&handle->checker, handle->weir, env, values, &text);
    return err < 0 ? values_fail(env, err, NULL) : text;
}

/* outcome(values, status): the numbers are those of a check. */
static napi_value outcome(napi_env env, napi_callback_info info)
{
    napi_value args[2];
    uint64_t status;
    struct handle *handle = enter(env, info, 2, args);
    if (!handle)
        return NULL;
    if (!values_number(env, args[1], &status) || status > STATUS_MAX)
        return values_fail(env, WEIR_ERR_RANGE, NULL);
    int err = checker_outcome(&handle->checker, handle->weir, env, args[0], (unsigned)status);
    return err < 0 ? values_fail(env, err, NULL) : NULL;
}

/* The places in queues of the last answer's reservation, for cancel. */
static napi_value places(napi_env env, napi_callback_info info)
{
    napi_value result = NULL;
    struct handle *handle = enter(env, info, 0, NULL);
    if (!handle)
        return NULL;
    const struct weir_reservation_token *token = &handle->checker.reservation;
    napi_create_buffer_copy(env, token->place_count * sizeof token->places[0], token->places, NULL,
                            &result);
    return result;
}

static bool token_of(napi_env env, const napi_value *args, struct weir_reservation_token *token)
{
    bool is_buffer = false;
    void *data = NULL;
    size_t size = 0;
    token->place_count = 0;
    if (!values_text(env, args[0], token->text, sizeof token->text) ||
        napi_is_buffer(env, args[1], &is_buffer) != napi_ok)
        return false;
    if (!is_buffer)
        return true;
    if (napi_get_buffer_info(env, args[1], &data, &size) != napi_ok || size > sizeof token->places)
        return false;
    memcpy(token->places, data, size);
    token->place_count = (unsigned)(size / sizeof token->places[0]);
    return true;
}

/* end(token, places, how, number) */
static napi_value end(napi_env env, napi_callback_info info)
{
    static const char not_a_token[] = "not a token of this state";
    struct weir_reservation_token token;
    napi_value args[4];
    uint64_t how, value;
    struct handle *handle = enter(env, info, 4, args);
    if (!handle)
        return NULL;
    if (!values_number(env, args[2], &how) || !values_number(env, args[3], &value))
        return values_fail(env, WEIR_ERR_RANGE, NULL);
    if (!token_of(env, args, &token))
        return values_fail(env, WEIR_ERR_SYNTAX, not_a_token);
    int err = how == SETTLE ? weir_settle(handle->weir, &token, value)
              : how == REPORT
                  ? weir_report(handle->weir, &token, value <= STATUS_MAX ? (unsigned)value : 0)
                  : weir_cancel(handle->weir, &token);
    return err < 0 ? values_fail(env, err, err == WEIR_ERR_SYNTAX ? not_a_token : NULL) : NULL;
}

/* lease(token, renew) */
static napi_value lease(napi_env env, napi_callback_info info)
{
    struct weir_lease_token token;
    napi_value args[2];
    bool renew = false;
    struct handle *handle = enter(env, info, 2, args);
    if (!handle)
        return NULL;
    if (!values_text(env, args[0], token.text, sizeof token.text) ||
        napi_get_value_bool(env, args[1], &renew) != napi_ok)
        return values_fail(env, WEIR_ERR_SYNTAX, "not a lease of this state");
    int err = renew ? weir_renew(handle->weir, &token) : weir_release(handle->weir, &token);
    return err < 0 ? values_fail(env, err, NULL) : NULL;
}

static napi_value tend(napi_env env, napi_callback_info info)
{
    struct handle *handle = enter(env, info, 0, NULL);
    if (!handle)
        return NULL;
    long ended = weir_tend(handle->weir);
    return ended < 0 ? values_fail(env, (int)ended, NULL) : number(env, (double)ended);
}

/* --- The module ------------------------------------------------------------------------------- */

#define METHOD(name, function)                                                                     \
    {                                                                                              \
        name, NULL, function, NULL, NULL, NULL, napi_default, NULL                                 \
    }

NAPI_MODULE_INIT()
{
    const napi_property_descriptor methods[] = {
        METHOD("advance", advance),       METHOD("attribute", attribute),
        METHOD("attributes", attributes), METHOD("check", check),
        METHOD("close", close_method),    METHOD("end", end),
        METHOD("lease", lease),           METHOD("lines", lines),
        METHOD("outcome", outcome),       METHOD("stateError", state_error),
        METHOD("outcomes", outcomes),     METHOD("passes", passes),
        METHOD("places", places),         METHOD("refunds", refunds),
        METHOD("reload", reload),         METHOD("tend", tend),
    };
    napi_value class, refused_from;
    if (napi_define_class(env, "Weir", NAPI_AUTO_LENGTH, construct, NULL,
                          sizeof methods / sizeof methods[0], methods, &class) != napi_ok ||
        napi_set_named_property(env, exports, "Weir", class) != napi_ok ||
        napi_create_string_utf8(env, WEIR_REFUSED_FROM, NAPI_AUTO_LENGTH, &refused_from) !=
            napi_ok ||
        (weir_still_takes(WEIR_REFUSED_FROM) &&
         napi_set_named_property(env, exports, "refusedFrom", refused_from) != napi_ok))
        return NULL;
    return exports;
}
