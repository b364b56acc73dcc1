/* SPDX-License-Identifier: Apache-2.0 */
/* see denial_file.h */
#include "feature/use/server/denial_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/shared_file.h"
#include "rules/counter.h"

#define S UINT64_C(1000000000)
#define READ_BYTES 65536

struct weir_denial_file {
    char *path, *old_path;
    uint64_t half_bytes, keep_ns;
    int fd;
    uint64_t size; /* of the newest file */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, ended;
    bool closing, gone; /* gone: the thread has ended */
    bool reopen;        /* before the next lines */
    size_t waiting;     /* bytes in `lines` */
    size_t at_work;     /* of `taken`, that the thread is writing */
    char *lines, *taken;
    struct weir_denial_file_stats stats;
};

/* --- Writing ---------------------------------------------------------------------------------- */

static uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * S + (uint64_t)now.tv_nsec;
}

static int open_newest(struct weir_denial_file *file)
{
    struct stat stat;
    char last = '\n';
    int fd =
        open(file->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return WEIR_ERR_IO;
    if (fstat(fd, &stat) < 0)
        goto refused;
    if (!S_ISREG(stat.st_mode)) {
        errno = EINVAL;
        goto refused;
    }
    if ((stat.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0)
        goto refused;
    file->size = (uint64_t)stat.st_size;
    if (stat.st_size > 0 && pread(fd, &last, 1, stat.st_size - 1) == 1 && last != '\n')
        file->size += write(fd, "\n", 1) == 1; /* a crash has cut its last line */
    file->fd = fd;
    return 0;

refused:;
    int why = errno;
    close(fd);
    errno = why;
    return WEIR_ERR_IO;
}

static void drop_old(const struct weir_denial_file *file)
{
    struct stat stat;
    if (lstat(file->old_path, &stat) == 0 && S_ISREG(stat.st_mode) &&
        (uint64_t)stat.st_mtim.tv_sec * S + file->keep_ns < wall_ns())
        unlink(file->old_path);
}

static void rotate(struct weir_denial_file *file)
{
    if (rename(file->path, file->old_path) < 0)
        return; /* it grows until that works */
    int old = file->fd;
    file->fd = -1;
    if (open_newest(file) < 0)
        file->fd = old; /* under its other name */
    else
        close(old);
}

/* Returns how many bytes were written: fewer, when the disk refuses the rest. */
/* Opens the file again, where it has gone from its path. The open one stays in use where that
 * fails. */
static void follow_path(struct weir_denial_file *file)
{
    int old = file->fd;
    uint64_t size = file->size;
    if (file->fd >= 0 && weir_file_is_at(file->fd, file->path, false))
        return;
    if (open_newest(file) < 0) {
        file->fd = old;
        file->size = size;
    } else if (old >= 0) {
        close(old);
    }
}

static uint64_t count_lines(const char *text, size_t size)
{
    uint64_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines;
}

/* The most of these lines for which the newest file has room; 0: not one. */
static size_t size_of_piece(const struct weir_denial_file *file, const char *lines, size_t size)
{
    uint64_t room = file->half_bytes > file->size ? file->half_bytes - file->size : 0;
    if (size <= room)
        return size;
    const char *end = memrchr(lines, '\n', room);
    return end ? (size_t)(end + 1 - lines) : 0;
}

static void write_piece(struct weir_denial_file *file, const char *data, size_t size)
{
    size_t done = weir_file_write_all(file->fd, data, size);
    const char *last = done < size ? memrchr(data, '\n', done) : NULL;
    size_t whole = done == size ? size : last ? (size_t)(last + 1 - data) : 0;
    uint64_t lines = count_lines(data, size), kept = count_lines(data, whole);
    file->size += whole;
    if (done > whole && ftruncate(file->fd, (off_t)file->size) < 0)
        file->size += done - whole; /* a line without its end: readers skip it */
    weir_count(&file->stats.written, kept);
    if (kept < lines) {
        pthread_mutex_lock(&file->lock);
        weir_count(&file->stats.dropped, lines - kept);
        pthread_mutex_unlock(&file->lock);
    }
}

static void write_taken(struct weir_denial_file *file, size_t size)
{
    drop_old(file);
    for (size_t done = 0, piece; done < size; done += piece) {
        const char *lines = file->taken + done;
        piece = size_of_piece(file, lines, size - done);
        if (piece == 0) {
            rotate(file);
            piece = size_of_piece(file, lines, size - done);
        }
        if (piece == 0) /* it could not be renamed */
            piece = size - done;
        write_piece(file, lines, piece);
    }
}

static void *writer(void *context)
{
    struct weir_denial_file *file = context;
    pthread_mutex_lock(&file->lock);
    for (;;) {
        while (file->waiting == 0 && !file->closing && !file->reopen)
            pthread_cond_wait(&file->more, &file->lock);
        if (file->waiting == 0 && file->closing)
            break;
        size_t size = file->at_work = file->waiting;
        char *lines = file->lines;
        file->lines = file->taken;
        file->taken = lines;
        file->waiting = 0;
        file->reopen = false;
        pthread_mutex_unlock(&file->lock);
        follow_path(file);
        write_taken(file, size);
        pthread_mutex_lock(&file->lock);
        file->at_work = 0;
    }
    file->gone = true;
    pthread_cond_signal(&file->ended);
    pthread_mutex_unlock(&file->lock);
    return NULL;
}

static void free_file(struct weir_denial_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file->old_path);
    free(file->lines);
    free(file->taken);
    free(file);
}

int weir_denial_file_open(struct weir_denial_file **out,
                          const struct weir_denial_file_options *options,
                          struct weir_reason *reason)
{
    struct weir_denial_file *file = calloc(1, sizeof *file);
    size_t size = strlen(options->path);
    if (!file)
        return WEIR_ERR_MEMORY;
    file->fd = -1;
    file->half_bytes = options->size_bytes / 2;
    file->keep_ns = options->keep_ns;
    file->path = strdup(options->path);
    file->old_path = malloc(size + 3);
    file->lines = malloc(WEIR_DENIAL_FILE_WAITING);
    file->taken = malloc(WEIR_DENIAL_FILE_WAITING);
    int err = file->path && file->old_path && file->lines && file->taken ? 0 : WEIR_ERR_MEMORY;
    if (err == 0) {
        snprintf(file->old_path, size + 3, "%s.1", options->path);
        err = open_newest(file);
    }
    if (err == 0)
        drop_old(file);
    if (err < 0) {
        snprintf(reason->text, sizeof reason->text, "denials.file: cannot use %.100s: %s",
                 options->path, err == WEIR_ERR_IO ? strerror(errno) : weir_error_text(err));
        free_file(file);
        return err;
    }
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->more, NULL);
    pthread_cond_init(&file->ended, &steady);
    pthread_condattr_destroy(&steady);
    if (pthread_create(&file->thread, NULL, writer, file) != 0) {
        snprintf(reason->text, sizeof reason->text, "denials.file: cannot start its thread");
        pthread_cond_destroy(&file->more);
        pthread_cond_destroy(&file->ended);
        pthread_mutex_destroy(&file->lock);
        free_file(file);
        return WEIR_ERR_MEMORY;
    }
    *out = file;
    return 0;
}

