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

enum { STATUS, ABOVE, FORM, HEADERS, BODY, CONTENT_TYPE, DOCUMENTATION };

/* Rows that the file's own `reject` has, too. */
#define OF_ALL (UINT32_C(1) << 16)

static const struct rules_keyword any_header = {NULL, RULES_TEXT,
                                                .doc = "a header field of the denials"};
static const struct rules_section headers_section = {.what = "headers", .others = &any_header};

#define STATUS_WORDS                                                                               \
    RULES_WORDS("400", "401", "402", "403", "404", "409", "413", "429", "500", "503")
#define STATUS_TEXT "400, 401, 402, 403, 404, 409, 413, 429, 500 or 503"

static const struct rules_keyword keywords[] = {
    [STATUS] = {"status", RULES_CHOICE, STATUS_WORDS, .flags = OF_ALL, .otherwise = "429",
                .doc = STATUS_TEXT},
    [ABOVE] = {"above_status", RULES_CHOICE, STATUS_WORDS, .flags = OF_ALL, .absent = "`status`",
               .doc = "the status where the cost is above the limit, so that waiting never helps: "
                      "clients retry a 429, and not a 413"},
    [FORM] = {"form", RULES_CHOICE, RULES_AT(struct weir_reject, form),
              RULES_WORDS("problem", "json"), .flags = OF_ALL, .otherwise = "problem",
              .doc = "the body: `problem` (RFC 9457), or `json` (`error`, `code`, `message`, "
                     "`retryAfter`)"},
    [HEADERS] = {"headers", RULES_MAPPING, .section = &headers_section, .flags = OF_ALL,
                 .absent = "none",
                 .doc = "up to 8 header fields, 1,024 bytes together, with up to 6 variables"},
    [BODY] = {"body", RULES_TEXT, .flags = OF_ALL, .absent = "that of `form`",
              .doc = "a template of at most 4,096 bytes"},
    [CONTENT_TYPE] = {"content_type", RULES_TEXT, .flags = OF_ALL, .otherwise = "application/json",
                      .doc = "the type of the body"},
    [DOCUMENTATION] = {"documentation", RULES_TEXT, .flags = OF_ALL, .absent = "none",
                       .doc = "a URL, which the bodies of both forms have"},
    {"tarpit", RULES_DURATION, RULES_AT(struct weir_reject, tarpit_ns),
     RULES_RANGE(TARPIT_LEAST_NS, WEIR_DELAY_MAX_NS), .absent = "at once",
     .doc = "the denial says to hold it for this time (1 ms to 1 min)"},
};
const struct rules_section rules_section_reject = RULES_SECTION("`reject`", keywords);
const struct rules_section rules_section_reject_all = {.what = "`reject`",
                                                       .keywords = keywords,
                                                       .count =
                                                           sizeof(keywords) / sizeof(keywords[0]),
                                                       .only = OF_ALL};

/* --- `headers` -------------------------------------------------------------------------------- */

/* What weir and HTTP itself set; `dialects`: only with one of these (`headers` of the file). */
#define ANY_DIALECT UINT32_MAX
#define X_DIALECTS (WEIR_HEADERS_X_EPOCH | WEIR_HEADERS_X_DELTA)
static const struct {
    const char *name;
    uint32_t dialects; /* 0: always */
} reserved[] = {
    {"cache-control", 0},
    {"connection", 0},
    {"content-length", 0},
    {"content-type", 0},
    {"date", 0},
    {"keep-alive", 0},
    {"retry-after", 0},
    {"te", 0},
    {"trailer", 0},
    {"transfer-encoding", 0},
    {"upgrade", 0},
    {"x-weir-action", 0},
    {"x-weir-delay-ms", 0},
    {"x-weir-lease", 0},
    {"x-weir-score", 0},
    {"x-ratelimit-status", 0},
    {"ratelimit", WEIR_HEADERS_DRAFT},
    {"ratelimit-policy", WEIR_HEADERS_DRAFT},
    {"ratelimit-limit", WEIR_HEADERS_DRAFT_03},
    {"ratelimit-remaining", WEIR_HEADERS_DRAFT_03},
    {"ratelimit-reset", WEIR_HEADERS_DRAFT_03},
    {"x-ratelimit-limit", X_DIALECTS},
    {"x-ratelimit-remaining", X_DIALECTS},
    {"x-ratelimit-reset", X_DIALECTS},
    {"x-ratelimit-cost", WEIR_HEADERS_COST},
    {"x-ratelimit-standing", WEIR_HEADERS_STANDING},
    {"x-ratelimit-dimension", WEIR_HEADERS_DIMENSION},
    {"x-ratelimit-warning", ANY_DIALECT},
};

