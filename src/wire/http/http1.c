/* SPDX-License-Identifier: Apache-2.0 */
/* See http1.h. A head is read twice: first its lines are found, as bytes come; when it is complete
 * its fields are made. The ends of lines wait in the fields' own places. */
#include "wire/http/http1.h"

#include <string.h>

#include "wire/http/chars.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

static long refuse(struct weir_http1_parser *parser, uint16_t status, const char *problem)
{
    parser->status = status;
    parser->problem = problem;
    return status == 413 || status == 414 || status == 431 ? WEIR_ERR_TOO_LARGE : WEIR_ERR_SYNTAX;
}

/* The first control character but HTAB in [at, end), or `end`. */
static char *control_find(char *at, char *end)
{
#ifdef __SSE2__
    const __m128i last_control = _mm_set1_epi8(0x1f), tab = _mm_set1_epi8('\t'),
                  del = _mm_set1_epi8(0x7f);
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
        __m128i found = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, tab), low),
                                     _mm_cmpeq_epi8(bytes, del));
        unsigned mask = (unsigned)_mm_movemask_epi8(found);
        if (mask != 0)
            return at + __builtin_ctz(mask);
        at += 16;
    }
#endif
    while (at < end && weir_http_is(*at, WEIR_HTTP_VALUE))
        at++;
    return at;
}

/* Where the letters, digits, '-', '.', ':' and, with `slash`, '/' of [at, end) end, which are
 * recognised by sixteens. What is behind `end` may be read, up to `readable`; where that is too
 * little, nothing is recognised. */
static inline const char *common_end(const char *at, const char *end, const char *readable,
                                     bool slash)
{
#ifdef __SSE2__
    while (at < end && readable - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
        __m128i other = _mm_sub_epi8(bytes, _mm_set1_epi8('-')); /* "-./0123456789:" */
        __m128i common =
            _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter),
                         _mm_cmpeq_epi8(_mm_min_epu8(other, _mm_set1_epi8(13)), other));
        if (!slash)
            common = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('/')), common);
        unsigned mask = ~(unsigned)_mm_movemask_epi8(common); /* from bit 16 on all are set */
        size_t found = (size_t)__builtin_ctz(mask), left = (size_t)(end - at);
        if (found >= left)
            return end;
        at += found;
        if (found < 16)
            return at;
    }
#endif
    return at;
}

/* The end of a field name. Nearly all are of letters, digits and '-', which are recognised by
 * sixteens; *end is the line's CR, which is no token character. */
static const char *name_end(const char *at, const char *end)
{
#ifdef __SSE2__
    if (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i letter = _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
        __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0'));
        __m128i common = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(25)), letter),
                         _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit)),
            _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-')));
        at += __builtin_ctz(~(unsigned)_mm_movemask_epi8(common)); /* 16 when all are */
    }
#endif
    while (weir_http_is(*at, WEIR_HTTP_TOKEN))
        at++;
    return at;
}

/* Notes the end of a line. Returns 1 when it was the head's last, 0, or an error. */
static long line_end(struct weir_http1_parser *parser, size_t end,
                     struct weir_http1_request *request)
{
    size_t line_start = parser->line_start;
    parser->line_start = end + 2;
    parser->scanned = end + 2;
    if (end == line_start) {
        if (parser->lines == 0) {
            parser->start = end + 2; /* RFC 9112 2.2: empty lines before a request */
            return 0;
        }
        parser->head_size = end + 2;
        return 1;
    }
    if (parser->lines == 0)
        parser->first_end = end;
    else if (parser->lines > WEIR_HTTP1_FIELDS_MAX)
        return refuse(parser, 431, "too many header fields");
    else
        request->fields[parser->lines - 1].value.size = end;
    parser->lines++;
    return 0;
}

/* Finds the lines of the head. Returns 1 when it is complete, 0, or an error. */
static long head_scan(struct weir_http1_parser *parser, char *data, size_t size,
                      struct weir_http1_request *request)
{
    size_t limit = size < WEIR_HTTP1_HEAD_MAX ? size : WEIR_HTTP1_HEAD_MAX;
    char *end = data + limit, *at = data + parser->scanned;

    for (;;) {
        at = control_find(at, end);
        if (at == end || (*at == '\r' && at + 1 == end))
            break;
        if (*at != '\r' || at[1] != '\n') {
            return refuse(parser, 400,
                          *at == '\r'   ? "a bare carriage return in the head"
                          : *at == '\n' ? "a bare line feed in the head"
                                        : "a control character in the head");
        }
        long done = line_end(parser, (size_t)(at - data), request);
        if (done != 0)
            return done;
        at += 2;
    }
    parser->scanned = (size_t)(at - data);
    if (limit == WEIR_HTTP1_HEAD_MAX) {
        return parser->lines == 0 ? refuse(parser, 414, "the request line is too long")
                                  : refuse(parser, 431, "the header fields are too large");
    }
    return 0;
}