/* Whether the thread ends in time; else the disk hangs, and what is not written is lost. */
static bool wait_for_end(struct weir_denial_file *file)
{
    struct timespec then;
    int err = 0;
    clock_gettime(CLOCK_MONOTONIC, &then);
    then.tv_sec += WEIR_DENIAL_FILE_STOP_MS / 1000;
    while (!file->gone && err == 0)
        err = pthread_cond_timedwait(&file->ended, &file->lock, &then);
    if (!file->gone)
        weir_count(&file->stats.dropped, count_lines(file->lines, file->waiting) +
                                             count_lines(file->taken, file->at_work));
    return file->gone;
}

uint64_t weir_denial_file_close(struct weir_denial_file *file)
{
    if (!file)
        return 0;
    pthread_mutex_lock(&file->lock);
    file->closing = true;
    pthread_cond_signal(&file->more);
    bool gone = wait_for_end(file);
    pthread_mutex_unlock(&file->lock);
    uint64_t dropped = weir_counted(&file->stats.dropped);
    if (!gone) {
        pthread_detach(file->thread); /* with all that it uses */
        return dropped;
    }
    pthread_join(file->thread, NULL);
    pthread_cond_destroy(&file->more);
    pthread_cond_destroy(&file->ended);
    pthread_mutex_destroy(&file->lock);
    free_file(file);
    return dropped;
}

