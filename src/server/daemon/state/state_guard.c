/* SPDX-License-Identifier: Apache-2.0 */
/* see state_guard.h */
#include "server/daemon/state/state_guard.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/daemon/clock.h"

static const int signals[] = {SIGBUS, SIGSEGV, SIGFPE};
#define SIGNALS (sizeof signals / sizeof *signals)

struct line {
    size_t before, size; /* the time is at `before` */
    char text[WEIR_LOG_LINE_MAX];
};

/* What the handler reads. It runs on any thread, at any time. */
static struct {
    const struct weir_table *table; /* NULL: none is guarded */
    const char *base, *end;         /* the table's */
    struct weir_standing *map;      /* NULL: none is guarded */
    int fd;
    struct line cut, overwritten;
    bool installed;
    struct sigaction before[SIGNALS];
} guard;

static void put_digits(char *at, unsigned digits, uint64_t value)
{
    while (digits-- > 0) {
        at[digits] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* 2026-11-20T10:00:00.123Z, as weir_clock_timestamp writes it, without calling the library. Days
 * to a date: Howard Hinnant, chrono-compatible low-level date algorithms. */
static void put_time(char text[WEIR_TIMESTAMP_SIZE], const struct timespec *now)
{
    uint64_t seconds = (uint64_t)now->tv_sec, days = seconds / 86400 + 719468;
    uint64_t era = days / 146097, of_era = days % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100),
             month = (5 * of_year + 2) / 153;
    put_digits(text + 8, 2, of_year - (153 * month + 2) / 5 + 1);
    month = month < 10 ? month + 3 : month - 9;
    put_digits(text, 4, year + era * 400 + (month <= 2));
    put_digits(text + 5, 2, month);
    put_digits(text + 11, 2, seconds / 3600 % 24);
    put_digits(text + 14, 2, seconds / 60 % 60);
    put_digits(text + 17, 2, seconds % 60);
    put_digits(text + 20, 3, (uint64_t)now->tv_nsec / 1000000);
}

static void write_line(struct line *line)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_time(line->text + line->before, &now);
    for (size_t done = 0; done < line->size;) {
        ssize_t n = write(guard.fd, line->text + done, line->size - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
}

void weir_state_guard_tell(enum weir_table_file state)
{
    write_line(state == WEIR_TABLE_FILE_CUT ? &guard.cut : &guard.overwritten);
}

__attribute__((noreturn)) static void end(struct line *line)
{
    static int ending;
    while (__atomic_exchange_n(&ending, 1, __ATOMIC_RELAXED))
        pause(); /* another thread reports, and ends this one too */
    write_line(line);
    _exit(WEIR_STATE_EXIT);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    (void)context;
    if (guard.table && number == SIGBUS && at >= guard.base && at < guard.end)
        end(&guard.cut);
    if (guard.map && number == SIGBUS && weir_standing_broke(guard.map, at))
        return;
    if (guard.table && number != SIGBUS && weir_table_overwritten(guard.table))
        end(&guard.overwritten);
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i] == number)
            sigaction(number, &guard.before[i], NULL); /* the instruction is run again, with that */
}

static void line_make(struct line *made, const char *path, const struct weir_log *log,
                      const char *event, const char *reason)
{
    struct weir_log form; /* the log's form, without its rate */
    struct weir_log_line line;
    weir_log_init(&form, log->fd, log->format);
    weir_log_begin(&line, &form, WEIR_LOG_ERROR, event);
    weir_log_text(&line, "file", path);
    weir_log_text(&line, "reason", reason);
    if (form.format == WEIR_LOG_JSON)
        line.text[line.used++] = '}';
    line.text[line.used++] = '\n';
    memcpy(made->text, line.text, line.used);
    made->size = line.used;
    /* {"time":"... or time=... */
    made->before = form.format == WEIR_LOG_JSON ? sizeof "{\"time\":" : sizeof "time";
}

static void install(const struct weir_log *log)
{
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    guard.fd = log->fd;
    for (size_t i = 0; i < SIGNALS && !guard.installed; i++)
        sigaction(signals[i], &action, &guard.before[i]);
    guard.installed = true;
}

/* Unless something is guarded still. */
static void uninstall(void)
{
    if (guard.table || guard.map || !guard.installed)
        return;
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &guard.before[i], NULL);
    guard.installed = false;
}

void weir_state_guard_set(const struct weir_table *table, const char *path,
                          const struct weir_log *log)
{
    const void *base;
    uint64_t bytes;
    if (!weir_table_mapping(table, &base, &bytes))
        return;
    line_make(&guard.cut, path, log, "state_file_cut",
              "the file was cut short while it was in use; weir ends, and starts again once the "
              "file is gone or whole");
    line_make(&guard.overwritten, path, log, "state_file_overwritten",
              "the file was overwritten while it was in use; weir ends, and starts again once "
              "the file is gone or with --reset-state");
    guard.base = base;
    guard.end = guard.base + bytes;
    guard.table = table;
    install(log);
}

void weir_state_guard_clear(void)
{
    guard.table = NULL;
    uninstall();
}

void weir_state_guard_standing(struct weir_standing *map, const struct weir_log *log)
{
    guard.map = map;
    install(log);
}

void weir_state_guard_forget_standing(void)
{
    guard.map = NULL;
    uninstall();
}

void weir_state_guard_fill(sigset_t *blocked)
{
    sigfillset(blocked);
    for (size_t i = 0; i < SIGNALS; i++)
        sigdelset(blocked, signals[i]);
}
