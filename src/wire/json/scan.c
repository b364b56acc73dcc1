/* SPDX-License-Identifier: Apache-2.0 */
/* See scan.h. */
#include "wire/json/scan.h"

#include <stdio.h>
#include <string.h>

#include "core/text/hex.h"
#include "core/text/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define NS_PER_S UINT64_C(1000000000)
#define NS_DECIMALS 9
#define NAME_SHOWN 32           /* bytes of a name that a message repeats */
#define EXPONENT_END 1000000000 /* a text is not long enough to make up for it */
/* Whole seconds, a power of ten that divides: limit.h says that times are below 2^62 ns. */
#define TIME_END_NS ((UINT64_C(1) << 62) / NS_PER_S * NS_PER_S)

int json_scan_fail(const struct json_scan *scan, int err, const char *at, const char *what)
{
    if (scan->reason) {
        char element[32] = "";
        if (scan->index >= 0)
            snprintf(element, sizeof element, "%.8s[%d]%s", scan->list ? scan->list : "",
                     (int)scan->index, scan->field ? "." : ": ");
        snprintf(scan->reason->text, sizeof scan->reason->text, "%s%s%s%s, at byte %zu", element,
                 scan->field ? scan->field : "", scan->field ? ": " : "", what,
                 (size_t)(at - scan->text));
    }
    return err;
}

int json_scan_fail_name(const struct json_scan *scan, int err, const char *at, const char *what,
                        struct weir_bytes name)
{
    char shown[NAME_SHOWN + 1], text[NAME_SHOWN + 64];
    size_t size = name.size < NAME_SHOWN ? name.size : NAME_SHOWN;
    for (size_t i = 0; i < size; i++) {
        bool printable = name.data[i] >= 0x20 && name.data[i] < 0x7f;
        shown[i] = printable ? name.data[i] : '?';
    }
    shown[size] = '\0';
    snprintf(text, sizeof text, "%s \"%s%s\"", what, shown, name.size > size ? "..." : "");
    return json_scan_fail(scan, err, at, text);
}

static int syntax(const struct json_scan *scan, const char *at, const char *what)
{
    return json_scan_fail(scan, WEIR_ERR_SYNTAX, at, what);
}

char json_scan_peek_far(struct json_scan *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
        scan->at++;
    return scan->at < scan->end ? *scan->at : '\0';
}

/* The four digits after \u; -1 when they are not. */
static int32_t unit_read(const char *at, const char *end)
{
    int32_t unit = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = weir_hex_value(at[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* Reads what follows \u at *at, one unit or a pair of surrogates (RFC 8259 section 7). Returns the
 * character, -1 when it is none, or 0, which no string may hold. */
static int32_t character_read(char **at, const char *end)
{
    int32_t unit = unit_read(*at, end);
    if (unit < 0 || (unit & 0xfc00) == 0xdc00)
        return -1;
    *at += 4;
    if ((unit & 0xfc00) != 0xd800)
        return unit;
    if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return -1;
    int32_t low = unit_read(*at + 2, end);
    if ((low & 0xfc00) != 0xdc00 || low < 0)
        return -1;
    *at += 6;
    return 0x10000 + ((unit & 0x3ff) << 10 | (low & 0x3ff));
}

/* At most four bytes, for at least six of text: it never overtakes what is being read. */
static char *character_write(char *out, int32_t code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *out++ = (char)(0xe0 | code >> 12);
        } else {
            *out++ = (char)(0xf0 | code >> 18);
            *out++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (code & 0x3f));
    return out;
}

/* Unescapes what follows a backslash at *at. Returns where the text continues, NULL for no escape.
 */
static char *escape_read(char **at, const char *end, char *out)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *letter = *at < end && **at != '\0' ? strchr(letters, **at) : NULL;
    if (letter) {
        (*at)++;
        *out++ = values[letter - letters];
        return out;
    }
    if (*at == end || **at != 'u')
        return NULL;
    (*at)++;
    int32_t code = character_read(at, end);
    return code <= 0 ? NULL : character_write(out, code);
}

static bool is_plain(char c)
{
    return (signed char)c >= 0x20 && c != '"' && c != '\\';
}

/* The first byte of [at, end) that is not plain, or `end`. */
static char *plain_end(char *at, char *end, const char *text)
{
#ifdef __SSE2__
    const __m128i space = _mm_set1_epi8(0x20), quote = _mm_set1_epi8('"'),
                  backslash = _mm_set1_epi8('\\');
    while (at < end && end - text >= 16) {
        ptrdiff_t back = end - at < 16 ? 16 - (end - at) : 0; /* the text's last 16 bytes */
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(at - back));
        __m128i other = _mm_cmplt_epi8(bytes, space); /* signed: those above 0x7f are below 0 */
        other = _mm_or_si128(
            other, _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)));
        unsigned mask = (unsigned)_mm_movemask_epi8(other) >> back;
        if (mask != 0)
            return at + __builtin_ctz(mask);
        at += 16 - back;
    }
