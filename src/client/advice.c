/* SPDX-License-Identifier: Apache-2.0 */
/* see advice.h */
#include "client/advice.h"

#include <stdio.h>
#include <string.h>

#include "client/instant.h"
#include "client/members.h"
#include "core/bytes.h"

#define S_NS UINT64_C(1000000000)
#define MS_NS UINT64_C(1000000)
#define FLAT_MAX 64 /* bytes of a field's name without its dashes */

void weir_advice_begin(struct weir_advice *advice)
{
    *advice = (struct weir_advice){0};
}

/* The policy of a name, made if it is new; NULL: there are too many. */
static struct weir_advice_policy *policy(struct weir_advice *advice, struct weir_bytes name)
{
    size_t size = name.size < WEIR_ADVICE_NAME_MAX - 1 ? name.size : WEIR_ADVICE_NAME_MAX - 1;
    struct weir_advice_policy *stated;

    for (uint32_t i = 0; i < advice->count; i++) {
        stated = &advice->policies[i];
        if (strlen(stated->name) == size && !memcmp(stated->name, name.data, size))
            return stated;
    }
    if (advice->count == WEIR_ADVICE_MAX || memchr(name.data, '\0', size))
        return NULL;
    stated = &advice->policies[advice->count++];
    *stated = (struct weir_advice_policy){.limit = WEIR_ADVICE_UNKNOWN,
                                          .remaining = WEIR_ADVICE_UNKNOWN,
                                          .window_ns = WEIR_ADVICE_UNKNOWN,
                                          .reset_ns = WEIR_ADVICE_UNKNOWN};
    memcpy(stated->name, name.data, size);
    return stated;
}

static struct weir_advice_policy *policy_named(struct weir_advice *advice, const char *name)
{
    return policy(advice, weir_bytes_of(name));
}

/* Units; a negative number is none left. False: not a number, or no limit at all. */
static bool read_units(struct weir_bytes text, uint64_t *units)
{
    uint64_t whole;
    uint32_t part;
    bool negative = text.size > 1 && text.data[0] == '-';

    if (!text.data)
        return false;
    text.data += negative;
    text.size -= negative;
    if (!weir_instant_number(text, &whole, &part) || whole > WEIR_ADVICE_UNITS_MAX)
        return false;
    *units = negative ? 0 : whole;
    return true;
}

static void read_window(struct weir_bytes text, uint64_t *window_ns)
{
    uint64_t whole;
    uint32_t part;

    if (text.data && weir_instant_number(text, &whole, &part) &&
        whole < WEIR_INSTANT_HORIZON_NS / S_NS && whole * S_NS + part > 0)
        *window_ns = whole * S_NS + part;
}

static void read_reset(struct weir_advice *advice, const struct weir_advice_policy *stated,
                       struct weir_bytes text)
{
    struct weir_advice_reset *reset = &advice->resets[stated - advice->policies];
    int64_t date;

    *reset = (struct weir_advice_reset){.kind = WEIR_RESET_NONE};
    if (!text.data)
        return;
    if (weir_instant_number(text, &reset->value, &reset->billionths)) {
        reset->kind = WEIR_RESET_NUMBER;
    } else if (weir_instant_duration(text, &reset->value)) {
        reset->kind = WEIR_RESET_DURATION;
    } else if (weir_instant_rfc3339(text, &date) || weir_instant_http_date(text, 0, &date)) {
        reset->kind = WEIR_RESET_DATE;
        reset->value = (uint64_t)date;
    }
}

/* A number with a window and without a name, "100;w=60": named by its window. */
static struct weir_advice_policy *windowed(struct weir_advice *advice,
                                           const struct weir_member *member)
{
    struct weir_bytes window = weir_member_get(member, "w");
    struct weir_bytes name = weir_member_get(member, "name");
    char text[WEIR_ADVICE_NAME_MAX];
    uint64_t limit, window_ns = WEIR_ADVICE_UNKNOWN;

    if (!window.data)
        window = weir_member_get(member, "window");
    read_window(window, &window_ns);
    if (!read_units(member->value, &limit) || window_ns == WEIR_ADVICE_UNKNOWN)
        return NULL;
    if (!name.data || name.size == 0) {
        name.size =
            (size_t)snprintf(text, sizeof text, "w=%.*s", (int)(window.size % 20), window.data);
        name.data = text;
    }
    struct weir_advice_policy *stated = policy(advice, name);
    if (stated) {
        stated->limit = limit;
        stated->window_ns = window_ns;
    }
    return stated;
}