/* Compares eight bytes with lower-case ones. */
static bool eight_equal(const char *name, const char *lower)
{
    uint64_t word, wanted;
    memcpy(&word, name, sizeof word);
    memcpy(&wanted, lower, sizeof wanted);
    return (word | UINT64_C(0x2020202020202020)) == wanted;
}

/* Compares with a lower-case name of the same size, of letters, digits and "-:/": without controls,
 * which a head has not, only a letter becomes one of these by the bit of lower case. */
static bool name_equals(const char *name, const char *lower, size_t size)
{
    if (size >= 8 && size <= 16) /* the first eight and the last eight, which may overlap */
        return eight_equal(name, lower) && eight_equal(&name[size - 8], &lower[size - 8]);
    size_t i = 0;
    while (i < size && (name[i] | 0x20) == lower[i])
        i++;
    return i == size;
}

/* Of a Host field, in a head that ends at `head_end`. */
static bool host_is_valid(struct weir_bytes host, const char *head_end)
{
    const char *end = host.data + host.size, *at = common_end(host.data, end, head_end, false);
    while (at < end && weir_http_is(*at, WEIR_HTTP_HOST))
        at++;
    return at == end;
}

/* http://authority/path: gives the request its host, and what of the target is left. */
static bool target_absolute(struct weir_bytes *rest, struct weir_bytes *host)
{
    size_t scheme = rest->size >= 7 && name_equals(rest->data, "http://", 7)    ? 7
                    : rest->size >= 8 && name_equals(rest->data, "https://", 8) ? 8
                                                                                : 0;
    size_t end = scheme;
    while (end < rest->size && weir_http_is(rest->data[end], WEIR_HTTP_HOST))
        end++;
    if (scheme == 0 || end == scheme ||
        (end < rest->size && rest->data[end] != '/' && rest->data[end] != '?'))
        return false;
    *host = (struct weir_bytes){rest->data + scheme, end - scheme};
    *rest = (struct weir_bytes){rest->data + end, rest->size - end};
    return true;
}

/* Splits the target into path and query; in absolute form also the host. */
static bool target_parse(struct weir_http1_request *request, const char *head_end)
{
    struct weir_bytes rest = request->target;

    request->host = (struct weir_bytes){0};
    request->query = (struct weir_bytes){0};
    if (rest.size == 0)
        return false;
    if (rest.data[0] != '/') {
        if (rest.size == 1 && rest.data[0] == '*') {
            request->path = rest;
            return request->method.size == 7 && memcmp(request->method.data, "OPTIONS", 7) == 0;
        }
        if (!target_absolute(&rest, &request->host))
            return false;
    }
    const char *end = rest.data + rest.size, *at = common_end(rest.data, end, head_end, true);
    while (at < end && *at != '?' && weir_http_is(*at, WEIR_HTTP_TARGET))
        at++;
    request->path = (struct weir_bytes){rest.data, (size_t)(at - rest.data)};
    if (request->path.size == 0)
        request->path = (struct weir_bytes){"/", 1}; /* RFC 9110 4.2.3: an empty path is "/" */
    if (at < end && *at == '?') {
        at++;
        request->query = (struct weir_bytes){at, (size_t)(end - at)};
        at = common_end(at, end, head_end, true);
        while (at < end && weir_http_is(*at, WEIR_HTTP_TARGET))
            at++;
    }
    return at == end;
}

/* method SP target SP HTTP/1.x */
static long request_line_parse(struct weir_http1_parser *parser, const char *line, size_t size,
                               struct weir_http1_request *request)
{
    static const char version[] = {'H', 'T', 'T', 'P', '/'};
    size_t method = 0;
    while (weir_http_is(line[method], WEIR_HTTP_TOKEN))
        method++; /* the line's CR is no token character */
    if (method == 0 || line[method] != ' ')
        return refuse(parser, 400, "a malformed request line");
    if (size < method + 10 || line[size - 9] != ' ' ||
        memcmp(line + size - 8, version, sizeof version) != 0 || line[size - 2] != '.' ||
        line[size - 3] < '0' || line[size - 3] > '9' || line[size - 1] < '0' ||
        line[size - 1] > '9')
        return refuse(parser, 400, "a malformed request line or HTTP version");
    if (line[size - 3] != '1')
        return refuse(parser, 505, "not HTTP/1.1 or HTTP/1.0");
    request->minor = (uint8_t)(line[size - 1] - '0');
    request->method = (struct weir_bytes){line, method};
    request->target = (struct weir_bytes){line + method + 1, size - 9 - (method + 1)};
    if (!target_parse(request, line - parser->start + parser->head_size))
        return refuse(parser, 400, "a malformed request target");
    return 0;
}

