/* SPDX-License-Identifier: Apache-2.0 */
/* see reply.h */
#include "cli/bench/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NODES (BENCH_ELEMENT_MAX + 2)

bool bench_denial_parse(const char *text, struct bench_denial *denial)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long element = strtoul(text, &end, 10);
    if (element > BENCH_ELEMENT_MAX || *end != '=' || !strchr("-0123456789", end[1]))
        return false;
    const char *value = end + 1;
    denial->element = (uint32_t)element;
    denial->value = strtoll(value, &end, 10);
    denial->known = end != value && *end == '\0' && errno == 0;
    return denial->known;
}

struct bench_denial bench_denial_of(const char *line)
{
    static const struct {
        const char *command;
        struct bench_denial denial;
    } commands[] = {
        {"CL.THROTTLE", {true, 0, 1}},   {"GCRA", {true, 0, 1}},       {"THROTTLE", {true, 0, 0}},
        {"INCREX", {true, 1, 0}},        {"WEIR.CHECK", {true, 1, 0}}, /* "allowed", 0, … */
        {"WEIR.CHECKALL", {true, 1, 0}},
    };
    size_t size = strcspn(line, " \t");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *command = commands[i].command;
        if (strlen(command) == size && strncasecmp(line, command, size) == 0)
            return commands[i].denial;
    }
    return (struct bench_denial){0};
}

/* The node of an element of the reply, if it is there and at the top. Elements before it that are
 * containers themselves take more than a node, so count only those one level down. */
static const struct weir_resp_node *element_find(const struct weir_resp_node *nodes, uint32_t count,
                                                 uint32_t element)
{
    uint32_t seen = 0;
    if (nodes[0].type < WEIR_RESP_ARRAY)
        return element == 0 ? nodes : NULL;
    for (uint32_t i = 1; i < count && i < NODES; i++)
        if (nodes[i].depth == 1 && seen++ == element)
            return &nodes[i];
    return NULL;
}

static long resp_read(struct bench_reader *reader, const struct bench_denial *denial, char *data,
                      size_t size, struct bench_reply *reply)
{
    uint32_t count;
    long taken = weir_resp_reply_parse(&reader->resp, data, size, reader->nodes, NODES, &count);
    if (taken <= 0)
        return taken;
    *reply = (struct bench_reply){.verdict = BENCH_DONE};
    if (reader->nodes[0].type == WEIR_RESP_ERROR) {
        reply->verdict = BENCH_FAILED;
        reply->error = reader->nodes[0].text;
    } else if (denial->known) {
        const struct weir_resp_node *node = element_find(reader->nodes, count, denial->element);
        if (node && (node->type == WEIR_RESP_INTEGER || node->type == WEIR_RESP_BOOLEAN) &&
            node->integer == denial->value)
            reply->verdict = BENCH_DENIED;
    }
    return taken;
}

static long http_read(struct bench_reader *reader, char *data, size_t size,
                      struct bench_reply *reply)
{
    struct weir_http1_reply *http = &reader->http_reply;
    long taken = weir_http1_reply_parse(&reader->http, data, size, http);
    if (taken <= 0)
        return taken;
    reader->http = (struct weir_http1_reply_reader){0};
    *reply = (struct bench_reply){.verdict = BENCH_DONE, .last = !http->keep_alive};
    if (http->status == 429) {
        reply->verdict = BENCH_DENIED;
    } else if (http->status >= 400) {
        const char *line_end = memchr(data, '\r', (size_t)taken);
        reply->verdict = BENCH_FAILED;
        reply->error = (struct weir_bytes){data, (size_t)(line_end - data)};
    }
    return taken;
}

long bench_reply_read(struct bench_reader *reader, const struct bench_denial *denial, char *data,
                      size_t size, struct bench_reply *reply)
{
    return reader->protocol == BENCH_HTTP ? http_read(reader, data, size, reply)
                                          : resp_read(reader, denial, data, size, reply);
}
