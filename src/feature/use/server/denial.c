/* SPDX-License-Identifier: Apache-2.0 */
/* see denial.h */
#include "feature/use/server/denial.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/answer.h"
#include "core/bytes.h"
#include "feature/standing/standing.h"
#include "feature/use/engine/pack.h"
#include "feature/use/server/shown_json.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

static const char *const source_names[] = {"store", "local", "open", "closed"};
#define SOURCES (sizeof source_names / sizeof *source_names)

uint8_t weir_denial_copy(char *field, size_t max, struct weir_bytes text)
{
    size_t size = text.size;
    if (size > max) {
        size = max;
        for (int back = 0; back < 3 && ((unsigned char)text.data[size] & 0xC0) == 0x80; back++)
            size--;
    }
    if (size > 0)
        memcpy(field, text.data, size);
    return (uint8_t)size;
}

/* --- To JSON ---------------------------------------------------------------------------------- */

/* Names may have any bytes; JSON is UTF-8. */
static json_t *text_json(const char *data, size_t size)
{
    json_t *text = json_stringn(data, size);
    char shown[256];
    if (text || size > sizeof shown)
        return text ? text : json_string("?");
    for (size_t i = 0; i < size; i++)
        shown[i] = (unsigned char)data[i] < 0x80 ? data[i] : '?';
    return json_stringn(shown, size);
}

static void set_text(json_t *json, const char *name, const char *data, size_t size)
{
    json_object_set_new(json, name, size > 0 ? text_json(data, size) : json_null());
}

static json_int_t integer(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : (json_int_t)number;
}

/* Rounded up, as Retry-After is. */
static json_t *milliseconds(uint64_t ns)
{
    return ns == WEIR_NEVER ? json_null() : json_integer(integer(ns / MS + (ns % MS > 0)));
}

static void set_time(json_t *json, uint64_t time_ns)
{
    char text[40];
    time_t seconds = (time_t)(time_ns / S);
    struct tm parts;
    if (!gmtime_r(&seconds, &parts))
        return;
    size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + used, sizeof text - used, ".%03uZ", (unsigned)(time_ns % S / MS));
    json_object_set_new(json, "time", json_string(text));
    json_object_set_new(json, "time_ns", json_integer(integer(time_ns)));
}

static void set_policy(json_t *json, const struct weir_denial *denial)
{
    char policy[64];
    if (denial->algorithm < 0) {
        json_object_set_new(json, "algorithm", json_null());
        json_object_set_new(json, "policy", json_null());
        return;
    }
    json_object_set_new(json, "algorithm",
                        json_string(weir_algorithm_name((enum weir_algorithm)denial->algorithm)));
    uint64_t window_s = denial->window_ns / S + (denial->window_ns % S > 0);
    snprintf(policy, sizeof policy, "%llu;w=%llu", (unsigned long long)denial->rate,
             (unsigned long long)window_s);
    json_object_set_new(json, "policy", json_string(policy));
}

enum weir_cause weir_denial_cause(const struct weir_denial *denial)
{
    const struct weir_bytes limit = {denial->limit, denial->limit_size};
    if (denial->source == WEIR_SOURCE_CLOSED)
        return WEIR_CAUSE_STORE;
    if (denial->algorithm < 0 && weir_bytes_are(limit, WEIR_ANSWER_BY_STANDING))
        return WEIR_CAUSE_STANDING;
    if (denial->algorithm < 0 && weir_bytes_are(limit, WEIR_ANSWER_BY_UNKNOWN))
        return WEIR_CAUSE_UNKNOWN;
    return denial->action == WEIR_ACTION_CHALLENGE ? WEIR_CAUSE_CHALLENGE : WEIR_CAUSE_LIMIT;
}

json_t *weir_denial_json(const struct weir_denial *denial)
{
    json_t *json = json_object();
    if (!json)
        return NULL;
    if (denial->sequence > 0)
        json_object_set_new(json, "id", json_integer(integer(denial->sequence)));
    set_time(json, denial->time_ns);
    json_object_set_new(json, "key",
                        denial->key.size > 0 ? weir_shown_text_json(weir_shown_packed(&denial->key))
                                             : json_null());
    json_object_set_new(json, "values", weir_shown_json(weir_shown_packed(&denial->key)));
    json_object_set_new(json, "caller", weir_shown_json(weir_shown_packed(&denial->caller)));
    set_text(json, "limit", denial->limit, denial->limit_size);
    set_text(json, "route", denial->route, denial->route_size);
    set_text(json, "plan", denial->plan, denial->plan_size);
    json_object_set_new(json, "cost", json_integer(integer(denial->cost)));
    json_object_set_new(json, "capacity", json_integer(integer(denial->capacity)));
    json_object_set_new(json, "remaining", json_integer(integer(denial->remaining)));
    json_object_set_new(json, "retry_after_ms", milliseconds(denial->retry_after_ns));
    json_object_set_new(json, "reset_after_ms", milliseconds(denial->reset_after_ns));
    set_policy(json, denial);
    json_object_set_new(
        json, "action",
        json_string(denial->action > WEIR_ACTION_NONE && denial->action < WEIR_ACTIONS
                        ? weir_action_name(denial->action)
                        : "reject"));
    json_object_set_new(json, "standing", json_string(weir_standing_level_name(denial->standing)));
    json_object_set_new(json, "source",
                        json_string(source_names[denial->source < SOURCES ? denial->source : 0]));
    json_object_set_new(json, "cause", json_string(weir_cause_names[weir_denial_cause(denial)]));
    set_text(json, "node", denial->node, denial->node_size);
    json_object_set_new(json, "more", json_integer(integer(denial->more)));
    return json;
}