/* RateLimit-Limit and X-RateLimit-Limit: a number, and policies behind it. */
static void take_limit(struct weir_advice *advice, const char *name, struct weir_bytes value)
{
    struct weir_member member;

    while (weir_member_next(&value, &member)) {
        if (windowed(advice, &member))
            continue;
        struct weir_advice_policy *stated = policy_named(advice, name);
        uint64_t limit;
        if (stated && stated->limit == WEIR_ADVICE_UNKNOWN && read_units(member.value, &limit))
            stated->limit = limit;
    }
}

static void take_policy(struct weir_advice *advice, struct weir_bytes value)
{
    static const char concurrent[] = "concurrent-requests";
    struct weir_member member;

    while (weir_member_next(&value, &member)) {
        struct weir_bytes quota = weir_member_get(&member, "q");
        struct weir_bytes unit = weir_member_get(&member, "qu");
        if (!quota.data) {
            (void)windowed(advice, &member);
            continue;
        }
        struct weir_advice_policy *stated = policy(advice, member.value);
        if (!stated || !read_units(quota, &stated->limit))
            continue;
        read_window(weir_member_get(&member, "w"), &stated->window_ns);
        stated->concurrency = unit.size == sizeof concurrent - 1 &&
                              !memcmp(unit.data, concurrent, sizeof concurrent - 1);
        stated->ignored = unit.size > 0 && !stated->concurrency &&
                          !(unit.size == 8 && !memcmp(unit.data, "requests", 8));
    }
}

static void take_ratelimit(struct weir_advice *advice, struct weir_bytes value)
{
    struct weir_member member;

    while (weir_member_next(&value, &member)) {
        bool dictionary = member.key.data != NULL;
        struct weir_advice_policy *stated =
            dictionary ? policy_named(advice, "") : policy(advice, member.value);
        if (!stated)
            continue;
        if (!dictionary) {
            (void)read_units(weir_member_get(&member, "r"), &stated->remaining);
            read_reset(advice, stated, weir_member_get(&member, "t"));
        } else if (member.key.size == 5 && !memcmp(member.key.data, "limit", 5)) {
            (void)read_units(member.value, &stated->limit);
        } else if (member.key.size == 9 && !memcmp(member.key.data, "remaining", 9)) {
            (void)read_units(member.value, &stated->remaining);
        } else if (member.key.size == 5 && !memcmp(member.key.data, "reset", 5)) {
            read_reset(advice, stated, member.value);
        }
    }
}

/* What follows "limit", "remaining" and so on: a policy's name, and perhaps its window. */
static struct weir_advice_policy *by_suffix(struct weir_advice *advice, const char *suffix)
{
    static const struct {
        const char *name;
        uint64_t window_s;
        bool tokens;
    } suffixes[] = {{"", 0, false},           {"requests", 0, false},
                    {"second", 1, false},     {"minute", 60, false},
                    {"hour", 3600, false},    {"day", 86400, false},
                    {"tokens", 0, true},      {"month", 30 * 86400, false},
                    {"inputtokens", 0, true}, {"outputtokens", 0, true}};

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (strcmp(suffix, suffixes[i].name) != 0)
            continue;
        struct weir_advice_policy *stated = policy_named(advice, suffix);
        if (stated && suffixes[i].window_s > 0)
            stated->window_ns = suffixes[i].window_s * S_NS;
        if (stated)
            stated->tokens = suffixes[i].tokens;
        return stated;
    }
    return NULL;
}

