/* SPDX-License-Identifier: Apache-2.0 */
/* see denial_file.h */
#include "server/use/denial_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

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
    pthread_cond_t more;
    bool closing;
    size_t waiting; /* bytes in `lines` */
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

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
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
    uint64_t lines = count_lines(data, size);
    bool written = write_all(file->fd, data, size);
    file->size += written ? size : 0;
    weir_count(&file->stats.written, written ? lines : 0);
    if (!written) {
        pthread_mutex_lock(&file->lock);
        weir_count(&file->stats.dropped, lines);
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
        while (file->waiting == 0 && !file->closing)
            pthread_cond_wait(&file->more, &file->lock);
        if (file->waiting == 0)
            break;
        size_t size = file->waiting;
        char *lines = file->lines;
        file->lines = file->taken;
        file->taken = lines;
        file->waiting = 0;
        pthread_mutex_unlock(&file->lock);
        write_taken(file, size);
        pthread_mutex_lock(&file->lock);
    }
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
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->more, NULL);
    if (pthread_create(&file->thread, NULL, writer, file) != 0) {
        snprintf(reason->text, sizeof reason->text, "denials.file: cannot start its thread");
        pthread_cond_destroy(&file->more);
        pthread_mutex_destroy(&file->lock);
        free_file(file);
        return WEIR_ERR_MEMORY;
    }
    *out = file;
    return 0;
}

void weir_denial_file_close(struct weir_denial_file *file)
{
    if (!file)
        return;
    pthread_mutex_lock(&file->lock);
    file->closing = true;
    pthread_cond_signal(&file->more);
    pthread_mutex_unlock(&file->lock);
    pthread_join(file->thread, NULL);
    pthread_cond_destroy(&file->more);
    pthread_mutex_destroy(&file->lock);
    free_file(file);
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
