/* SPDX-License-Identifier: Apache-2.0 */
/* see script.h */
#include "server/resp/script/script.h"

#include <math.h>
#include <openssl/sha.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"
#include "server/resp/decide.h"
#include "server/resp/reply.h"
#include "server/resp/script/counting.h"
#include "server/resp/script/deciding.h"
#include "server/resp/script/rates.h"
#include "wire/resp/line.h"

#define PAGE "docs/limiter-libraries.md"

/* How many keys and arguments each script has at least. */
static const struct {
    uint8_t keys, args;
} needs[WEIR_SCRIPTS] = {
    [WEIR_SCRIPT_INCREMENT_NEW] = {1, 2},
    [WEIR_SCRIPT_INCREMENT_KEPT] = {1, 2},
    [WEIR_SCRIPT_COUNT_THEN_LIFE] = {1, 2},
    [WEIR_SCRIPT_WINDOW_OR_RESET] = {1, 2},
    [WEIR_SCRIPT_WINDOW] = {1, 1},
    [WEIR_SCRIPT_COUNT_AND_LIFE] = {1, 0},
    [WEIR_SCRIPT_INCREMENT] = {1, 1},
    [WEIR_SCRIPT_SLIDING_TAKE] = {2, 3},
    [WEIR_SCRIPT_SLIDING_COUNTS] = {2, 1},
    [WEIR_SCRIPT_FIXED] = {1, 3},
    [WEIR_SCRIPT_TWO_WINDOWS_ALL] = {2, 3},
    [WEIR_SCRIPT_TWO_WINDOWS] = {2, 3},
    [WEIR_SCRIPT_SWAP] = {1, 3},
    [WEIR_SCRIPT_INCREMENT_MS] = {1, 2},
    [WEIR_SCRIPT_COUNT_OR_ZERO] = {1, 0},
    [WEIR_SCRIPT_LARAVEL_ADD] = {1, 2},
    [WEIR_SCRIPT_LARAVEL_DURATION] = {1, 4},
    [WEIR_SCRIPT_LARAVEL_TOO_MANY] = {1, 4},
    [WEIR_SCRIPT_MOVING_TAKE] = {1, 3},
    [WEIR_SCRIPT_MOVING_COUNT] = {1, 2},
    [WEIR_SCRIPT_RATE] = {1, 4},
    [WEIR_SCRIPT_RATE_AT_MOST] = {1, 4},
    [WEIR_SCRIPT_BUCKET] = {1, 3},
    [WEIR_SCRIPT_GCRA] = {1, 3},
    [WEIR_SCRIPT_GCRA_PEEK] = {1, 2},
    [WEIR_SCRIPT_SPRING] = {1, 4},
    [WEIR_SCRIPT_FASTIFY_BAN] = {1, 4},
    [WEIR_SCRIPT_FASTIFY_LIFE] = {1, 3},
    [WEIR_SCRIPT_FASTIFY] = {1, 4},
    [WEIR_SCRIPT_FASTIFY_READ] = {1, 0},
    [WEIR_SCRIPT_NEST] = {2, 4},
    [WEIR_SCRIPT_FASTAPI] = {1, 2},
    [WEIR_SCRIPT_KOA] = {1, 3},
    [WEIR_SCRIPT_PYRATE_INTERVALS] = {1, 6},
    [WEIR_SCRIPT_PYRATE_WINDOWS] = {1, 7},
    [WEIR_SCRIPT_PYRATE_GCRA] = {1, 6},
};

/* --- Which one it is ----------------------------------------------------------------------------
 */

static int compare(const void *sha, const void *known)
{
    return memcmp(sha, ((const struct weir_known_script *)known)->sha, WEIR_SCRIPT_SHA);
}

static const struct weir_known_script *find(const char sha[WEIR_SCRIPT_SHA])
{
    return bsearch(sha, weir_known_scripts, weir_known_script_count, sizeof *weir_known_scripts,
                   compare);
}

/* The hash in an argument, in lower case. */
static const struct weir_known_script *find_sha(struct weir_bytes arg)
{
    char sha[WEIR_SCRIPT_SHA];
    if (arg.size != sizeof sha)
        return NULL;
    for (size_t i = 0; i < sizeof sha; i++)
        sha[i] =
            (char)(arg.data[i] >= 'A' && arg.data[i] <= 'F' ? arg.data[i] | 0x20 : arg.data[i]);
    return find(sha);
}

static void hash(struct weir_bytes text, char sha[WEIR_SCRIPT_SHA + 1])
{
    unsigned char digest[SHA_DIGEST_LENGTH];
    SHA1((const unsigned char *)(text.data ? text.data : ""), text.size, digest);
    *weir_hex_write(sha, digest, sizeof digest) = '\0';
}

