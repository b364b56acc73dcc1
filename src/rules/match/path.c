/* SPDX-License-Identifier: Apache-2.0 */
/* see path.h */
#include "rules/match/path.h"

#include <stdio.h>
#include <string.h>

#include "core/text/hex.h"
#include "rules/problems.h"

/* What each byte of a path is (RFC 3986 pchar): p stands for itself, e has to be encoded, ; begins
 * parameters, ? ends the path, 0 is refused. */
static const char classes[256 + 1] = "0eeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
                                     "epe?p%pppppppp./ppppppppppp;epe?"
                                     "pppppppppppppppppppppppppppeeeep"
                                     "eppppppppppppppppppppppppppeeepe"
                                     "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
                                     "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
                                     "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
                                     "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

static char class_of(char byte)
{
    return classes[(unsigned char)byte];
}

static int refuse(struct weir_reason *reason, int err, const char *field, const char *what)
{
    if (reason)
        snprintf(reason->text, sizeof(reason->text), "%s: %s", field, what);
    return err;
}

static bool is_letter(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Cuts scheme and authority off "http://host/path"; data == NULL when it is no absolute form. */
static struct weir_bytes cut_authority(struct weir_bytes raw)
{
    size_t at = 0;
    while (at < raw.size &&
           (is_letter(raw.data[at]) || (at > 0 && (is_digit(raw.data[at]) || raw.data[at] == '+' ||
                                                   raw.data[at] == '-' || raw.data[at] == '.'))))
        at++;
    struct weir_bytes rest = {NULL, 0};
    if (at == 0 || raw.size - at < 3 || memcmp(raw.data + at, "://", 3) != 0)
        return rest;
    at += 3;
    while (at < raw.size && raw.data[at] != '/' && raw.data[at] != '?' && raw.data[at] != '#')
        at++;
    rest.data = raw.data + at;
    rest.size = raw.size - at;
    return rest;
}

/* Whether a byte of this class is a ";" that stands for itself. */
static bool keeps(char class, unsigned options)
{
    return class == ';' && (options & WEIR_PATH_KEEP_PARAMETERS) != 0;
}

static bool is_upper(char byte)
{
    return byte >= 'A' && byte <= 'Z';
}

static bool has_upper(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (is_upper(text[i]))
            return true;
    return false;
}

/* The length of the path if it is normal already, else SIZE_MAX. Any segment that begins with
 * a dot goes the long way. */
static size_t normal_size(struct weir_bytes raw, unsigned options)
{
    size_t at = 0, slash = SIZE_MAX; /* slash: behind the last one */
    for (; at < raw.size; at++) {
        char class = class_of(raw.data[at]);
        if (class == 'p')
            continue;
        if (class == '?')
            break;
        if (class == '.' || class == '/' ? slash == at : !keeps(class, options))
            return SIZE_MAX;
        if (class == '/')
            slash = at + 1;
    }
    return (options & WEIR_PATH_FOLD_CASE) != 0 && has_upper(raw.data, at) ? SIZE_MAX : at;
}

struct path_writer {
    char *out;
    size_t room, size;
    size_t segment; /* where the current segment begins, behind its slash */
    bool cut;       /* its parameters have begun */
    unsigned options;
};

static bool put(struct path_writer *writer, char byte)
{
    if (writer->size == writer->room)
        return false;
    writer->out[writer->size++] = byte;
    return true;
}

static bool put_encoded(struct path_writer *writer, unsigned char byte)
{
    static const char digits[] = "0123456789ABCDEF";
    return put(writer, '%') && put(writer, digits[byte >> 4]) && put(writer, digits[byte & 15]);
}

/* Ends the current segment at a slash or at the end: empty and dot segments vanish. */
static int end_segment(struct path_writer *writer, bool slash, struct weir_reason *reason)
{
    const char *text = writer->out + writer->segment;
    size_t size = writer->size - writer->segment;
    bool dots = (size == 1 && text[0] == '.') || (size == 2 && text[0] == '.' && text[1] == '.');
    if (writer->cut && (dots || (size == 0 && slash))) {
        return refuse(reason, WEIR_ERR_SYNTAX, "path",
                      dots ? "parameters (`;`) on a dot segment" : "a segment of parameters (`;`)");
    }
    if (dots && size == 1) {
        writer->size = writer->segment;
    } else if (dots) {
        writer->size = writer->segment;
        if (writer->size > 1) {
            writer->size--;
            while (writer->out[writer->size - 1] != '/')
                writer->size--;
        }
    } else if (size > 0 && slash && !put(writer, '/')) {
        return refuse(reason, WEIR_ERR_TOO_LARGE, "path", "too long");
    }
    if (slash) {
        writer->segment = writer->size;
        writer->cut = false;
    }
    return 0;
}

/* Writes what stands for the byte or the encoding at raw.data[*at] and steps over it. */
static int put_next(struct path_writer *writer, struct weir_bytes raw, size_t *at,
                    struct weir_reason *reason)
{
    char byte = raw.data[*at], class = class_of(byte);
    bool fits = true;
    *at += 1;
    if (class == '%') {
        int high = raw.size - *at >= 2 ? weir_hex_value(raw.data[*at]) : -1;
        int low = high >= 0 ? weir_hex_value(raw.data[*at + 1]) : -1;
        if (low < 0)
            return refuse(reason, WEIR_ERR_SYNTAX, "path", "a % without two hexadecimal digits");
        *at += 2;
        byte = (char)(high << 4 | low);
        bool unreserved =
            is_letter(byte) || is_digit(byte) || (byte != '\0' && strchr("-._~", byte));
        bool parameters = byte == ';' && (writer->options & WEIR_PATH_KEEP_PARAMETERS) == 0;
        class = byte == '\0' ? '0' : unreserved ? 'p' : parameters ? ';' : 'e';
    }
    if (class == '0')
        return refuse(reason, WEIR_ERR_SYNTAX, "path", "a NUL byte");
    if (class == '/')
        return end_segment(writer, true, reason);
    if (class == ';' && !keeps(class, writer->options)) {
        writer->cut = true;
    } else if (!writer->cut && class == 'e') {
        fits = put_encoded(writer, (unsigned char)byte);
    } else if (!writer->cut) {
        bool fold = is_upper(byte) && (writer->options & WEIR_PATH_FOLD_CASE) != 0;
        fits = put(writer, (char)(fold ? byte | 0x20 : byte));
    }
    return fits ? 0 : refuse(reason, WEIR_ERR_TOO_LARGE, "path", "too long");
}

/* A normal path with or without its trailing slash. */
static struct weir_bytes finish(const char *text, size_t size, unsigned options)
{
    bool drop = (options & WEIR_PATH_DROP_SLASH) != 0 && size > 1 && text[size - 1] == '/';
    return (struct weir_bytes){text, size - drop};
}

/* The long way, through `out`; raw begins with a slash. */
static int rewrite(struct weir_bytes *path, struct weir_bytes raw, unsigned options, char *out,
                   size_t room, struct weir_reason *reason)
{
    struct path_writer writer = {.out = out, .room = room, .options = options};
    if (!put(&writer, '/'))
        return refuse(reason, WEIR_ERR_TOO_LARGE, "path", "too long");
    writer.segment = 1;
    int err = 0;
    for (size_t at = 1; at < raw.size && class_of(raw.data[at]) != '?' && err == 0;)
        err = put_next(&writer, raw, &at, reason);
    if (err == 0)
        err = end_segment(&writer, false, reason);
    if (err == 0)
        *path = finish(out, writer.size, options);
    return err;
}

/* A path that does not begin with a slash: *raw is "*", or from its slash on. Errors:
 * WEIR_ERR_SYNTAX. */
static __attribute__((noinline)) int begin_elsewhere(struct weir_bytes *raw,
                                                     struct weir_reason *reason)
{
    static const char root[] = "/";
    if (raw->size > 0 && raw->data[0] != '?' && raw->data[0] != '#') {
        if (raw->size == 1 && raw->data[0] == '*')
            return 0;
        *raw = cut_authority(*raw);
        if (!raw->data)
            return refuse(reason, WEIR_ERR_SYNTAX, "path", "does not begin with /");
    }
    if (raw->size == 0 || raw->data[0] != '/')
        *raw = (struct weir_bytes){root, 1};
    return 0;
}

int weir_path_normalise(struct weir_bytes *path, struct weir_bytes raw, unsigned options, char *out,
                        size_t room, struct weir_reason *reason)
{
    if (raw.size == 0 || raw.data[0] != '/') {
        int err = begin_elsewhere(&raw, reason);
        if (err < 0)
            return err;
        if (raw.size == 1) {
            *path = raw;
            return 0;
        }
    }
    size_t size = normal_size(raw, options);
    if (size <= WEIR_PATH_MAX) {
        *path = finish(raw.data, size, options);
        return 0;
    }
    return rewrite(path, raw, options, out, room > WEIR_PATH_MAX ? WEIR_PATH_MAX : room, reason);
}
