/* SPDX-License-Identifier: Apache-2.0 */
/* see ask.h */
#include "feature/standing/server/ask.h"

#include "core/bytes.h"
#include "server/http/reply.h"
#include "server/http/request.h"

static bool read_number(struct weir_bytes text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || *number > UINT64_C(1) << 50)
            return false;
        *number = *number * 10 + (uint64_t)(text.data[i] - '0');
    }
    return text.size > 0;
}

/* Where the text of a parameter goes; NULL: it is none of these. */
static struct weir_bytes *text_of(struct weir_standing_ask *ask, struct weir_bytes name, bool files)
{
    if (weir_bytes_are(name, "kind"))
        return &ask->kind;
    if (weir_bytes_are(name, "value"))
        return &ask->value;
    if (weir_bytes_are(name, "level"))
        return &ask->level;
    if (weir_bytes_are(name, "file"))
        return files ? &ask->file : NULL;
    if (weir_bytes_are(name, "by"))
        return files ? NULL : &ask->by;
    if (weir_bytes_are(name, "reason"))
        return files ? NULL : &ask->reason;
    return NULL;
}

static bool take(struct weir_standing_ask *ask, struct weir_bytes name, struct weir_bytes value,
                 bool files)
{
    struct weir_bytes *text = text_of(ask, name, files);

    if (text)
        *text = value;
    else if (weir_bytes_are(name, "count"))
        return read_number(value, &ask->count);
    else if (weir_bytes_are(name, "skip"))
        return read_number(value, &ask->skip);
    return text;
}

bool weir_standing_ask_read(struct weir_http_call *call, struct weir_standing_ask *ask, bool files)
{
    struct weir_bytes query = call->request->query, name, value;
    char *at = call->http->joined;

    *ask = (struct weir_standing_ask){.count = WEIR_STANDING_COUNT_DEFAULT};
    while (weir_http_next_parameter(&query, &name, &value)) {
        long size = weir_http_decode(value, at); /* never longer than the request's head */
        struct weir_bytes decoded = {at, size < 0 ? 0 : (size_t)size};

        at += decoded.size;
        if (size < 0 || !take(ask, name, decoded, files)) {
            weir_http_problem(call, WEIR_HTTP_400, NULL,
                              files ? "query: use file, kind, level, value, count and skip"
                                    : "query: use kind, value, level, by, reason, count and skip");
            return false;
        }
    }
    if (ask->count > WEIR_STANDING_COUNT_MAX)
        ask->count = WEIR_STANDING_COUNT_MAX;
    return true;
}