#endif
    while (at < end && is_plain(*at))
        at++;
    return at;
}

/* The rest of a string that starts at `start`, from a byte on that is not plain. */
static __attribute__((noinline)) int string_rest(struct json_scan *scan, char *start, char *at,
                                                 struct weir_bytes *value)
{
    char *out = at;
    while (at < scan->end && *at != '"') {
        if (is_plain(*at)) {
            *out++ = *at++;
        } else if (*at == '\\') {
            char *escape = at++;
            out = escape_read(&at, scan->end, out);
            if (!out)
                return syntax(scan, escape, "invalid escape in a string");
        } else if ((unsigned char)*at < 0x20) {
            return syntax(scan, at, "a control character in a string");
        } else {
            size_t size = weir_utf8_size(at, (size_t)(scan->end - at));
            if (size == 0)
                return syntax(scan, at, "invalid UTF-8 in a string");
            memmove(out, at, size);
            out += size;
            at += size;
        }
    }
    if (at == scan->end)
        return syntax(scan, at, "unterminated string");
    *value = (struct weir_bytes){start, (size_t)(out - start)};
    scan->at = at + 1;
    return 0;
}

/* A string whose quote is at scan->at. */
static inline int string_read(struct json_scan *scan, struct weir_bytes *value)
{
    char *start = scan->at + 1, *at = plain_end(start, scan->end, scan->text);
    if (__builtin_expect(at == scan->end || *at != '"', 0))
        return string_rest(scan, start, at, value);
    *value = (struct weir_bytes){start, (size_t)(at - start)};
    scan->at = at + 1;
    return 0;
}

int json_scan_string(struct json_scan *scan, struct weir_bytes *value)
{
    if (json_scan_peek(scan) != '"')
        return syntax(scan, scan->at, "not a string");
    return string_read(scan, value);
}

/* Whether the text continues with a word, which it then takes. */
static bool word_take(struct json_scan *scan, const char *word, size_t size)
{
    if ((size_t)(scan->end - scan->at) < size || memcmp(scan->at, word, size) != 0)
        return false;
    scan->at += size;
    return true;
}

int json_scan_bool(struct json_scan *scan, bool *value)
{
    (void)json_scan_peek(scan);
    *value = word_take(scan, "true", 4);
    if (!*value && !word_take(scan, "false", 5))
        return syntax(scan, scan->at, "not a boolean");
    return 0;
}

/* The end of a JSON integer without sign at `at`; `at` itself when there is none, or when it goes
 * on as another kind of number. */
static const char *integer_end(const char *at, const char *end)
{
    const char *start = at;
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    bool leading_zero = at - start > 1 && *start == '0';
    bool goes_on = at < end && (*at == '.' || *at == 'e' || *at == 'E');
    return leading_zero || goes_on ? start : at;
}

int json_scan_unsigned(struct json_scan *scan, uint64_t *value)
{
    (void)json_scan_peek(scan);
    const char *end = integer_end(scan->at, scan->end);
    if (end == scan->at)
        return syntax(scan, scan->at, "not an unsigned integer");
    uint64_t n = 0;
    for (const char *at = scan->at; at < end; at++) {
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*at - '0'), &n)) {
            return json_scan_fail(scan, WEIR_ERR_RANGE, scan->at,
                                  "larger than 18446744073709551615");
        }
    }
    *value = n;
    scan->at += end - scan->at;
    return 0;
}

