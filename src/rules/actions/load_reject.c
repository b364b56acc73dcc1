/* SPDX-License-Identifier: Apache-2.0 */
/* see load_reject.h */
#include "rules/actions/load_reject.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "rules/actions/reject.h"
#include "rules/actions/steps.h"

#define TARPIT_LEAST_NS UINT64_C(1000000)
#define TYPE_MAX 128

enum { STATUS, HEADERS, BODY, CONTENT_TYPE };

static const struct rules_keyword any_header = {NULL, RULES_TEXT,
                                                .doc = "a header field of the denials"};
static const struct rules_section headers_section = {.what = "headers", .others = &any_header};

static const struct rules_keyword keywords[] = {
    [STATUS] = {"status", RULES_CHOICE,
                RULES_WORDS("400", "401", "402", "403", "404", "409", "429", "500", "503"),
                .otherwise = "429", .doc = "400, 401, 402, 403, 404, 409, 429, 500 or 503"},
    [HEADERS] = {"headers", RULES_MAPPING, .section = &headers_section, .absent = "none",
                 .doc = "up to 8 header fields, 1,024 bytes together"},
    [BODY] = {"body", RULES_TEXT, .absent = "a problem document",
              .doc = "a template of at most 4,096 bytes"},
    [CONTENT_TYPE] = {"content_type", RULES_TEXT, .otherwise = "application/json",
                      .doc = "the type of the body"},
    {"tarpit", RULES_DURATION, RULES_AT(struct weir_reject, tarpit_ns),
     RULES_RANGE(TARPIT_LEAST_NS, WEIR_DELAY_MAX_NS), .absent = "at once",
     .doc = "the denial says to hold it for this time (1 ms to 1 min)"},
};
const struct rules_section rules_section_reject = RULES_SECTION("`reject`", keywords);

/* --- `headers` -------------------------------------------------------------------------------- */

/* What weir and HTTP itself set, and how the names of weir's other fields begin. */
static const char *const reserved[] = {
    "connection", "content-length",    "content-type", "date",
    "keep-alive", "retry-after",       "te",           "trailer",
    "upgrade",    "transfer-encoding", "ratelimit",    "cache-control"};
static const char *const reserved_beginnings[] = {"ratelimit-", "x-ratelimit-", "x-weir-"};

static bool is_reserved(struct weir_bytes name)
{
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (name.size == strlen(reserved[i]) && strncasecmp(name.data, reserved[i], name.size) == 0)
            return true;
    for (size_t i = 0; i < sizeof(reserved_beginnings) / sizeof(reserved_beginnings[0]); i++)
        if (name.size >= strlen(reserved_beginnings[i]) &&
            strncasecmp(name.data, reserved_beginnings[i], strlen(reserved_beginnings[i])) == 0)
            return true;
    return false;
}

static bool is_token(struct weir_bytes name)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && (c == '\0' || !strchr(marks, c)))
            return false;
    }
    return name.size > 0;
}

static bool is_value(struct weir_bytes value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.data[i] < 0x20 || value.data[i] > 0x7e)
            return false;
    return value.size > 0 && value.data[0] != ' ' && value.data[value.size - 1] != ' ';
}

/* A name that the answer may have; false after a problem. */
static bool check_header(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_bytes name)
{
    struct rules_quote quote;
    rules_quote(&quote, name.data, name.size);
    if (!is_token(name)) {
        rules_problem(loader, node, "%s is not the name of a header field", quote.text);
        return false;
    }
    if (is_reserved(name)) {
        rules_problem(loader, node, "weir sets %s itself; remove it from `headers`", quote.text);
        return false;
    }
    return true;
}

static void load_headers(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_reject *reject)
{
    uint32_t count = node->kind == RULES_MAP ? node->size / 2 : 0;
    size_t bytes = 0;
    if (count == 0 || count > WEIR_REJECT_HEADERS_MAX) {
        rules_problem(loader, node, "`headers` must be a mapping of 1 to %d names to values",
                      WEIR_REJECT_HEADERS_MAX);
        return;
    }
    struct weir_reject_header *headers = rules_keep(loader, count * sizeof(*headers));
    for (uint32_t i = 0; i < count && headers; i++) {
        const struct rules_node *key = node->items[2 * i], *text = node->items[2 * i + 1];
        struct weir_bytes name, value;
        if (!rules_read_text(loader, key, "a name", &name) || !check_header(loader, key, name) ||
            !rules_read_text(loader, text, "a value", &value))
            continue;
        if (!is_value(value)) {
            rules_problem(loader, text,
                          "the value of a header field must be visible ASCII characters, and "
                          "spaces between them");
            continue;
        }
        bytes += name.size + value.size + 4;
        headers[reject->header_count++] = (struct weir_reject_header){
            {rules_keep_text(loader, name.data, name.size), name.size},
            {rules_keep_text(loader, value.data, value.size), value.size}};
    }
    reject->headers = headers;
    if (bytes > WEIR_REJECT_HEADER_BYTES)
        rules_problem(loader, node, "`headers` are longer than %d bytes together",
                      WEIR_REJECT_HEADER_BYTES);
}