/* What the fields of one head have said so far. */
struct head_facts {
    const char *end; /* of the head */
    bool host, length, length_is_too_large, coding, coding_is_chunked, close, keep_alive;
};

/* The options of a Connection field: tokens between commas. */
static void connection_read(struct weir_bytes value, struct head_facts *facts)
{
    size_t at = 0;
    while (at < value.size) {
        size_t start = at;
        while (at < value.size && weir_http_is(value.data[at], WEIR_HTTP_TOKEN))
            at++;
        if (at - start == 5 && name_equals(value.data + start, "close", 5))
            facts->close = true;
        else if (at - start == 10 && name_equals(value.data + start, "keep-alive", 10))
            facts->keep_alive = true;
        at += at == start;
    }
}

/* One number of digits, once. */
static long length_read(struct weir_http1_parser *parser, struct weir_bytes value,
                        struct head_facts *facts)
{
    size_t length = 0;
    if (facts->length)
        return refuse(parser, 400, "more than one Content-Length");
    facts->length = true;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return refuse(parser, 400, "Content-Length is not a number");
        length = length * 10 + (size_t)(value.data[i] - '0');
        if (length > WEIR_HTTP1_BODY_MAX) {
            facts->length_is_too_large = true; /* and stays within a size_t */
            length = WEIR_HTTP1_BODY_MAX;
        }
    }
    if (value.size == 0)
        return refuse(parser, 400, "Content-Length is not a number");
    parser->content_length = length;
    return 0;
}

/* Whether a field's name is the given lower-case one of its size. */
static bool field_is(const struct weir_http1_field *field, const char *lower)
{
    return name_equals(field->name.data, lower, field->name.size);
}

/* Reads the fields that decide how the request is framed, and notes those that are asked for. */
static long field_note(struct weir_http1_parser *parser, struct weir_http1_request *request,
                       const struct weir_http1_field *field, struct head_facts *facts)
{
    struct weir_bytes value = field->value;
    switch (field->name.size) {
    case 4:
        if (field_is(field, "host")) {
            if (facts->host || !host_is_valid(value, facts->end))
                return refuse(parser, 400, facts->host ? "more than one Host" : "invalid Host");
            facts->host = true;
            if (!request->host.data)
                request->host = value;
        }
        return 0;
    case 6:
        if (request->minor > 0 && field_is(field, "expect")) {
            if (value.size != 12 || !name_equals(value.data, "100-continue", 12))
                return refuse(parser, 417, "an unknown expectation");
            request->expect_continue = true;
        }
        return 0;
    case 10:
        if (field_is(field, "connection"))
            connection_read(value, facts);
        return 0;
    case 12:
        if (!request->content_type.data && field_is(field, "content-type"))
            request->content_type = value;
        return 0;
    case 14:
        return field_is(field, "content-length") ? length_read(parser, value, facts) : 0;
    case 15:
        if (field_is(field, "idempotency-key")) {
            request->idempotency_key_repeated = request->idempotency_key.data != NULL;
            if (!request->idempotency_key_repeated)
                request->idempotency_key = value;
        }
        return 0;
    case 17:
        if (field_is(field, "transfer-encoding")) {
            if (facts->coding)
                return refuse(parser, 400, "more than one Transfer-Encoding");
            facts->coding = true;
            facts->coding_is_chunked = value.size == 7 && name_equals(value.data, "chunked", 7);
        }
        return 0;
    default:
        return 0;
    }
}

/* How the body is framed (RFC 9112 6.3), once all fields are known. */
static long framing_decide(struct weir_http1_parser *parser, struct weir_http1_request *request,
                           const struct head_facts *facts)
{
    if (!facts->host && request->minor > 0)
        return refuse(parser, 400, "missing Host");
    if (facts->coding && (facts->length || request->minor == 0)) {
        return refuse(parser, 400,
                      facts->length ? "both Content-Length and Transfer-Encoding"
                                    : "a transfer coding in HTTP/1.0");
    }
    if (facts->coding && !facts->coding_is_chunked)
        return refuse(parser, 501, "a transfer coding other than chunked");
    if (facts->length_is_too_large)
        return refuse(parser, 413, "the body is too large");
    parser->body_chunked = facts->coding;
    request->keep_alive = !facts->close && (request->minor > 0 || facts->keep_alive);
    return 0;
}