/* [ "e" [sign] digits ], as far as `end`; saturates, far beyond what can matter. */
static bool exponent_read(const char *at, const char *end, int64_t *exponent)
{
    *exponent = 0;
    if (at == end)
        return true;
    if (*at != 'e' && *at != 'E')
        return false;
    at++;
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    const char *digits = at;
    for (; at < end && *at >= '0' && *at <= '9'; at++)
        *exponent = *exponent < EXPONENT_END ? *exponent * 10 + (*at - '0') : EXPONENT_END;
    *exponent = negative ? -*exponent : *exponent;
    return at > digits && at == end;
}

/* The digits of [at, end), perhaps with a point among them, of which the first counts so many
 * 10^power ns. What is below a nanosecond is cut off. Returns false beyond the range. */
static bool nanoseconds_of(const char *at, const char *end, int64_t power, uint64_t *ns)
{
    uint64_t n = 0;
    for (; power >= 0 && (at < end || n > 0); power--) {
        at += at < end && *at == '.';
        uint64_t digit = at < end ? (uint64_t)(*at++ - '0') : 0;
        if (n >= TIME_END_NS / 10)
            return false; /* and another digit follows */
        n = n * 10 + digit;
    }
    *ns = n;
    return n < TIME_END_NS;
}

/* A number without sign, split. */
struct number {
    const char *start, *end; /* its digits, perhaps with a point among them */
    int64_t power;           /* the first digit counts 10^power */
};

/* digits [ "." digits ] [ "e" [sign] digits ], all of [at, end). */
static bool number_split(const char *at, const char *end, struct number *number)
{
    int64_t exponent;
    number->start = at;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
    }
    int64_t whole = at - number->start;
    if (whole == 0 || (whole > 1 && *number->start == '0'))
        return false;
    if (at < end && *at == '.') {
        const char *point = at++;
        for (; at < end && *at >= '0' && *at <= '9'; at++) {
        }
        if (at == point + 1)
            return false;
    }
    number->end = at;
    bool good = exponent_read(at, end, &exponent);
    number->power = whole - 1 + exponent;
    return good;
}

/* The text of a number, or of a string, which is unescaped. */
static int number_text(struct json_scan *scan, struct weir_bytes *text)
{
    if (json_scan_peek(scan) == '"')
        return json_scan_string(scan, text);
    char *start = scan->at;
    while (scan->at < scan->end &&
           ((*scan->at >= '0' && *scan->at <= '9') || *scan->at == '.' || *scan->at == '-' ||
            *scan->at == '+' || *scan->at == 'e' || *scan->at == 'E'))
        scan->at++;
    *text = (struct weir_bytes){start, (size_t)(scan->at - start)};
    return 0;
}

int json_scan_seconds(struct json_scan *scan, uint64_t *ns)
{
    struct weir_bytes text = {scan->at, 0};
    struct number number;
    (void)json_scan_peek(scan);
    const char *start = scan->at;
    int err = number_text(scan, &text);
    if (err < 0)
        return err;
    if (!number_split(text.data, text.data + text.size, &number))
        return syntax(scan, start, "not seconds since the epoch, as in 1700000000.123456789");
    if (!nanoseconds_of(number.start, number.end, number.power + NS_DECIMALS, ns))
        return json_scan_fail(scan, WEIR_ERR_RANGE, start, "beyond the year 2116");
    return 0;
}

/* Errors: WEIR_ERR_SYNTAX (a fraction is left), WEIR_ERR_RANGE. */
static int integer_of(const struct number *number, uint64_t *value)
{
    int64_t power = number->power;
    uint64_t n = 0;
    for (const char *at = number->start; at < number->end || (power >= 0 && n > 0); power--) {
        at += at < number->end && *at == '.';
        uint64_t digit = at < number->end ? (uint64_t)(*at++ - '0') : 0;
        if (power < 0 && digit > 0)
            return WEIR_ERR_SYNTAX;
        if (power >= 0 &&
            (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n)))
            return WEIR_ERR_RANGE;
    }
    *value = n;
    return 0;
}

