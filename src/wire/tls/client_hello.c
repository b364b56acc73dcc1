/* SPDX-License-Identifier: Apache-2.0 */
/* see client_hello.h */
#include "wire/tls/client_hello.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"

enum extension {
    SERVER_NAME = 0,
    SIGNATURE_ALGORITHMS = 13,
    ALPN = 16,
    SUPPORTED_VERSIONS = 43,
};

#define RANDOM_SIZE 32
#define SESSION_ID_MAX 32
#define SHOWN_MAX 99 /* of a count of two digits */
#define HASH_DIGITS 12

/* --- Reading ---------------------------------------------------------------------------------- */

/* What is left of a part of the message; `broken` for good once something was not there. */
struct part {
    const uint8_t *at;
    size_t size;
    bool broken;
};

static struct part take(struct part *from, size_t size)
{
    struct part taken = {from->at, size, false};
    if (from->broken || size > from->size) {
        from->broken = true;
        return (struct part){NULL, 0, true};
    }
    from->at += size;
    from->size -= size;
    return taken;
}

static size_t take_number(struct part *from, size_t bytes)
{
    struct part taken = take(from, bytes);
    size_t number = 0;
    for (size_t i = 0; i < taken.size; i++)
        number = number << 8 | taken.at[i];
    return number;
}

/* What has its size before it, in so many bytes. */
static struct part take_sized(struct part *from, size_t bytes)
{
    return take(from, take_number(from, bytes));
}

/* RFC 8701: 0x0a0a, 0x1a1a, …, 0xfafa. */
static bool is_grease(size_t value)
{
    return (value & 0x0f0f) == 0x0a0a && value >> 8 == (value & 0xff);
}

static int list_add(struct weir_hello_list *list, size_t value)
{
    if (is_grease(value))
        return 0;
    if (list->count == WEIR_HELLO_VALUES_MAX)
        return WEIR_ERR_TOO_LARGE;
    list->values[list->count++] = (uint16_t)value;
    return 0;
}

static int list_take(struct weir_hello_list *list, struct part *from)
{
    while (from->size > 0 && !from->broken) {
        size_t value = take_number(from, 2);
        int err = from->broken ? WEIR_ERR_SYNTAX : list_add(list, value);
        if (err < 0)
            return err;
    }
    return from->broken ? WEIR_ERR_SYNTAX : 0;
}

static int take_versions(struct weir_client_hello *hello, struct part *data)
{
    struct part versions = take_sized(data, 1);
    uint16_t highest = 0;
    while (versions.size > 0 && !versions.broken) {
        size_t version = take_number(&versions, 2);
        if (!versions.broken && !is_grease(version) && version > highest)
            highest = (uint16_t)version;
    }
    if (highest > 0)
        hello->version = highest;
    return versions.broken ? WEIR_ERR_SYNTAX : 0;
}

static int take_alpn(struct weir_client_hello *hello, struct part *data)
{
    struct part names = take_sized(data, 2);
    struct part first = take_sized(&names, 1);
    hello->alpn = (struct weir_bytes){(const char *)first.at, first.size};
    return first.broken ? WEIR_ERR_SYNTAX : 0;
}

static int take_extension(struct weir_client_hello *hello, size_t type, struct part *data)
{
    struct part list;
    switch (type) {
    case SERVER_NAME:
        hello->has_server_name = true;
        return 0;
    case SIGNATURE_ALGORITHMS:
        list = take_sized(data, 2);
        return list_take(&hello->signatures, &list);
    case ALPN:
        return take_alpn(hello, data);
    case SUPPORTED_VERSIONS:
        return take_versions(hello, data);
    default:
        return 0;
    }
}

static int take_extensions(struct weir_client_hello *hello, struct part *extensions)
{
    while (extensions->size > 0 && !extensions->broken) {
        size_t type = take_number(extensions, 2);
        struct part data = take_sized(extensions, 2);
        int err = data.broken ? WEIR_ERR_SYNTAX : list_add(&hello->extensions, type);
        if (err == 0)
            err = take_extension(hello, type, &data);
        if (err < 0)
            return err;
    }
    return extensions->broken ? WEIR_ERR_SYNTAX : 0;
}