static bool is_reserved(const struct rules_loader *loader, struct weir_bytes name)
{
    uint32_t dialects = loader->rules->settings.headers;
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        if (name.size == strlen(reserved[i].name) &&
            strncasecmp(name.data, reserved[i].name, name.size) == 0)
            return reserved[i].dialects == 0 || (dialects & reserved[i].dialects) != 0;
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
    if (is_reserved(loader, name)) {
        rules_problem(loader, node, "weir sets %s itself; remove it from `headers`", quote.text);
        return false;
    }
    return true;
}

/* A value with its variables; false after a problem. */
static bool load_header_value(struct rules_loader *loader, const struct rules_node *node,
                              struct weir_template *template, size_t *size)
{
    struct weir_bytes value;
    struct weir_reason reason;
    size_t at;
    if (!rules_read_text(loader, node, "a value", &value))
        return false;
    if (!is_value(value)) {
        rules_problem(loader, node,
                      "the value of a header field must be visible ASCII characters, and "
                      "spaces between them");
        return false;
    }
    *size = value.size;
    const char *kept = rules_keep_text(loader, value.data, value.size);
    if (!kept)
        return false;
    int err = weir_template_parse(template, WEIR_TEMPLATE_TEXT,
                                  (struct weir_bytes){kept, value.size}, &at, &reason);
    if (err < 0)
        rules_problem(loader, node, "the value, at byte %zu: %s", at, reason.text);
    return err == 0;
}

static void load_headers(struct rules_loader *loader, const struct rules_node *node,
                         struct weir_reject *reject)
{
    uint32_t count = node->kind == RULES_MAP ? node->size / 2 : 0;
    size_t bytes = 0, variables = 0;
    if (count == 0 || count > WEIR_REJECT_HEADERS_MAX) {
        rules_problem(loader, node, "`headers` must be a mapping of 1 to %d names to values",
                      WEIR_REJECT_HEADERS_MAX);
        return;
    }
    struct weir_reject_header *headers = rules_keep(loader, count * sizeof(*headers));
    reject->header_count = 0; /* not those of the file */
    for (uint32_t i = 0; i < count && headers; i++) {
        const struct rules_node *key = node->items[2 * i], *text = node->items[2 * i + 1];
        struct weir_reject_header *header = &headers[reject->header_count];
        struct weir_bytes name;
        size_t size;
        if (!rules_read_text(loader, key, "a name", &name) || !check_header(loader, key, name) ||
            !load_header_value(loader, text, &header->value, &size))
            continue;
        bytes += name.size + size + 4;
        variables += header->value.count - 1U;
        header->name =
            (struct weir_bytes){rules_keep_text(loader, name.data, name.size), name.size};
        reject->header_count++;
    }
    reject->headers = headers;
    if (bytes > WEIR_REJECT_HEADER_BYTES)
        rules_problem(loader, node, "`headers` are longer than %d bytes together",
                      WEIR_REJECT_HEADER_BYTES);
    if (variables > WEIR_REJECT_HEADER_VARIABLES)
        rules_problem(loader, node, "`headers` have more than %d variables together",
                      WEIR_REJECT_HEADER_VARIABLES);
}