void weir_denial_file_reopen(struct weir_denial_file *file)
{
    pthread_mutex_lock(&file->lock);
    file->reopen = true;
    pthread_cond_signal(&file->more);
    pthread_mutex_unlock(&file->lock);
}

bool weir_denial_file_put(struct weir_denial_file *file, const char *line, size_t size)
{
    pthread_mutex_lock(&file->lock);
    bool room = size < WEIR_DENIAL_LINE_MAX && file->waiting + size + 1 <= WEIR_DENIAL_FILE_WAITING;
    if (room) {
        memcpy(file->lines + file->waiting, line, size);
        file->lines[file->waiting + size] = '\n';
        file->waiting += size + 1;
        pthread_cond_signal(&file->more);
    } else {
        weir_count(&file->stats.dropped, 1);
    }
    pthread_mutex_unlock(&file->lock);
    return room;
}

const struct weir_denial_file_stats *weir_denial_file_stats(const struct weir_denial_file *file)
{
    return &file->stats;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static void read_line(const char *line, size_t size, struct weir_denial_reading *reading)
{
    struct weir_denial denial;
    if (size == 0)
        return;
    if (size >= WEIR_DENIAL_LINE_MAX || !weir_denial_read(&denial, line, size))
        reading->skipped++;
    else if (weir_denial_matches(&denial, &reading->filter))
        reading->found(reading->context, &denial);
}

void weir_denial_lines_read(const char *text, size_t size, struct weir_denial_reading *reading)
{
    const char *end = text + size;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            stop = end;
        read_line(text, (size_t)(stop - text), reading);
        text = stop + 1;
    }
}

/* Reads whole lines as they come; one that is longer than the room is skipped. */
static void read_open(int fd, char *room, bool in_middle, struct weir_denial_reading *reading)
{
    size_t used = 0;
    bool skips = in_middle; /* the rest of a line */
    ssize_t size;
    while ((size = read(fd, room + used, READ_BYTES - used)) > 0) {
        used += (size_t)size;
        const char *newline = memrchr(room, '\n', used);
        if (!newline) {
            if (used == READ_BYTES) {
                reading->skipped += !skips;
                skips = true;
                used = 0;
            }
            continue;
        }
        const char *start = room;
        if (skips) {
            start = (const char *)memchr(room, '\n', used) + 1;
            skips = false;
        }
        size_t whole = (size_t)(newline - room) + 1;
        if (newline >= start)
            weir_denial_lines_read(start, (size_t)(newline - start), reading);
        memmove(room, room + whole, used - whole);
        used -= whole;
    }
    if (!skips)
        read_line(room, used, reading);
}

/* Errors: the system's. */
static int read_file(const char *path, char *room, struct weir_denial_reading *reading)
{
    struct stat stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) {
        close(fd);
        return EINVAL;
    }
    bool cut = reading->tail_bytes > 0 && (uint64_t)stat.st_size > reading->tail_bytes &&
               lseek(fd, stat.st_size - (off_t)reading->tail_bytes, SEEK_SET) >= 0;
    read_open(fd, room, cut, reading);
    close(fd);
    return 0;
}

int weir_denial_file_read(const char *path, struct weir_denial_reading *reading,
                          struct weir_reason *reason)
{
    size_t size = strlen(path);
    char *old_path = malloc(size + 3), *room = malloc(READ_BYTES);
    int err = WEIR_ERR_MEMORY;
    if (old_path && room) {
        snprintf(old_path, size + 3, "%s.1", path);
        int old = read_file(old_path, room, reading);
        int newest = read_file(path, room, reading);
        err = newest != 0 && old != 0 ? WEIR_ERR_IO : 0;
        if (err < 0)
            snprintf(reason->text, sizeof reason->text, "%.100s: %s", path, strerror(newest));
    }
    free(old_path);
    free(room);
    return err;
}
