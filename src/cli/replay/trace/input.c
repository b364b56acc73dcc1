/* SPDX-License-Identifier: Apache-2.0 */
/* see input.h */
#include "cli/replay/trace/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "cli/replay/stop.h"

#define PIECE_BYTES 65536
#define MAGIC_BYTES 6         /* of xz, the longest */
#define GZIP_WINDOW (15 + 16) /* the largest window, with gzip's header (zlib.h, inflateInit2) */

struct replay_input {
    int fd;
    bool regular, at_eof; /* at_eof: of the file */
    uint64_t taken;
    enum { PLAIN, GZIP, ZSTD } packing;
    z_stream gzip;
    bool member_open; /* gzip: within a member */
    ZSTD_DStream *zstd;
    size_t frame;   /* zstd: 0 between frames */
    size_t at, end; /* piece[at..end) was read and is not used */
    unsigned char piece[PIECE_BYTES];
};

static int refuse(struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return -1;
}

/* Reads from the file; 0 at its end. */
static ssize_t take(struct replay_input *input, void *out, size_t size, struct weir_reason *reason)
{
    ssize_t got;
    do {
        if (replay_stop_asked())
            return 0;
        got = read(input->fd, out, size);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return refuse(reason, strerror(errno));
    input->at_eof = got == 0;
    input->taken += (uint64_t)got;
    return got;
}

/* Gets the next piece where there is none. 0, or -1. */
static int refill(struct replay_input *input, struct weir_reason *reason)
{
    if (input->at < input->end || input->at_eof)
        return 0;
    ssize_t got = take(input, input->piece, PIECE_BYTES, reason);
    input->at = 0;
    input->end = got > 0 ? (size_t)got : 0;
    return got < 0 ? -1 : 0;
}

static bool begins(const struct replay_input *input, const char *magic, size_t size)
{
    return input->end - input->at >= size && memcmp(input->piece + input->at, magic, size) == 0;
}

/* Reads the first bytes, as many as tell what it is. */
static int fill_magic(struct replay_input *input, struct weir_reason *reason)
{
    while (input->end < MAGIC_BYTES && !input->at_eof && !replay_stop_asked()) {
        ssize_t got = take(input, input->piece + input->end, PIECE_BYTES - input->end, reason);
        if (got < 0)
            return -1;
        input->end += (size_t)got;
    }
    return 0;
}

static int open_packing(struct replay_input *input, struct weir_reason *reason)
{
    static const struct {
        const char *magic, *text;
        size_t size;
    } others[] = {
        {"BZh", "compressed with bzip2: give its text, as by `bzip2 -dc FILE | weir replay … -`",
         3},
        {"\xfd"
         "7zXZ",
         "compressed with xz: give its text, as by `xz -dc FILE | weir replay … -`", 5},
        {"PK\3\4", "a zip archive: give the text of its files", 4},
        {"\xff\xfe", "text in UTF-16: convert it to UTF-8", 2},
        {"\xfe\xff", "text in UTF-16: convert it to UTF-8", 2},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (begins(input, others[i].magic, others[i].size))
            return refuse(reason, others[i].text);
    if (begins(input, "\x1f\x8b", 2)) {
        input->packing = GZIP;
        if (inflateInit2(&input->gzip, GZIP_WINDOW) != Z_OK)
            return refuse(reason, weir_error_text(WEIR_ERR_MEMORY));
    } else if (begins(input, "\x28\xb5\x2f\xfd", 4)) {
        input->packing = ZSTD;
        input->zstd = ZSTD_createDStream();
        if (!input->zstd)
            return refuse(reason, weir_error_text(WEIR_ERR_MEMORY));
    }
    return 0;
}

struct replay_input *replay_input_open(const char *path, struct weir_reason *reason)
{
    struct replay_input *input = calloc(1, sizeof *input);
    struct stat status;
    if (!input) {
        (void)refuse(reason, weir_error_text(WEIR_ERR_MEMORY));
        return NULL;
    }
    bool standard = strcmp(path, "-") == 0;
    input->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (input->fd < 0) {
        (void)refuse(reason, strerror(errno));
        free(input);
        return NULL;
    }
    input->regular = !standard && fstat(input->fd, &status) == 0 && S_ISREG(status.st_mode);
    if (fill_magic(input, reason) < 0 || open_packing(input, reason) < 0) {
        replay_input_close(input);
        return NULL;
    }
    return input;
}

void replay_input_close(struct replay_input *input)
{
    if (!input)
        return;
    if (input->packing == GZIP)
        inflateEnd(&input->gzip);
    ZSTD_freeDStream(input->zstd);
    if (input->fd > STDIN_FILENO)
        close(input->fd);
    free(input);
}

static ssize_t read_plain(struct replay_input *input, char *out, size_t size,
                          struct weir_reason *reason)
{
    size_t kept = input->end - input->at;
    if (kept == 0)
        return input->at_eof ? 0 : take(input, out, size, reason);
    size_t some = kept < size ? kept : size;
    memcpy(out, input->piece + input->at, some);
    input->at += some;
    return (ssize_t)some;
}

/* Begins the next member; zeros behind the last one are padding (of tapes). False: there is none.
 */
static bool next_member(struct replay_input *input)
{
    if (input->member_open)
        return true;
    while (input->at < input->end && input->piece[input->at] == 0)
        input->at++;
    input->member_open = input->at < input->end;
    return input->member_open;
}

static ssize_t read_gzip(struct replay_input *input, char *out, size_t size,
                         struct weir_reason *reason)
{
    z_stream *gzip = &input->gzip;
    gzip->next_out = (Bytef *)out;
    gzip->avail_out = (uInt)size;
    while (gzip->avail_out == size) {
        if (refill(input, reason) < 0)
            return -1;
        if (input->at == input->end && (input->at_eof || replay_stop_asked()))
            return input->member_open && !replay_stop_asked()
                       ? refuse(reason, "its gzip data is cut off")
                       : 0;
        if (!next_member(input))
            continue;
        gzip->next_in = input->piece + input->at;
        gzip->avail_in = (uInt)(input->end - input->at);
        int state = inflate(gzip, Z_NO_FLUSH);
        input->at = input->end - gzip->avail_in;
        if (state == Z_STREAM_END) {
            input->member_open = false;
            inflateReset(gzip);
        } else if (state != Z_OK && state != Z_BUF_ERROR) {
            return refuse(reason, state == Z_MEM_ERROR ? weir_error_text(WEIR_ERR_MEMORY)
                                                       : "its gzip data is damaged");
        }
    }
    return (ssize_t)(size - gzip->avail_out);
}

static ssize_t read_zstd(struct replay_input *input, char *out, size_t size,
                         struct weir_reason *reason)
{
    ZSTD_outBuffer to = {out, size, 0};
    while (to.pos == 0) {
        if (refill(input, reason) < 0)
            return -1;
        bool ended = input->at == input->end && (input->at_eof || replay_stop_asked());
        if (ended && (input->frame == 0 || replay_stop_asked()))
            return 0;
        ZSTD_inBuffer from = {input->piece, input->end, input->at};
        input->frame = ZSTD_decompressStream(input->zstd, &to, &from);
        input->at = from.pos;
        if (ZSTD_isError(input->frame)) {
            snprintf(reason->text, sizeof reason->text, "its zstd data cannot be read: %s",
                     ZSTD_getErrorName(input->frame));
            return -1;
        }
        if (ended && to.pos == 0 && input->frame != 0)
            return refuse(reason, "its zstd data is cut off");
    }
    return (ssize_t)to.pos;
}

ssize_t replay_input_read(struct replay_input *input, char *out, size_t size,
                          struct weir_reason *reason)
{
    if (input->packing == GZIP)
        return read_gzip(input, out, size, reason);
    return input->packing == ZSTD ? read_zstd(input, out, size, reason)
                                  : read_plain(input, out, size, reason);
}

const char *replay_input_packing(const struct replay_input *input)
{
    static const char *const names[] = {[PLAIN] = "", [GZIP] = "gzip", [ZSTD] = "zstd"};
    return names[input->packing];
}

uint64_t replay_input_taken(const struct replay_input *input)
{
    return input->taken;
}

bool replay_input_is_file(const struct replay_input *input)
{
    return input->regular;
}