static const struct weir_known_script *find_text(struct weir_bytes text)
{
    char sha[WEIR_SCRIPT_SHA + 1];
    hash(text, sha);
    return find(sha);
}

/* --- Unknown ones --------------------------------------------------------------------------------
 */

/* Whether this hash is to be logged: it is new, and there is room to remember it. */
static bool is_news(struct weir_resp_shared *shared, const char *sha)
{
    uint64_t name;
    memcpy(&name, sha, sizeof name); /* eight digits, so never 0 */
    for (unsigned i = 0; i < WEIR_RESP_SCRIPTS_LOGGED; i++) {
        uint64_t free = 0;
        if (atomic_compare_exchange_strong(&shared->logged_scripts[i], &free, name))
            return true;
        if (free == name)
            return false;
    }
    return false;
}

static bool has(struct weir_bytes text, const char *part)
{
    return text.size && memmem(text.data, text.size, part, strlen(part));
}

/* What there is to say of a library that weir will not serve; NULL: nothing. */
static const char *why_not(struct weir_bytes text)
{
    if (has(text, "job_expirations_key") || has(text, "client_last_seen_key"))
        return "bottleneck's clustering is a queue of jobs whose clients hear of each other by "
               "publish and subscribe, which weir does not serve; run it without `datastore`, or "
               "ask weir for each job";
    return NULL;
}

static void refuse_unknown(struct weir_resp_call *call, struct weir_bytes text)
{
    struct weir_resp_workspace *redis = call->redis;
    char sha[WEIR_SCRIPT_SHA + 1];
    const char *why = why_not(text);
    hash(text, sha);
    weir_count(&redis->unknown_scripts, 1);
    if (is_news(redis->shared, sha))
        weir_log_event(redis->worker->log, WEIR_LOG_WARNING, "unknown_script", "sha", sha);
    if (why)
        weir_resp_error(call, "ERR %s", why);
    else
        weir_resp_error(call,
                        "ERR weir runs no Lua, and does not know this script (%s). It knows "
                        "those of %s: see " PAGE,
                        sha, weir_known_libraries);
}

/* --- Calls ---------------------------------------------------------------------------------------
 */

static void run(struct weir_resp_call *call, const struct weir_known_script *known)
{
    int64_t keys;
    if (!weir_resp_number(call->args[2], &keys)) {
        weir_resp_error(call, "ERR value is not an integer or out of range");
        return;
    }
    if (keys > (int64_t)call->count - 3) {
        weir_resp_error(call, "ERR Number of keys can't be greater than number of args");
        return;
    }
    if (keys < 0) {
        weir_resp_error(call, "ERR Number of keys can't be negative");
        return;
    }
    const struct weir_script_call script = {.call = call,
                                            .script = known->script,
                                            .keys = call->args + 3,
                                            .args = call->args + 3 + keys,
                                            .key_count = (uint32_t)keys,
                                            .arg_count = call->count - 3 - (uint32_t)keys};
    if (script.key_count < needs[known->script].keys ||
        script.arg_count < needs[known->script].args)
        weir_resp_error(call, "ERR this script takes %d keys and %d arguments",
                        needs[known->script].keys, needs[known->script].args);
    else if (known->script < WEIR_SCRIPT_MOVING_TAKE)
        weir_script_count(&script);
    else if (known->script < WEIR_SCRIPT_PYRATE_INTERVALS)
        weir_script_decide(&script);
    else
        weir_script_rates(&script);
}

void weir_resp_eval(struct weir_resp_call *call)
{
    const struct weir_known_script *known = find_text(call->args[1]);
    if (known)
        run(call, known);
    else
        refuse_unknown(call, call->args[1]);
}

void weir_resp_evalsha(struct weir_resp_call *call)
{
    const struct weir_known_script *known = find_sha(call->args[1]);
    if (known)
        run(call, known);
    else
        weir_resp_error(call, "NOSCRIPT No matching script. Please use EVAL.");
}

static void script_exists(struct weir_resp_call *call)
{
    char *out = weir_resp_begin(call, WEIR_RESP_HEAD_MAX + call->count * WEIR_RESP_INTEGER_MAX);
    if (!out)
        return;
    out = weir_resp_write_array(out, call->count - 2);
    for (uint32_t i = 2; i < call->count; i++)
        out = weir_resp_write_integer(out, find_sha(call->args[i]) != NULL);
    weir_resp_end(call, out);
}

void weir_resp_script(struct weir_resp_call *call)
{
    struct weir_bytes name = call->args[1];
    if (weir_resp_is(name, "LOAD") && call->count == 3) {
        const struct weir_known_script *known = find_text(call->args[2]);
        if (known)
            weir_resp_bulk(call, (struct weir_bytes){known->sha, WEIR_SCRIPT_SHA});
        else
            refuse_unknown(call, call->args[2]);
    } else if (weir_resp_is(name, "EXISTS") && call->count > 2) {
        script_exists(call);
    } else if (weir_resp_is(name, "FLUSH")) {
        weir_resp_text(call, "OK"); /* nothing is kept */
    } else {
        weir_resp_error(call,
                        "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try "
                        "LOAD, EXISTS, FLUSH.",
                        WEIR_RESP_SHOWN(name));
    }
}