/* "limitminute" and its like, behind "ratelimit". */
static void take_part(struct weir_advice *advice, const char *part, struct weir_bytes value)
{
    struct weir_advice_policy *stated;

    if (!strcmp(part, "policy")) {
        take_policy(advice, value);
    } else if (!strncmp(part, "limit", 5)) {
        stated = by_suffix(advice, part + 5);
        if (stated)
            take_limit(advice, part + 5, value);
    } else if (!strncmp(part, "remaining", 9)) {
        stated = by_suffix(advice, part + 9);
        if (stated)
            (void)read_units(value, &stated->remaining);
    } else if (!strcmp(part, "resetafter") || !strcmp(part, "resetms")) {
        uint64_t whole;
        uint32_t fraction;
        stated = policy_named(advice, "");
        if (!stated || !weir_instant_number(value, &whole, &fraction))
            return;
        uint64_t unit = !strcmp(part, "resetms") ? S_NS / 1000 : S_NS;
        if (whole < WEIR_INSTANT_HORIZON_NS / unit)
            advice->resets[stated - advice->policies] = (struct weir_advice_reset){
                WEIR_RESET_DURATION, whole * unit + (unit == S_NS ? fraction : 0), 0};
    } else if (!strncmp(part, "reset", 5)) {
        stated = by_suffix(advice, part + 5);
        /* What Reset-After says is more exact than Reset. */
        if (stated && advice->resets[stated - advice->policies].kind != WEIR_RESET_DURATION)
            read_reset(advice, stated, value);
    }
}

static void take_hubspot(struct weir_advice *advice, const char *part, struct weir_bytes value)
{
    struct weir_advice_policy *stated = policy_named(advice, "hubspot");
    uint64_t interval;

    if (!stated)
        return;
    if (!strcmp(part, "max"))
        (void)read_units(value, &stated->limit);
    else if (!strcmp(part, "remaining"))
        (void)read_units(value, &stated->remaining);
    else if (!strcmp(part, "intervalmilliseconds") && read_units(value, &interval) &&
             interval > 0 && interval < WEIR_INSTANT_HORIZON_NS / 1000000)
        stated->window_ns = interval * 1000000;
}

/* "32/40": used and capacity. */
static void take_shopify(struct weir_advice *advice, struct weir_bytes value)
{
    const char *slash = memchr(value.data, '/', value.size);
    struct weir_advice_policy *stated = policy_named(advice, "shopify");
    uint64_t used, capacity;

    if (!slash || !stated)
        return;
    size_t before = (size_t)(slash - value.data);
    if (read_units((struct weir_bytes){value.data, before}, &used) &&
        read_units((struct weir_bytes){slash + 1, value.size - before - 1}, &capacity)) {
        stated->limit = capacity;
        stated->remaining = capacity > used ? capacity - used : 0;
    }
}

/* "requests-limit" becomes "limitrequests", as OpenAI spells it. */
static void take_anthropic(struct weir_advice *advice, const char *part, struct weir_bytes value)
{
    static const char *const units[] = {"requests", "tokens", "inputtokens", "outputtokens"};
    char other[FLAT_MAX + 16];

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t size = strlen(units[i]);
        if (strncmp(part, units[i], size) != 0)
            continue;
        snprintf(other, sizeof other, "%s%s", part + size, units[i]);
        take_part(advice, other, value);
        return;
    }
}

static bool equals(struct weir_bytes value, const char *text)
{
    return value.size == strlen(text) && !memcmp(value.data, text, value.size);
}

static void take_should_retry(struct weir_advice *advice, struct weir_bytes value)
{
    if (equals(value, "false"))
        advice->must_not_retry = true;
    else if (equals(value, "true"))
        advice->must_retry = true;
}

/* Milliseconds; what cannot be true is the horizon. */
static bool take_exact(struct weir_advice *advice, struct weir_bytes value)
{
    uint64_t whole;
    uint32_t part;

    if (!weir_instant_number(value, &whole, &part))
        return false;
    uint64_t wait = whole < WEIR_INSTANT_HORIZON_NS / MS_NS ? whole * MS_NS + part / 1000
                                                            : WEIR_INSTANT_HORIZON_NS;
    if (!advice->has_exact || wait > advice->exact_ns)
        advice->exact_ns = wait;
    advice->has_exact = true;
    return true;
}