/* Makes one field of the line [at, end); data[end] is its CR. */
static long field_parse(struct weir_http1_parser *parser, const char *at, const char *end,
                        struct weir_http1_field *field)
{
    const char *name = at;
    at = name_end(at, end);
    if (at == name || *at != ':') {
        return refuse(parser, 400,
                      *name == ' ' || *name == '\t' ? "a folded header field"
                                                    : "a malformed header field name");
    }
    field->name = (struct weir_bytes){name, (size_t)(at - name)};
    at++;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    field->value = (struct weir_bytes){at, (size_t)(end - at)};
    return 0;
}

static long head_parse(struct weir_http1_parser *parser, const char *data,
                       struct weir_http1_request *request)
{
    struct head_facts facts = {.end = data + parser->head_size};
    size_t at = parser->first_end + 2;

    request->expect_continue = request->idempotency_key_repeated = false;
    request->content_type = request->idempotency_key = (struct weir_bytes){0};
    request->body = (struct weir_bytes){data + parser->head_size, 0};
    request->field_count = (uint16_t)(parser->lines - 1);
    long err = request_line_parse(parser, data + parser->start, parser->first_end - parser->start,
                                  request);
    for (uint16_t i = 0; i < request->field_count && err == 0; i++) {
        struct weir_http1_field *field = &request->fields[i];
        size_t end = field->value.size;
        err = field_parse(parser, data + at, data + end, field);
        if (err == 0)
            err = field_note(parser, request, field, &facts);
        at = end + 2;
    }
    if (err == 0)
        err = framing_decide(parser, request, &facts);
    parser->base = data;
    parser->head_done = err == 0;
    return err;
}

/* Lets bytes of the old buffer's head point to the same place in the new one. */
static void bytes_rebase(struct weir_bytes *bytes, const struct weir_http1_parser *parser,
                         const char *data)
{
    uintptr_t offset = (uintptr_t)bytes->data - (uintptr_t)parser->base;
    if (bytes->data && offset <= parser->head_size)
        bytes->data = data + offset; /* else it is the "/" of an empty path */
}

static void request_rebase(struct weir_http1_parser *parser, const char *data,
                           struct weir_http1_request *request)
{
    struct weir_bytes *const parts[] = {
        &request->method, &request->target, &request->path,         &request->query,
        &request->host,   &request->body,   &request->content_type, &request->idempotency_key};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        bytes_rebase(parts[i], parser, data);
    for (uint16_t i = 0; i < request->field_count; i++) {
        bytes_rebase(&request->fields[i].name, parser, data);
        bytes_rebase(&request->fields[i].value, parser, data);
    }
    parser->base = data;
}

static long body_parse(struct weir_http1_parser *parser, char *data, size_t size,
                       struct weir_http1_request *request)
{
    size_t ready = size - parser->head_size;
    if (!parser->body_chunked) {
        if (ready < parser->content_length)
            return 0;
        request->body.size = parser->content_length;
        return (long)(parser->head_size + parser->content_length);
    }
    int done = weir_chunked_decode(&parser->chunked, data + parser->head_size, ready,
                                   WEIR_HTTP1_BODY_MAX, &parser->problem);
    if (done < 0)
        return refuse(parser, done == WEIR_ERR_TOO_LARGE ? 413 : 400, parser->problem);
    request->body.size = done ? parser->chunked.size : 0;
    return done ? (long)(parser->head_size + parser->chunked.used) : 0;
}

long weir_http1_parse(struct weir_http1_parser *parser, char *data, size_t size,
                      struct weir_http1_request *request)
{
    long err = 0;
    if (parser->status != 0)
        return refuse(parser, parser->status, parser->problem);
    if (parser->head_size == 0) {
        err = head_scan(parser, data, size, request);
        if (err <= 0)
            return err;
        err = head_parse(parser, data, request);
    } else if (parser->base != data) {
        request_rebase(parser, data, request);
    }
    return err < 0 ? err : body_parse(parser, data, size, request);
}

struct weir_bytes weir_http1_field(const struct weir_http1_request *request, const char *name)
{
    size_t size = strlen(name);
    for (uint16_t i = 0; i < request->field_count; i++)
        if (request->fields[i].name.size == size && field_is(&request->fields[i], name))
            return request->fields[i].value;
    return (struct weir_bytes){0};
}
