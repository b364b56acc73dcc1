/* SPDX-License-Identifier: Apache-2.0 */
/* see check.h */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)
#define NEVER_MS 1e12 /* 30 years: no 64 bits of nanoseconds are passed */

/* --- The request ------------------------------------------------------------------------------ */

static int make_room(struct checker *checker, size_t size)
{
    size_t room = checker->room ? checker->room : 16384;
    if (size > CHECK_BYTES_MAX)
        return WEIR_ERR_TOO_LARGE;
    while (room < size)
        room *= 2;
    if (room == checker->room)
        return 0;
    char *bytes = realloc(checker->bytes, room);
    if (!bytes)
        return WEIR_ERR_MEMORY;
    checker->bytes = bytes;
    checker->room = room;
    return 0;
}

static napi_status copy_text(napi_env env, napi_value value, bool latin1, char *to, size_t room,
                             size_t *size)
{
    return latin1 ? napi_get_value_string_latin1(env, value, to, room, size)
                  : napi_get_value_string_utf8(env, value, to, room, size);
}

/* Appends the text of a string at `at`. Node-API cuts what has no room, at a whole character: up to
 * 4 bytes may be missing, and the NUL. */
static int append(struct checker *checker, napi_env env, napi_value value, bool latin1, size_t at,
                  size_t *size)
{
    int err = make_room(checker, at + 256);
    if (err < 0)
        return err;
    if (copy_text(env, value, latin1, checker->bytes + at, checker->room - at, size) != napi_ok)
        return WEIR_ERR_SYNTAX;
    if (*size + 5 < checker->room - at)
        return 0;
    if (copy_text(env, value, latin1, NULL, 0, size) != napi_ok)
        return WEIR_ERR_SYNTAX;
    err = make_room(checker, at + *size + 1);
    if (err < 0)
        return err;
    return copy_text(env, value, latin1, checker->bytes + at, checker->room - at, size) == napi_ok
               ? 0
               : WEIR_ERR_SYNTAX;
}

/* Copies every value into `bytes`; an absent one keeps a start of SIZE_MAX. */
static int gather(struct checker *checker, napi_env env, napi_value values, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        int role = (int)checker->numbers[CHECK_ARRAY_AT + i];
        bool text = role >= CHECK_TEXT_OF_REQUEST;
        bool latin1 = (role >= CHECK_BYTES_OF_REQUEST && !text) || role == VALUE_FORWARDED_FOR ||
                      role == VALUE_FORWARDED;
        size_t size = 0;
        napi_valuetype type;
        napi_value value;
        if (napi_get_element(env, values, (uint32_t)i, &value) != napi_ok ||
            napi_typeof(env, value, &type) != napi_ok)
            return WEIR_ERR_SYNTAX;
        checker->starts[i] = SIZE_MAX;
        if (type == napi_string) {
            int err = append(checker, env, value, latin1, at, &size);
            if (err < 0)
                return err;
            checker->starts[i] = at;
            at += size;
        }
        checker->values[i] = (struct weir_value){text ? role - WEIR_OF_REQUEST : role, NULL, size};
    }
    return 0;
}

/* What is no attribute goes where it belongs. */
static void place(struct checker *checker, struct weir_call *call, size_t count)
{
    call->values = checker->values;
    call->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct weir_value value = checker->values[i];
        if (checker->starts[i] != SIZE_MAX)
            value.data = checker->bytes + checker->starts[i];
        switch (value.attribute) {
        case VALUE_FORWARDED_FOR:
            call->forwarded_for = value.data;
            call->forwarded_for_size = value.size;
            break;
        case VALUE_FORWARDED:
            call->forwarded = value.data;
            call->forwarded_size = value.size;
            break;
        case VALUE_IDEMPOTENCY_KEY:
            call->idempotency_key = value.data;
            call->idempotency_size = value.size;
            break;
        default:
            checker->values[call->count++] = value;
        }
    }
}

/* --- The answer ------------------------------------------------------------------------------- */

static double amount_of(uint64_t number)
{
    return number == WEIR_NEVER ? INFINITY : (double)number;
}

static double ms_of(uint64_t ns)
{
    uint64_t ms = ns / NS_PER_MS + (ns % NS_PER_MS != 0);
    return ns == WEIR_NEVER ? INFINITY : (double)ms;
}

static void write_limit(const struct weir_limit_answer *limit, double *out)
{
    out[0] = (limit->allowed ? LIMIT_ALLOWED : 0) | (limit->shadow ? LIMIT_SHADOW : 0) |
             (limit->unlimited ? LIMIT_UNLIMITED : 0) | (limit->borrowed ? LIMIT_BORROWED : 0) |
             (limit->overflow ? LIMIT_OVERFLOW : 0);
    out[1] = limit->algorithm;
    out[2] = limit->warning;
    out[3] = (double)limit->cost;
    out[4] = ms_of(limit->window_ns);
    out[5] = amount_of(limit->report.limit);
    out[6] = amount_of(limit->report.remaining);
    out[7] = ms_of(limit->report.retry_after_ns);
    out[8] = ms_of(limit->report.reset_after_ns);
}