/* --- `body` ----------------------------------------------------------------------------------- */

/* Whether the body is JSON whatever its variables become. */
static void check_json(struct rules_loader *loader, const struct rules_node *node,
                       const struct weir_template *body)
{
    static const struct weir_template_values samples[] = {
        {.retry_after_s = 1, .limit = 10, .remaining = 0, .reason = {"api", 3}},
        {.retry_after_s = UINT64_MAX, .limit = 10, .remaining = 0, .reason = {"7", 1}},
        {.retry_after_s = 1, .limit = UINT64_MAX, .remaining = UINT64_MAX, .reason = {"api", 3}},
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

static uint16_t load_status(struct rules_loader *loader, const struct rules_field *field)
{
    static const uint16_t numbers[] = {400, 401, 402, 403, 404, 409, 413, 429, 500, 503};
    int choice = rules_read_choice(loader, field->value, field->name, keywords[STATUS].words,
                                   sizeof(numbers) / sizeof(numbers[0]));
    return choice >= 0 ? numbers[choice] : 0;
}

static void load_documentation(struct rules_loader *loader, const struct rules_node *node,
                               struct weir_reject *reject)
{
    static const char https[] = "https://", http[] = "http://";
    struct weir_bytes url;
    if (!rules_read_text(loader, node, "documentation", &url))
        return;
    bool absolute = (url.size >= sizeof(https) && strncasecmp(url.data, https, 8) == 0) ||
                    (url.size >= sizeof(http) && strncasecmp(url.data, http, 7) == 0);
    if (!absolute || !is_value(url) || memchr(url.data, ' ', url.size) ||
        url.size > WEIR_DOCUMENTATION_MAX)
        rules_problem(loader, node,
                      "`documentation` must be a URL of at most %d bytes, such as "
                      "`https://example.com/docs/limits`",
                      WEIR_DOCUMENTATION_MAX);
    else
        reject->documentation =
            (struct weir_bytes){rules_keep_text(loader, url.data, url.size), url.size};
}

/* Fills `reject`, which has what the file says, or zeros. */
static bool load(struct rules_loader *loader, const struct rules_section *section,
                 const struct rules_node *node, struct weir_reject *reject)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    if (!rules_section_find(loader, section, node, fields))
        return false;
    if (fields[STATUS].value)
        reject->status = load_status(loader, &fields[STATUS]);
    if (fields[ABOVE].value)
        reject->above_status = load_status(loader, &fields[ABOVE]);
    rules_section_read(loader, section, fields, reject);
    if (fields[HEADERS].value)
        load_headers(loader, fields[HEADERS].value, reject);
    if (fields[FORM].value && fields[BODY].value)
        rules_problem(loader, fields[FORM].key, "`form` is that of a body that `body` replaces");
    if (fields[FORM].value || fields[BODY].value)
        reject->body.count = 0; /* not that of the file */
    if (fields[BODY].value || fields[CONTENT_TYPE].value)
        load_type(loader, fields, reject);
    if (fields[BODY].value && reject->content_type)
        load_body(loader, fields[BODY].value, reject);
    if (fields[DOCUMENTATION].value)
        load_documentation(loader, fields[DOCUMENTATION].value, reject);
    return true;
}

void rules_load_reject_all(struct rules_loader *loader, const struct rules_node *node)
{
    struct weir_reject *reject = rules_keep(loader, sizeof(*reject));
    if (reject && load(loader, &rules_section_reject_all, node, reject))
        loader->rules->reject = reject;
}

void rules_load_reject(struct rules_loader *loader, const struct rules_field *field,
                       struct rules_rule *rule)
{
    struct weir_reject *reject = rules_keep(loader, sizeof(*reject));
    if (!reject)
        return;
    if (loader->rules->reject)
        *reject = *loader->rules->reject;
    if (!load(loader, &rules_section_reject, field->value, reject))
        return;
    rule->reject = reject;
    loader->rules->acts = true;
}