static bool is_exact(const char *flat)
{
    return !strcmp(flat, "retryafterms") || !strcmp(flat, "msretryafterms") ||
           !strcmp(flat, "amzretryafter");
}

static struct weir_bytes trimmed(struct weir_bytes value)
{
    while (value.size > 0 && (value.data[0] == ' ' || value.data[0] == '\t')) {
        value.data++;
        value.size--;
    }
    while (value.size > 0 && memchr(" \t\r\n", value.data[value.size - 1], 4))
        value.size--;
    return value;
}

/* The name in lower case without dashes and a leading "x". False: it is too long to be of use. */
static bool flatten(struct weir_bytes name, char flat[FLAT_MAX])
{
    size_t size = 0;

    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        if (c == '-')
            continue;
        if (size == FLAT_MAX - 1)
            return false;
        flat[size++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    flat[size] = '\0';
    if (name.size > 1 && flat[0] == 'x' && name.data[1] == '-')
        memmove(flat, flat + 1, size);
    return true;
}

/* Several fields are one list. What has no room is ignored. */
static void take_retry_after(struct weir_advice *advice, struct weir_bytes value)
{
    size_t size = advice->retry_after_size;

    if (size + 1 + value.size > sizeof advice->retry_after)
        return;
    if (size > 0)
        advice->retry_after[size++] = ',';
    memcpy(advice->retry_after + size, value.data, value.size);
    advice->retry_after_size = (uint8_t)(size + value.size);
}

/* What follows `prefix` in `name`; NULL: it begins otherwise. */
static const char *behind(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 ? name + size : NULL;
}

void weir_advice_field(struct weir_advice *advice, struct weir_bytes name, struct weir_bytes value)
{
    char flat[FLAT_MAX];
    const char *part;

    value = trimmed(value);
    if (value.size == 0 || value.size > WEIR_ADVICE_FIELD_MAX || !flatten(name, flat))
        return;
    if (!strcmp(flat, "date")) {
        int64_t date;
        if (weir_instant_http_date(value, 0, &date)) {
            advice->has_date = true;
            advice->date_s = date;
        }
    } else if (!strcmp(flat, "retryafter")) {
        take_retry_after(advice, value);
    } else if (is_exact(flat)) {
        (void)take_exact(advice, value);
    } else if (!strcmp(flat, "grpcretrypushbackms")) {
        advice->must_not_retry |= !take_exact(advice, value);
    } else if (!strcmp(flat, "stripeshouldretry") || !strcmp(flat, "shouldretry")) {
        take_should_retry(advice, value);
    } else if (!strcmp(flat, "ratelimit")) {
        take_ratelimit(advice, value);
    } else if ((part = behind(flat, "ratelimit"))) {
        take_part(advice, part, value);
    } else if ((part = behind(flat, "anthropicratelimit"))) {
        take_anthropic(advice, part, value);
    } else if ((part = behind(flat, "hubspotratelimit"))) {
        take_hubspot(advice, part, value);
    } else if (!strcmp(flat, "shopifyshopapicalllimit")) {
        take_shopify(advice, value);
    }
}

/* From a point in time to a time from now. A second too late may be a server's rounding. */
static void resolve_epoch(struct weir_advice_policy *stated, int64_t at_s, uint64_t part_ns,
                          int64_t now_s)
{
    if (at_s < now_s - 1)
        return;
    stated->reset_ns = at_s > now_s ? (uint64_t)(at_s - now_s) * S_NS + part_ns : part_ns;
}

static void resolve_number(struct weir_advice_policy *stated, const struct weir_advice_reset *reset,
                           int64_t now_s)
{
    uint64_t value = reset->value;

    if (value >= UINT64_C(100000000000000000))
        return;
    if (value >= UINT64_C(100000000000000)) {
        resolve_epoch(stated, (int64_t)(value / 1000000), value % 1000000 * 1000, now_s);
    } else if (value >= UINT64_C(100000000000)) {
        resolve_epoch(stated, (int64_t)(value / 1000), value % 1000 * 1000000, now_s);
    } else if (value >= 100000000) {
        resolve_epoch(stated, (int64_t)value, reset->billionths, now_s);
    } else if (stated->window_ns != WEIR_ADVICE_UNKNOWN &&
               value * S_NS > stated->window_ns + S_NS) {
        stated->reset_ns = value * 1000000;
        stated->granule_ns = 1000000;
    } else {
        stated->reset_ns = value * S_NS + reset->billionths;
        stated->granule_ns = reset->billionths > 0 ? 1000000 : S_NS;
    }
}

static void resolve(struct weir_advice_policy *stated, const struct weir_advice_reset *reset,
                    int64_t now_s)
{
    stated->granule_ns = S_NS;
    if (reset->kind == WEIR_RESET_NUMBER) {
        resolve_number(stated, reset, now_s);
    } else if (reset->kind == WEIR_RESET_DURATION) {
        stated->reset_ns = reset->value;
        stated->granule_ns = reset->value % S_NS == 0 ? S_NS : 1000000;
    } else if (reset->kind == WEIR_RESET_DATE) {
        resolve_epoch(stated, (int64_t)reset->value, 0, now_s);
    }
    if (stated->reset_ns > WEIR_INSTANT_HORIZON_NS)
        stated->reset_ns = WEIR_ADVICE_UNKNOWN;
}

static void drop(struct weir_advice *advice, uint32_t index)
{
    uint32_t last = --advice->count;
    advice->policies[index] = advice->policies[last];
    advice->resets[index] = advice->resets[last];
}

/* "100" and "100;w=60" are one policy. */
static void join_windows(struct weir_advice *advice)
{
    struct weir_advice_policy *plain = NULL;

    for (uint32_t i = 0; i < advice->count; i++)
        if (advice->policies[i].name[0] == '\0')
            plain = &advice->policies[i];
    for (uint32_t i = 0; plain && i < advice->count; i++) {
        struct weir_advice_policy *other = &advice->policies[i];
        bool same = other->limit == plain->limit || plain->limit == WEIR_ADVICE_UNKNOWN;
        if (other == plain || other->remaining != WEIR_ADVICE_UNKNOWN ||
            other->window_ns == WEIR_ADVICE_UNKNOWN || !same)
            continue;
        plain->limit = other->limit;
        plain->window_ns = other->window_ns;
        drop(advice, i);
        return;
    }
}

void weir_advice_finish(struct weir_advice *advice, int64_t now_s)
{
    int64_t base_s = advice->has_date ? advice->date_s : now_s;
    struct weir_bytes retry = {advice->retry_after, advice->retry_after_size};

    join_windows(advice);
    for (uint32_t i = 0; i < advice->count; i++)
        resolve(&advice->policies[i], &advice->resets[i], base_s);
    for (uint32_t i = advice->count; i-- > 0;) {
        const struct weir_advice_policy *stated = &advice->policies[i];
        bool empty =
            stated->limit == WEIR_ADVICE_UNKNOWN && stated->remaining == WEIR_ADVICE_UNKNOWN;
        bool plenty =
            stated->tokens && (stated->remaining != 0 || stated->reset_ns == WEIR_ADVICE_UNKNOWN);
        if (empty || stated->ignored || plenty)
            drop(advice, i);
    }
    advice->has_retry_after =
        retry.size > 0 && weir_instant_retry_after(retry, advice->has_date ? &advice->date_s : NULL,
                                                   now_s, &advice->retry_after_ns);
    if (advice->has_exact) {
        advice->has_retry_after = true;
        advice->retry_after_ns = advice->exact_ns;
    }
}

bool weir_advice_refuses(const struct weir_advice *advice)
{
    for (uint32_t i = 0; i < advice->count; i++)
        if (advice->policies[i].remaining == 0)
            return true;
    return advice->has_retry_after;
}