static void write_numbers(const struct checker *checker, double *out)
{
    const struct weir_answer_summary *answer = &checker->answer;
    out[0] = (answer->allowed ? ANSWER_ALLOWED : 0) |
             (answer->store_failed ? ANSWER_STORE_FAILED : 0) |
             (answer->repeated ? ANSWER_REPEATED : 0) |
             (answer->lease.text[0] != '\0' ? ANSWER_LEASE : 0) |
             (checker->reservation.text[0] != '\0' ? ANSWER_RESERVATION : 0);
    out[1] = answer->status;
    out[2] = ms_of(answer->retry_after_ns);
    out[3] = ms_of(answer->delay_ns);
    out[4] = amount_of(answer->remaining);
    out[5] = answer->warning;
    out[6] = answer->limit_count;
    out[7] = checker->reservation.place_count;
    for (unsigned i = 0; i < answer->limit_count; i++)
        write_limit(&checker->limits[i], out + CHECK_ARRAY_AT + i * CHECK_LIMIT_NUMBERS);
}

static char *add(char *to, const char *text)
{
    size_t size = strlen(text);
    *to++ = '\0';
    memcpy(to, text, size);
    return to + size;
}

/* Texts after the fields, which are there already. Returns the size of all. */
static size_t write_text(struct checker *checker)
{
    const struct weir_answer_summary *answer = &checker->answer;
    char *to = checker->text + answer->fields_size;
    to = add(to, answer->denied_by);
    to = add(to, answer->type);
    to = add(to, answer->action ? answer->action : "");
    to = add(to, answer->standing);
    to = add(to, answer->reason);
    to = add(to, answer->class_name);
    to = add(to, answer->lease.text);
    to = add(to, checker->reservation.text);
    for (unsigned i = 0; i < answer->limit_count; i++)
        to = add(to, checker->limits[i].name);
    *to++ = '\0';
    memcpy(to, checker->body, answer->body_size);
    to += answer->body_size;
    return (size_t)(to - checker->text);
}

_Static_assert(sizeof(struct weir_answer_summary) +
                       sizeof(((struct weir_reservation_token *)0)->text) +
                       65 * (WEIR_LIMITS_MAX + 1) + 64 <=
                   8192,
               "all texts have room beside the fields and the body");

/* --- Checking --------------------------------------------------------------------------------- */

/* Reads a request; its values are the checker's until the next one is read. */
static int read_request(struct checker *checker, napi_env env, napi_value values,
                        struct weir_call *call)
{
    const double *in = checker->numbers;
    size_t count = (size_t)in[0];
    unsigned flags = (unsigned)in[2];
    if (count > CHECK_VALUES_MAX)
        return WEIR_ERR_TOO_LARGE;
    *call = (struct weir_call){
        .cost = (uint64_t)in[1],
        .peek = (flags & CHECK_PEEK) != 0,
        .untrusted = (flags & CHECK_UNTRUSTED) != 0,
        .reserve = (flags & CHECK_RESERVE) != 0           ? WEIR_RESERVE_ALWAYS
                   : (flags & CHECK_RESERVE_DELAYED) != 0 ? WEIR_RESERVE_DELAYED
                                                          : WEIR_RESERVE_NEVER,
        .reserve_life_ns = in[3] < NEVER_MS ? (uint64_t)in[3] * NS_PER_MS : WEIR_NEVER,
        .fields = checker->text,
        .body = checker->body,
        .limits = checker->limits,
        .reservation = &checker->reservation,
    };
    int err = gather(checker, env, values, count);
    if (err == 0)
        place(checker, call, count);
    return err;
}

int checker_check(struct checker *checker, struct weir *weir, napi_env env, napi_value values,
                  napi_value *text)
{
    struct weir_call call;
    int err = read_request(checker, env, values, &call);
    if (err < 0)
        return err;
    err = weir_check_full(weir, &call, &checker->answer);
    if (err < 0)
        return err;
    write_numbers(checker, checker->numbers);
    return napi_create_string_utf8(env, checker->text, write_text(checker), text) == napi_ok
               ? 0
               : WEIR_ERR_MEMORY;
}

int checker_outcome(struct checker *checker, struct weir *weir, napi_env env, napi_value values,
                    unsigned status)
{
    struct weir_call call;
    int err = read_request(checker, env, values, &call);
    return err < 0 ? err : weir_outcome(weir, &call, status);
}