/* --- Arguments -----------------------------------------------------------------------------------
 */

static bool wrong(const struct weir_script_call *script, uint32_t i)
{
    weir_resp_error(script->call, "ERR ARGV[%u] of this script is out of range: '%.*s'", i + 1,
                    WEIR_RESP_SHOWN(script->args[i]));
    return false;
}

bool weir_script_integer(const struct weir_script_call *script, uint32_t i, int64_t min,
                         int64_t max, int64_t *value)
{
    struct weir_bytes arg = script->args[i];
    return (arg.data && resp_integer_read(arg.data, arg.size, value) && *value >= min &&
            *value <= max) ||
           wrong(script, i);
}

static bool read_double(struct weir_bytes arg, double *value)
{
    char text[64], *end;
    if (arg.size == 0 || arg.size >= sizeof text || !strchr(".0123456789", arg.data[0]))
        return false;
    memcpy(text, arg.data, arg.size);
    text[arg.size] = '\0';
    *value = strtod(text, &end);
    return end == text + arg.size && strcspn(text, "xX") == arg.size;
}

/* Two doubles that were computed from the same fraction differ by less. */
#define SAME 4e-16
#define TERM_MAX ((double)(UINT64_C(1) << 40))

/* By continued fractions (Knuth, The Art of Computer Programming, 4.5.3). */
bool weir_script_fraction(const struct weir_script_call *script, uint32_t i, uint64_t *numerator,
                          uint64_t *denominator)
{
    double value, rest, p[2] = {1, 0}, q[2] = {0, 1};
    if (!read_double(script->args[i], &value) || !(value >= 1 / TERM_MAX && value <= 1e12))
        return wrong(script, i);
    rest = value;
    for (int step = 0; step < 64; step++) {
        double whole = floor(rest), next_p = whole * p[0] + p[1], next_q = whole * q[0] + q[1];
        if (next_p > TERM_MAX || next_q > TERM_MAX)
            break;
        p[1] = p[0], q[1] = q[0], p[0] = next_p, q[0] = next_q;
        if (fabs(p[0] / q[0] - value) <= value * SAME || rest <= whole)
            break;
        rest = 1 / (rest - whole);
    }
    *numerator = (uint64_t)p[0];
    *denominator = (uint64_t)q[0];
    return (*numerator > 0 && *denominator > 0) || wrong(script, i);
}

/* --- Replies -------------------------------------------------------------------------------------
 */

static char *write_digits(char *out, int64_t number)
{
    if (number < 0)
        *out++ = '-';
    return weir_decimal_write(out, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

/* Seconds with nine digits behind the point, where they are not all zero. */
static char *write_seconds(char *out, int64_t ns)
{
    const int64_t second_ns = 1000000000;
    out = write_digits(out, ns / second_ns);
    int64_t rest = ns % second_ns;
    if (rest <= 0)
        return out;
    *out++ = '.';
    for (int64_t unit = second_ns / 10; unit > 0; unit /= 10)
        *out++ = (char)('0' + rest / unit % 10);
    return out;
}

static char *write_item(char *out, int version, const struct weir_script_item *item)
{
    char text[48], *end;
    switch ((enum weir_script_type)item->type) {
    case WEIR_SCRIPT_INTEGER:
        return weir_resp_write_integer(out, item->number);
    case WEIR_SCRIPT_STRING:
    case WEIR_SCRIPT_SECONDS:
        end = item->type == WEIR_SCRIPT_STRING ? write_digits(text, item->number)
                                               : write_seconds(text, item->number);
        return weir_resp_write_bulk(out, text, (size_t)(end - text));
    case WEIR_SCRIPT_NULL:
        return weir_resp_write_null(out, version);
    case WEIR_SCRIPT_OK:
        return WEIR_LITERAL_WRITE(out, "+OK\r\n");
    }
    return out;
}

void weir_script_write(struct weir_slot *slot, struct weir_output *output,
                       const struct weir_script_reply *reply)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    char *out = output->data + output->used;
    if (reply->error) {
        weir_count(&redis->errors, 1);
        out = weir_resp_write_error(out, reply->error, strlen(reply->error));
    } else {
        if (!reply->single)
            out = weir_resp_write_array(out, reply->count);
        for (uint8_t i = 0; i < reply->count; i++)
            out = write_item(out, slot->flags, &reply->items[i]);
    }
    output->used = (size_t)(out - output->data);
}
