/* SPDX-License-Identifier: Apache-2.0 */
/* see packer.h */
#include "server/http/packer.h"

#include <stdlib.h>
#include <zlib.h>

#include "server/http/http.h"
#include "wire/http/accept_encoding.h"

/* zlib's own defaults; 16 more bits of the window ask for gzip's frame. */
#define LEVEL 6
#define WINDOW (MAX_WBITS + 16)
#define MEMORY 8
/* An empty stored block, as a flush ends with, and the bits before it. */
#define FLUSH_BYTES 16

struct weir_packer {
    z_stream stream;
};

bool weir_http_takes_gzip(const struct weir_http_call *call)
{
    return weir_accepts_coding(weir_http1_field(call->request, "accept-encoding"), "gzip");
}

struct weir_packer *weir_packer_open(void)
{
    struct weir_packer *packer = calloc(1, sizeof *packer);
    if (packer && deflateInit2(&packer->stream, LEVEL, Z_DEFLATED, WINDOW, MEMORY,
                               Z_DEFAULT_STRATEGY) == Z_OK)
        return packer;
    free(packer);
    return NULL;
}

void weir_packer_close(struct weir_packer *packer)
{
    if (packer)
        (void)deflateEnd(&packer->stream);
    free(packer);
}

size_t weir_packer_bound(struct weir_packer *packer, size_t size)
{
    return deflateBound(&packer->stream, size) + FLUSH_BYTES;
}

size_t weir_packer_put(struct weir_packer *packer, const char *text, size_t size, bool last,
                       char *out, size_t room)
{
    z_stream *stream = &packer->stream;
    stream->next_in = (Bytef *)(uintptr_t)text;
    stream->avail_in = (uInt)size;
    stream->next_out = (Bytef *)out;
    stream->avail_out = (uInt)room;
    (void)deflate(stream, last ? Z_FINISH : Z_SYNC_FLUSH); /* there is room: it takes all */
    return room - stream->avail_out;
}
