/* SPDX-License-Identifier: Apache-2.0 */
/* The playground's reader of logs: the table of formats of `weir replay` (src/wire/log), for the
 * page.
 *
 * The page writes a line into `line` and asks for what it is: its envelope (line_unwrap), how well
 * it fits a format (line_fits), or its request (line_read), which `found` and `client` then
 * describe. All that a file needs beyond its lines is in reader.js.
 *
 * Compiled for wasm32 with the codecs. Memory: 0.3 MB, without allocation. Threads: one.
 */
#include <string.h>
#include <strings.h>

#include "wire/log/client.h"
#include "wire/log/envelope.h"
#include "wire/log/formats.h"

#define EXPORT(symbol) __attribute__((export_name(#symbol), used))

#define LINE_MAX 131072 /* of a file that a browser opens; a longer one is malformed */

static char line[LINE_MAX];
static struct weir_log_room room;
static struct weir_log_clients clients;

/* Word for word what the page reads. */
static struct {
    uint64_t t_ns, written_ns, cost, whole_second, at, size, is_error, goes_on;
} found;
static struct {
    uint32_t size;
    char text[256];
} client;

EXPORT(line_max) uint32_t line_max(void)
{
    return LINE_MAX;
}

EXPORT(memory_of_line) void *memory_of_line(void)
{
    return line;
}

EXPORT(memory_of_found) void *memory_of_found(void)
{
    return &found;
}

EXPORT(memory_of_client) void *memory_of_client(void)
{
    return &client;
}

EXPORT(format_count) int32_t format_count(void)
{
    return WEIR_LOG_FORMATS;
}

EXPORT(format_name) const char *format_name(int32_t format)
{
    return weir_log_row((enum weir_log_format)format)->name;
}

/* The best row of points, one word for each format; -1: none. */
EXPORT(format_best) int32_t format_best(const uint32_t *points)
{
    return weir_log_best(points);
}

EXPORT(envelope_name) const char *envelope_name(int32_t envelope)
{
    return weir_log_envelope_name((enum weir_log_envelope)envelope);
}

/* Takes the envelope off a line of `size` bytes: found.at and so on. 0: it has none of this kind.
 */
EXPORT(line_unwrap) int32_t line_unwrap(int32_t envelope, uint32_t size)
{
    struct weir_log_piece piece;
    if (!weir_log_unwrap((enum weir_log_envelope)envelope, line, size, &piece))
        return 0;
    found.at = (uint64_t)(piece.text - line);
    found.size = piece.size;
    found.is_error = piece.is_error;
    found.goes_on = piece.goes_on;
    return 1;
}

EXPORT(line_fits) uint32_t line_fits(int32_t format, uint32_t size)
{
    return weir_log_fits((enum weir_log_format)format, line, size, &room);
}

static void put_client(struct weir_bytes text)
{
    client.size = (uint32_t)(text.size < sizeof client.text ? text.size : sizeof client.text);
    memcpy(client.text, text.data, client.size);
}

/* The client of a line of weir's own: its address, or its user. */
static void take_check(const struct weir_check_json *check)
{
    struct weir_bytes who = check->ip;
    found.cost = check->cost;
    for (uint16_t i = 0; !who.data && i < check->attribute_count; i++)
        if (check->attributes[i].name.size == 4 &&
            memcmp(check->attributes[i].name.data, "user", 4) == 0)
            who = check->attributes[i].value;
    put_client(who.data ? who : (struct weir_bytes){"-", 1});
}

static int take_log(const struct weir_log_record *record, struct weir_reason *reason)
{
    struct weir_address address;
    struct weir_bytes name;
    char text[WEIR_ADDRESS_TEXT_MAX];
    clients.trusted = weir_log_private_proxies;
    found.cost = 1;
    int error = weir_log_client_read(&clients, record, &address, &name, reason);
    if (error < 0)
        return error;
    if (!name.data)
        name = (struct weir_bytes){text, weir_address_format(&address, text)};
    put_client(name.size > 0 ? name : (struct weir_bytes){"-", 1});
    return 0;
}

/* Reads a request. 0, 1: no request and no fault, or a negative error. */
EXPORT(line_read) int32_t line_read(int32_t format, uint32_t size)
{
    struct weir_log_record record;
    struct weir_reason reason;
    int got = weir_log_parse((enum weir_log_format)format, &record, line, size, &room, &reason);
    if (got != 0)
        return got;
    found.t_ns = record.t_ns;
    found.written_ns = record.written_ns;
    found.whole_second = record.whole_second;
    if (!record.check)
        return take_log(&record, &reason);
    take_check(record.check);
    return 0;
}

/* --- libc ------------------------------------------------------------------------------------- */

void *memchr(const void *block, int byte, size_t size)
{
    const unsigned char *at = block;
    for (; size > 0; at++, size--)
        if (*at == (unsigned char)byte)
            return (void *)(uintptr_t)at;
    return NULL;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *one = a, *other = b;
    for (; size > 0; one++, other++, size--)
        if (*one != *other)
            return *one - *other;
    return 0;
}

char *strchr(const char *text, int wanted)
{
    for (;; text++) {
        if (*text == (char)wanted)
            return (char *)(uintptr_t)text;
        if (*text == '\0')
            return NULL;
    }
}

size_t strlen(const char *text)
{
    size_t size = 0;
    while (text[size] != '\0')
        size++;
    return size;
}

void *memcpy(void *to, const void *from, size_t size)
{
    return memmove(to, from, size);
}

void *memmove(void *to, const void *from, size_t size)
{
    __builtin_memmove(to, from, size); /* one instruction: -mbulk-memory */
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    __builtin_memset(to, byte, size); /* likewise */
    return to;
}

/* What the compiler calls for products that overflow 64 bits. */
__int128 __multi3(__int128 a, __int128 b);
__int128 __multi3(__int128 a, __int128 b)
{
    const uint64_t low = 0xffffffff;
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    uint64_t middle = (x >> 32) * (y & low) + ((x & low) * (y & low) >> 32);
    uint64_t other = (x & low) * (y >> 32) + (middle & low);
    uint64_t high = (x >> 32) * (y >> 32) + (middle >> 32) + (other >> 32);
    high += (uint64_t)(a >> 64) * y + x * (uint64_t)(b >> 64);
    return (__int128)((unsigned __int128)high << 64 | (unsigned __int128)(x * y));
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : (unsigned char)c;
}

int strncasecmp(const char *a, const char *b, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (lower(a[i]) != lower(b[i]) || a[i] == '\0')
            return lower(a[i]) - lower(b[i]);
    return 0;
}
