/* SPDX-License-Identifier: Apache-2.0 */
/* see request.h */
#include "cli/bench/request.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/hex.h"
#include "wire/decimal.h"

static const struct {
    const char *name, *value; /* what key 0 is */
    enum bench_hole_kind kind;
} placeholders[] = {
    {"{key}", "000000000000", BENCH_HOLE_KEY},
    {"{ip}", "2001:db8:0000:0000::1", BENCH_HOLE_IP},
};
#define IP_DIGITS_AT 9 /* of the first of two groups of four */

static void patch_key(char *at, uint64_t key)
{
    for (int i = BENCH_KEY_DIGITS - 2; i >= 0; i -= 2) {
        memcpy(at + i, weir_decimal_pairs + key % 100 * 2, 2);
        key /= 100;
    }
}

static void patch_ip(char *at, uint64_t key)
{
    for (int i = 7; i >= 0; i--) {
        at[IP_DIGITS_AT + i + (i >= 4)] = weir_hex_digit(key);
        key >>= 4;
    }
}

void bench_request_patch(const struct bench_request *request, char *copy, uint64_t key)
{
    for (unsigned i = 0; i < request->hole_count; i++)
        if (request->holes[i].kind == BENCH_HOLE_KEY)
            patch_key(copy + request->holes[i].at, key);
        else
            patch_ip(copy + request->holes[i].at, key);
}

static int append(struct bench_request *request, const char *text, size_t size)
{
    if (size > BENCH_REQUEST_MAX - request->size)
        return WEIR_ERR_TOO_LARGE;
    memcpy(request->text + request->size, text, size);
    request->size += size;
    return 0;
}

static int append_number(struct bench_request *request, const char *before, size_t number)
{
    char text[64];
    int size = snprintf(text, sizeof text, "%s%zu\r\n", before, number);
    return append(request, text, (size_t)size);
}

/* Which placeholder a text starts with; -1 for none. */
static int placeholder_at(const char *text, size_t size)
{
    for (int i = 0; i < (int)(sizeof placeholders / sizeof placeholders[0]); i++) {
        size_t length = strlen(placeholders[i].name);
        if (length <= size && memcmp(text, placeholders[i].name, length) == 0)
            return i;
    }
    return -1;
}

/* The size of a text once its placeholders are filled. */
static size_t filled_size(const char *text, size_t size)
{
    size_t filled = 0;
    while (size > 0) {
        int found = placeholder_at(text, size);
        size_t step = found < 0 ? 1 : strlen(placeholders[found].name);
        filled += found < 0 ? 1 : strlen(placeholders[found].value);
        text += step;
        size -= step;
    }
    return filled;
}

static int append_filled(struct bench_request *request, const char *text, size_t size)
{
    int error = 0;
    while (size > 0 && error == 0) {
        int found = placeholder_at(text, size);
        size_t step = 1;
        if (found < 0) {
            error = append(request, text, 1);
        } else {
            if (request->hole_count == BENCH_HOLES_MAX)
                return WEIR_ERR_TOO_LARGE;
            request->holes[request->hole_count++] =
                (struct bench_hole){(uint32_t)request->size, placeholders[found].kind};
            error = append(request, placeholders[found].value, strlen(placeholders[found].value));
            step = strlen(placeholders[found].name);
        }
        text += step;
        size -= step;
    }
    return error;
}

/* The next argument of a command line. Returns whether there is one; *size is SIZE_MAX when its
 * quote is not closed. */
static bool argument_next(const char **line, const char **argument, size_t *size)
{
    const char *at = *line + strspn(*line, " \t");
    if (*at == '\0')
        return false;
    if (*at == '"' || *at == '\'') {
        const char *end = strchr(at + 1, *at);
        *argument = at + 1;
        *size = end ? (size_t)(end - at - 1) : SIZE_MAX;
        *line = end ? end + 1 : at;
    } else {
        *argument = at;
        *size = strcspn(at, " \t");
        *line = at + *size;
    }
    return true;
}

/* Counts the arguments. Errors: WEIR_ERR_SYNTAX. */
static int arguments_count(const char *line, size_t *count)
{
    const char *argument;
    size_t size;
    *count = 0;
    while (argument_next(&line, &argument, &size)) {
        if (size == SIZE_MAX)
            return WEIR_ERR_SYNTAX;
        (*count)++;
    }
    return *count > 0 ? 0 : WEIR_ERR_SYNTAX;
}

static int request_open(struct bench_request *request)
{
    *request = (struct bench_request){.text = malloc(BENCH_REQUEST_MAX)};
    return request->text ? 0 : WEIR_ERR_MEMORY;
}

int bench_request_resp(struct bench_request *request, const char *line)
{
    size_t count, size;
    const char *argument;
    int error = request_open(request);
    if (error == 0)
        error = arguments_count(line, &count);
    if (error == 0)
        error = append_number(request, "*", count);
    while (error == 0 && argument_next(&line, &argument, &size)) {
        error = append_number(request, "$", filled_size(argument, size));
        if (error == 0)
            error = append_filled(request, argument, size);
        if (error == 0)
            error = append(request, "\r\n", 2);
    }
    if (error < 0)
        bench_request_free(request);
    return error;
}

/* One line of a head: refuses what would make it two. */
static int append_line(struct bench_request *request, const char *line, const char *after)
{
    if (strpbrk(line, "\r\n"))
        return WEIR_ERR_SYNTAX;
    int error = append_filled(request, line, strlen(line));
    return error < 0 ? error : append(request, after, strlen(after));
}

static int append_head(struct bench_request *request, const char *host, const char *start,
                       const char *const *headers, size_t count)
{
    const char *space = strchr(start, ' ');
    if (!space || space == start || space[1] != '/' || strchr(space + 1, ' '))
        return WEIR_ERR_SYNTAX;
    int error = append_line(request, start, " HTTP/1.1\r\nHost: ");
    if (error == 0)
        error = append_line(request, host, "\r\n");
    for (size_t i = 0; i < count && error == 0; i++)
        error = append_line(request, headers[i], "\r\n");
    return error;
}

int bench_request_http(struct bench_request *request, const char *host, const char *start,
                       const char *const *headers, size_t count, const char *body)
{
    int error = request_open(request);
    if (error == 0)
        error = append_head(request, host, start, headers, count);
    if (error == 0 && body)
        error = append_number(request, "Content-Length: ", filled_size(body, strlen(body)));
    if (error == 0)
        error = append(request, "\r\n", 2);
    if (error == 0 && body)
        error = append_filled(request, body, strlen(body));
    if (error < 0)
        bench_request_free(request);
    return error;
}

void bench_request_free(struct bench_request *request)
{
    free(request->text);
    request->text = NULL;
}