int json_scan_integer(struct json_scan *scan, uint64_t *value)
{
    struct weir_bytes text = {scan->at, 0};
    struct number number;
    (void)json_scan_peek(scan);
    const char *start = scan->at;
    int err = number_text(scan, &text);
    if (err < 0)
        return err;
    bool negative = text.size > 0 && text.data[0] == '-';
    bool good = number_split(text.data + negative, text.data + text.size, &number);
    err = good ? integer_of(&number, value) : WEIR_ERR_SYNTAX;
    if (err == WEIR_ERR_RANGE)
        return json_scan_fail(scan, err, start, "larger than 18446744073709551615");
    if (err < 0 || (negative && *value > 0))
        return syntax(scan, start, "not an unsigned integer");
    return 0;
}

int json_scan_scalar(struct json_scan *scan, struct weir_bytes *value)
{
    char first = json_scan_peek(scan);
    char *start = scan->at;

    if (first == '"')
        return string_read(scan, value);
    if (!word_take(scan, "true", 4) && !word_take(scan, "false", 5)) {
        const char *digits = start + (first == '-');
        const char *end = integer_end(digits, scan->end);
        if (end == digits)
            return syntax(scan, start, "not a string, an integer or a boolean");
        scan->at += end - start;
    }
    *value = (struct weir_bytes){start, (size_t)(scan->at - start)};
    return 0;
}

/* Moves behind a string whose quote is at scan->at. */
static bool string_skip(struct json_scan *scan)
{
    for (scan->at++; scan->at < scan->end; scan->at++) {
        if (*scan->at == '"') {
            scan->at++;
            return true;
        }
        if (*scan->at == '\\' && ++scan->at == scan->end)
            return false;
    }
    return false;
}

/* Moves behind a number or a word. */
static bool word_skip(struct json_scan *scan)
{
    char *start = scan->at;
    while (scan->at < scan->end && !memchr(",]} \t\r\n", *scan->at, 7))
        scan->at++;
    return scan->at > start;
}

int json_scan_skip(struct json_scan *scan)
{
    size_t depth = 0;
    do {
        char next = json_scan_peek(scan);
        bool good = scan->at < scan->end;
        if (next == '"') {
            good = string_skip(scan);
        } else if (next == '{' || next == '[') {
            depth++;
            scan->at++;
        } else if (depth > 0 && (next == '}' || next == ']')) {
            depth--;
            scan->at++;
        } else if (depth > 0 && (next == ',' || next == ':')) {
            scan->at++;
        } else if (good) {
            good = word_skip(scan);
        }
        if (!good)
            return syntax(scan, scan->at, "not a value");
    } while (depth > 0);
    return 0;
}

int json_scan_array(struct json_scan *scan)
{
    if (json_scan_peek(scan) != '[')
        return syntax(scan, scan->at, "not a list");
    scan->at++;
    return 0;
}

int json_scan_element(struct json_scan *scan, uint32_t count)
{
    char next = json_scan_peek(scan);
    if (next == ']') {
        scan->at++;
        return 0;
    }
    if (count > 0 && next != ',')
        return syntax(scan, scan->at, "missing comma or closing bracket");
    scan->at += count > 0;
    return 1;
}

int json_scan_object(struct json_scan *scan)
{
    if (json_scan_peek(scan) != '{')
        return syntax(scan, scan->at, "not an object");
    scan->at++;
    return 0;
}

int json_scan_member(struct json_scan *scan, uint32_t count, struct weir_bytes *name)
{
    char next = json_scan_peek(scan);
    if (next == '}') {
        scan->at++;
        return 0;
    }
    if (count > 0) {
        if (next != ',')
            return syntax(scan, scan->at, "missing comma or closing brace");
        scan->at++;
        next = json_scan_peek(scan);
    }
    if (next != '"')
        return syntax(scan, scan->at, "missing name of a member");
    int err = string_read(scan, name);
    if (err < 0)
        return err;
    if (json_scan_peek(scan) != ':')
        return syntax(scan, scan->at, "missing colon");
    scan->at++;
    return 1;
}

int json_scan_end(struct json_scan *scan)
{
    (void)json_scan_peek(scan);
    return scan->at < scan->end ? syntax(scan, scan->at, "unexpected text after the end") : 0;
}