int weir_client_hello_parse(struct weir_client_hello *hello, const uint8_t *data, size_t size)
{
    struct part message = {data, size, false};
    hello->has_server_name = false;
    hello->alpn = (struct weir_bytes){NULL, 0};
    hello->ciphers.count = hello->extensions.count = hello->signatures.count = 0;
    hello->version = (uint16_t)take_number(&message, 2);
    take(&message, RANDOM_SIZE);
    struct part session_id = take_sized(&message, 1);
    struct part ciphers = take_sized(&message, 2);
    struct part compression = take_sized(&message, 1);
    if (compression.broken || session_id.size > SESSION_ID_MAX)
        return WEIR_ERR_SYNTAX;
    int err = list_take(&hello->ciphers, &ciphers);
    if (err < 0 || message.size == 0) /* clients of old have no extensions */
        return err;
    struct part extensions = take_sized(&message, 2);
    if (extensions.broken || message.size > 0)
        return WEIR_ERR_SYNTAX;
    return take_extensions(hello, &extensions);
}

/* --- JA4 -------------------------------------------------------------------------------------- */

static const char *version_text(uint16_t version)
{
    switch (version) {
    case 0x0304:
        return "13";
    case 0x0303:
        return "12";
    case 0x0302:
        return "11";
    case 0x0301:
        return "10";
    case 0x0300:
        return "s3";
    case 0x0002:
        return "s2";
    default:
        return "00";
    }
}

static bool is_alphanumeric(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z');
}

/* The first and the last character of the ALPN. */
static void write_alpn(struct weir_bytes alpn, char out[2])
{
    memcpy(out, "00", 2);
    if (alpn.size == 0)
        return;
    unsigned char first = (unsigned char)alpn.data[0],
                  last = (unsigned char)alpn.data[alpn.size - 1];
    if (alpn.size == 2 && is_grease((size_t)first << 8 | last))
        return;
    if (is_alphanumeric((char)first) && is_alphanumeric((char)last)) {
        out[0] = (char)first;
        out[1] = (char)last;
    } else {
        out[0] = weir_hex_digit(first >> 4);
        out[1] = weir_hex_digit(last);
    }
}

static int by_value(const void *a, const void *b)
{
    uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    return (x > y) - (x < y);
}

static void list_sort(struct weir_hello_list *list)
{
    qsort(list->values, list->count, sizeof list->values[0], by_value);
}

/* "002f,0035": what is hashed. */
static size_t list_write(const struct weir_hello_list *list, char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (i > 0)
            out[size++] = ',';
        for (int shift = 12; shift >= 0; shift -= 4)
            out[size++] = weir_hex_digit((uint64_t)(list->values[i] >> shift));
    }
    return size;
}

static void write_hash(const char *text, size_t size, char out[HASH_DIGITS])
{
    uint8_t digest[SHA256_DIGEST_LENGTH] = {0};
    if (size > 0)
        SHA256((const unsigned char *)text, size, digest); /* else all zeros */
    (void)weir_hex_write(out, digest, HASH_DIGITS / 2);
}

/* All extensions but SNI and ALPN, which say where the client goes and not what it is. */
static void write_extensions(struct weir_client_hello *hello, char out[HASH_DIGITS])
{
    char text[2 * 5 * WEIR_HELLO_VALUES_MAX];
    struct weir_hello_list *list = &hello->extensions;
    size_t kept = 0, all = list->count;
    for (size_t i = 0; i < all; i++)
        if (list->values[i] != SERVER_NAME && list->values[i] != ALPN)
            list->values[kept++] = list->values[i];
    list->count = kept;
    list_sort(list);
    size_t size = list_write(list, text);
    if (hello->signatures.count > 0 && all > 0) {
        text[size++] = '_';
        size += list_write(&hello->signatures, text + size);
    }
    write_hash(text, size, out);
}

static unsigned shown(size_t count)
{
    return count < SHOWN_MAX ? (unsigned)count : SHOWN_MAX;
}

void weir_client_hello_ja4(struct weir_client_hello *hello, char ja4[WEIR_JA4_SIZE + 1])
{
    char text[5 * WEIR_HELLO_VALUES_MAX];
    snprintf(ja4, WEIR_JA4_SIZE + 1, "t%s%c%02u%02u..", version_text(hello->version),
             hello->has_server_name ? 'd' : 'i', shown(hello->ciphers.count),
             shown(hello->extensions.count));
    write_alpn(hello->alpn, ja4 + 8);
    ja4[10] = ja4[23] = '_';
    list_sort(&hello->ciphers);
    write_hash(text, list_write(&hello->ciphers, text), ja4 + 11);
    write_extensions(hello, ja4 + 24);
    ja4[WEIR_JA4_SIZE] = '\0';
}