/* --- `body` ----------------------------------------------------------------------------------- */

/* Whether the body is JSON whatever its variables become. */
static void check_json(struct rules_loader *loader, const struct rules_node *node,
                       const struct weir_template *body)
{
    static const struct weir_template_values samples[] = {
        {.retry_after_s = 1, .limit = 10, .remaining = 0, .reason = {"api", 3}},
        {.retry_after_s = UINT64_MAX, .limit = 10, .remaining = 0, .reason = {"7", 1}},
    };
    char *out = rules_borrow(loader, WEIR_TEMPLATE_OUT_MAX);
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]) && out; i++) {
        json_error_t error;
        size_t size = weir_template_write(body, &samples[i], out);
        json_t *tree = json_loadb(out, size, JSON_DECODE_ANY, &error);
        if (!tree) {
            rules_problem(loader, node,
                          "`body` is not JSON when its variables are filled in, in its line %d: %s",
                          error.line, error.text);
            return;
        }
        json_decref(tree);
    }
}

static void load_body(struct rules_loader *loader, const struct rules_node *node,
                      struct weir_reject *reject)
{
    struct weir_bytes text;
    struct weir_reason reason;
    size_t at;
    if (!rules_read_text(loader, node, "body", &text))
        return;
    const char *kept = rules_keep_text(loader, text.data, text.size);
    if (!kept)
        return;
    struct weir_bytes type = {reject->content_type, strlen(reject->content_type)};
    enum weir_template_kind kind = weir_template_kind_of(type);
    int err = weir_template_parse(&reject->body, kind, (struct weir_bytes){kept, text.size}, &at,
                                  &reason);
    if (err < 0) {
        rules_problem(loader, node, "`body`, at byte %zu: %s", at, reason.text);
        reject->body.count = 0;
    } else if (kind == WEIR_TEMPLATE_JSON) {
        check_json(loader, node, &reject->body);
    }
}

/* The type; NULL after a problem. */
static void load_type(struct rules_loader *loader, const struct rules_field *fields,
                      struct weir_reject *reject)
{
    const struct rules_field *field = &fields[CONTENT_TYPE];
    struct weir_bytes type;
    reject->content_type = "application/json";
    if (!field->value)
        return;
    reject->content_type = NULL;
    if (!rules_read_text(loader, field->value, "content_type", &type))
        return;
    if (!fields[BODY].value)
        rules_problem(loader, field->key, "`content_type` is that of a `body`, which is missing");
    else if (!is_value(type) || type.size > TYPE_MAX || !memchr(type.data, '/', type.size))
        rules_problem(loader, field->value,
                      "`content_type` must be a media type such as `application/json`");
    else
        reject->content_type = rules_keep_text(loader, type.data, type.size);
}

/* --- The rest --------------------------------------------------------------------------------- */

static void load_status(struct rules_loader *loader, const struct rules_node *node,
                        struct weir_reject *reject)
{
    static const uint16_t numbers[] = {400, 401, 402, 403, 404, 409, 429, 500, 503};
    int choice = rules_read_choice(loader, node, "status", keywords[STATUS].words,
                                   sizeof(numbers) / sizeof(numbers[0]));
    reject->status = choice >= 0 ? numbers[choice] : 0;
}

void rules_load_reject(struct rules_loader *loader, const struct rules_field *field,
                       struct rules_rule *rule)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_reject *reject = rules_keep(loader, sizeof(*reject));
    if (!reject || !rules_section_find(loader, &rules_section_reject, field->value, fields))
        return;
    if (fields[STATUS].value)
        load_status(loader, fields[STATUS].value, reject);
    rules_section_read(loader, &rules_section_reject, fields, reject);
    if (fields[HEADERS].value)
        load_headers(loader, fields[HEADERS].value, reject);
    load_type(loader, fields, reject);
    if (fields[BODY].value && reject->content_type)
        load_body(loader, fields[BODY].value, reject);
    rule->reject = reject;
    loader->rules->acts = true;
}
