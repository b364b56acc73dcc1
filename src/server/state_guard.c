/* see state_guard.h */
#include "server/state_guard.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/clock.h"

/* What the handler reads. It runs on any thread, at any time. */
static struct {
    const char *base, *end;
    int fd;
    size_t before, size; /* the time stands at `before` in the line */
    char line[WEIR_LOG_LINE_MAX];
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

void weir_state_guard_tell(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    put_time(guard.line + guard.before, &now);
    for (size_t done = 0; done < guard.size;) {
        ssize_t n = write(guard.fd, guard.line + done, guard.size - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static int told;
    const char *at = info->si_addr;
    (void)context;
    if (at < guard.base || at >= guard.end) {
        signal(number, SIG_DFL); /* the instruction is run again, and ends the process */
        return;
    }
    while (__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        pause(); /* another thread tells, and ends this one too */
    weir_state_guard_tell();
    _exit(WEIR_STATE_EXIT);
}

void weir_state_guard_set(const struct weir_table *table, const char *path,
                          const struct weir_log *log)
{
    const struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    struct weir_log form; /* the log's form, without its rate */
    struct weir_log_line line;
    const void *base;
    uint64_t bytes;
    if (!weir_table_mapping(table, &base, &bytes))
        return;
    weir_log_init(&form, log->fd, log->format);
    weir_log_begin(&line, &form, WEIR_LOG_ERROR, "state_file_cut");
    weir_log_text(&line, "file", path);
    weir_log_text(&line, "reason",
                  "the file was cut short while it was in use; weir ends, and starts again once "
                  "the file is gone or whole");
    if (form.format == WEIR_LOG_JSON)
        line.text[line.used++] = '}';
    line.text[line.used++] = '\n';
    memcpy(guard.line, line.text, line.used);
    guard.size = line.used;
    guard.before =
        (size_t)(strchr(line.text, form.format == WEIR_LOG_JSON ? ':' : '=') - line.text) +
        (form.format == WEIR_LOG_JSON ? 2 : 1);
    guard.fd = log->fd;
    guard.base = base;
    guard.end = guard.base + bytes;
    sigaction(SIGBUS, &action, NULL);
}

void weir_state_guard_clear(void)
{
    signal(SIGBUS, SIG_DFL);
    guard.base = guard.end = NULL;
}