/* --- From JSON -------------------------------------------------------------------------------- */

static uint64_t read_number(const json_t *json, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(json, name));
    return value > 0 ? (uint64_t)value : 0;
}

static uint64_t read_ms(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    uint64_t ms = read_number(json, name), ns;
    if (json_is_null(value) || __builtin_mul_overflow(ms, MS, &ns))
        return WEIR_NEVER;
    return ns;
}

static uint8_t read_text(const json_t *json, const char *name, char *field, size_t max)
{
    const json_t *value = json_object_get(json, name);
    if (!json_is_string(value))
        return 0;
    return weir_denial_copy(
        field, max, (struct weir_bytes){json_string_value(value), json_string_length(value)});
}

static int read_name(const json_t *json, const char *name, int count, const char *(*names)(int))
{
    const char *text = json_string_value(json_object_get(json, name));
    for (int i = 0; text && i < count; i++)
        if (names(i) && !strcmp(names(i), text))
            return i;
    return -1;
}

/* leaky_bucket is the name of two algorithms: the first is as good. */
static const char *algorithm_name(int i)
{
    return weir_algorithm_name((enum weir_algorithm)i);
}

static const char *action_name(int i)
{
    return weir_action_name((uint8_t)i);
}

static const char *source_name(int i)
{
    return source_names[i];
}

static const char *level_name(int i)
{
    return weir_standing_level_name((uint8_t)i);
}

bool weir_denial_policy_read(const char *text, uint64_t *rate, uint64_t *window_s)
{
    char *end;
    errno = 0;
    *rate = strtoull(text, &end, 10);
    if (end == text || strncmp(end, ";w=", 3) != 0)
        return false;
    text = end + 3;
    *window_s = strtoull(text, &end, 10);
    return end != text && *end == '\0' && errno == 0;
}

static void read_policy(const json_t *json, struct weir_denial *denial)
{
    const char *policy = json_string_value(json_object_get(json, "policy"));
    uint64_t rate, window_s;
    if (!policy || !weir_denial_policy_read(policy, &rate, &window_s))
        return;
    denial->rate = rate;
    denial->window_ns = window_s < UINT64_MAX / S ? window_s * S : 0;
}

/* Lines of older versions have the text of the key alone. */
static void read_key(const json_t *json, struct weir_denial *denial)
{
    const json_t *values = json_object_get(json, "values"), *key = json_object_get(json, "key");
    if (json_is_array(values))
        weir_shown_read(&denial->key, values);
    else if (json_is_string(key))
        weir_pack_text(&denial->key,
                       (struct weir_bytes){json_string_value(key), json_string_length(key)});
}

bool weir_denial_read(struct weir_denial *denial, const char *line, size_t size)
{
    json_t *json = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
    *denial = (struct weir_denial){.time_ns = read_number(json, "time_ns")};
    if (!json_is_object(json) || denial->time_ns == 0 || !json_object_get(json, "limit")) {
        json_decref(json);
        return false;
    }
    denial->cost = read_number(json, "cost");
    denial->capacity = read_number(json, "capacity");
    denial->remaining = read_number(json, "remaining");
    denial->more = read_number(json, "more");
    denial->retry_after_ns = read_ms(json, "retry_after_ms");
    denial->reset_after_ns = read_ms(json, "reset_after_ms");
    denial->algorithm = (int8_t)read_name(json, "algorithm", WEIR_QUOTA + 1, algorithm_name);
    int action = read_name(json, "action", WEIR_ACTIONS, action_name);
    int source = read_name(json, "source", SOURCES, source_name);
    int standing = read_name(json, "standing", WEIR_STANDING_LEVELS, level_name);
    denial->action = action > 0 ? (uint8_t)action : WEIR_ACTION_REJECT;
    denial->source = source > 0 ? (uint8_t)source : 0;
    denial->standing = standing > 0 ? (uint8_t)standing : 0;
    read_policy(json, denial);
    denial->limit_size = read_text(json, "limit", denial->limit, sizeof denial->limit);
    read_key(json, denial);
    weir_shown_read(&denial->caller, json_object_get(json, "caller"));
    denial->route_size = read_text(json, "route", denial->route, sizeof denial->route);
    denial->plan_size = read_text(json, "plan", denial->plan, sizeof denial->plan);
    denial->node_size = read_text(json, "node", denial->node, sizeof denial->node);
    json_decref(json);
    return true;
}

/* --- Filters ---------------------------------------------------------------------------------- */

static bool is_of(const struct weir_denial *denial, const struct weir_asked *asked)
{
    return !asked->text.data || weir_asked_has(asked, weir_shown_packed(&denial->key)) ||
           weir_asked_has(asked, weir_shown_packed(&denial->caller));
}

static bool text_is(struct weir_bytes wanted, const char *text, uint8_t size)
{
    return !wanted.data || weir_bytes_equal(wanted, (struct weir_bytes){text, size});
}

bool weir_denial_matches(const struct weir_denial *denial, const struct weir_denial_filter *filter)
{
    if (!text_is(filter->limit, denial->limit, denial->limit_size) ||
        !text_is(filter->route, denial->route, denial->route_size))
        return false;
    if (filter->causes != 0 && (filter->causes >> weir_denial_cause(denial) & 1) == 0)
        return false;
    if (denial->time_ns < filter->since_ns ||
        (filter->until_ns > 0 && denial->time_ns > filter->until_ns))
        return false;
    for (unsigned i = 0; i < WEIR_DENIAL_CALLERS; i++)
        if (!is_of(denial, &filter->callers[i]))
            return false;
    return is_of(denial, &filter->key);
}
