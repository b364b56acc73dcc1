/* SPDX-License-Identifier: Apache-2.0 */
/* see top_screen.h */
#include "feature/use/cli/top_screen.h"

#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "cli/admin_client.h"
#include "cli/options.h"
#include "cli/times.h"
#include "core/text/utf8.h"
#include "server/daemon/clock.h"
#include "server/text/durations.h"
#include "server/text/print.h"

#define WIDTH_MIN 80
#define ROWS_MIN 24
#define HEAD_ROWS 3 /* the title, the sparkline, the keys */
#define POINTS 20   /* of a limit's sparkline */
#define WHOLE_POINTS 60
#define FILTER_MAX 40

static const char *const limit_orders[] = {"denied/s", "allowed/s", "name"};
static const char *const key_orders[] = {"requests", "denied", "share", "cost"};
static const char *const windows[] = {"minute", "hour", "day"};

struct screen {
    struct admin_client *client;
    const struct top_screen_options *options;
    unsigned limit_order, key_order, window;
    bool typing, paused, utf8, colours, ended;
    char filter[FILTER_MAX + 1];
    int rows, columns;
    int first;                             /* key that is drawn first */
    unsigned escaped;                      /* bytes of an arrow key that have come */
    struct weir_reason lost;               /* why the server does not answer; empty: it does */
    json_t *whole, *limits, *series, *top; /* what the server said */
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* --- Numbers ---------------------------------------------------------------------------------- */

void top_sparkline(char *out, const double *values, size_t count, bool utf8)
{
    static const char ascii[] = " .:-=+*#";
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = values[i] > most ? values[i] : most;
    for (size_t i = 0; i < count; i++) {
        unsigned level = most > 0 ? (unsigned)(values[i] / most * 7 + 0.5) : 0;
        if (values[i] > 0 && level == 0)
            level = 1;
        if (!utf8) {
            *out++ = ascii[level];
        } else if (values[i] <= 0) {
            *out++ = ' ';
        } else { /* U+2581 to U+2588 */
            memcpy(out, "\xe2\x96\x80", 3);
            out[2] = (char)(0x81 + level);
            out += 3;
        }
    }
    *out = 0;
}

static double number_of(const json_t *json, const char *name)
{
    return json_number_value(json_object_get(json, name));
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

/* Reads the newest `count` numbers of a series; those before its beginning are 0. */
static void read_series(const json_t *values, const char *name, double *out, size_t count)
{
    const json_t *list = json_object_get(values, name);
    size_t size = json_array_size(list);
    for (size_t i = 0; i < count; i++)
        out[i] = size + i >= count ? json_number_value(json_array_get(list, size + i - count)) : 0;
}

/* The mean of the newest five. */
static double rate_of(const json_t *values, const char *name)
{
    double points[5], sum = 0;
    read_series(values, name, points, 5);
    for (int i = 0; i < 5; i++)
        sum += points[i];
    return sum / 5;
}

/* --- Asking ----------------------------------------------------------------------------------- */

static int ask(struct screen *screen, const char *path, const struct admin_parameter *parameters,
               size_t count, json_t **answer, struct weir_reason *reason)
{
    json_t *now;
    int err = admin_client_call(screen->client, "GET", path, parameters, count, NULL, &now, reason);
    if (err < 0) {
        json_decref(now);
        return err;
    }
    json_decref(*answer);
    *answer = now;
    return 0;
}

static int ask_all(struct screen *screen, struct weir_reason *reason)
{
    const struct admin_parameter whole[] = {{"count", "60"}};
    const struct admin_parameter series[] = {{"limit", "*"}, {"count", "20"}};
    const struct admin_parameter top[] = {{"window", windows[screen->window]},
                                          {"by", key_orders[screen->key_order]},
                                          {"count", "1000"}};
    int err = ask(screen, "/v1/series", whole, 1, &screen->whole, reason);
    err = err < 0 ? err : ask(screen, "/v1/series", series, 2, &screen->series, reason);
    err = err < 0 ? err : ask(screen, "/v1/limits", NULL, 0, &screen->limits, reason);
    return err < 0 ? err : ask(screen, "/v1/use/top", top, 3, &screen->top, reason);
}

/* --- Drawing ---------------------------------------------------------------------------------- */

/* Ends a line: what is behind it from before goes. */
static void end_line(void)
{
    fputs("\033[K\r\n", stdout);
}

static void colour(const struct screen *screen, const char *code)
{
    if (screen->colours)
        printf("\033[%sm", code);
}

/* How many bytes of a text fit into *places of a terminal; *places becomes what is left of them. */
static size_t fitting(const char *text, int *places)
{
    size_t at = 0, size = strlen(text), step;
    for (; at < size; at += step) {
        mbstate_t state = {0};
        wchar_t character;
        step = weir_utf8_size(text + at, size - at);
        bool known = mbrtowc(&character, text + at, step, &state) == step;
        int columns = known ? wcwidth(character) : 1;
        if (columns > *places)
            break;
        *places -= columns > 0 ? columns : 0;
    }
    return at;
}

/* Text from outside in a column of so many places. */
static void put_text(const char *text, int width)
{
    size_t size = strlen(text);
    char shown[4 * 100 + 4];
    FILE *out = fmemopen(shown, sizeof shown, "w");
    if (!out)
        return;
    weir_print_text(out, text, size, 100);
    fputc(0, out);
    fclose(out);
    int left = width, less = width - 1;
    if (shown[fitting(shown, &left)]) {
        memcpy(shown + fitting(shown, &less), "~", 2);
        left = less;
    }
    printf("%s%*s", shown, left, "");
}

static void draw_title(const struct screen *screen)
{
    const json_t *values = json_object_get(screen->whole, "values");
    double requests = rate_of(values, "requests"), denied = rate_of(values, "denied");
    double latency[5], points[WHOLE_POINTS];
    char p99[16];
    char line[3 * WHOLE_POINTS + 1], clock[WEIR_MOMENT_MAX];
    weir_moment_text(clock, weir_clock_wall_ns(), screen->options->utc);
    const char *date_end = strchr(clock, 'T');
    read_series(values, "latency_p99_us", latency, 5);
    for (int i = 1; i < 5; i++)
        latency[0] = latency[i] > latency[0] ? latency[i] : latency[0];
    colour(screen, "1");
    if (latency[0] >= 1000)
        snprintf(p99, sizeof p99, "%.0fms", latency[0] / 1000);
    else
        snprintf(p99, sizeof p99, "%.0fus", latency[0]);
    printf("weir top %-15.15s %8.1f req/s %5.1f%% denied p99 %-6s %14s", screen->options->address,
           requests, requests > 0 ? denied * 100 / requests : 0, p99,
           date_end ? date_end + 1 : clock);
    colour(screen, "0");
    end_line();
    read_series(values, "requests", points, WHOLE_POINTS);
    top_sparkline(line, points, WHOLE_POINTS, screen->utf8);
    printf("requests, 1 min  ");
    colour(screen, "36");
    fputs(line, stdout);
    colour(screen, "0");
    end_line();
    if (screen->lost.text[0]) {
        colour(screen, "31");
        printf("no connection, trying again: %.50s", screen->lost.text);
        colour(screen, "0");
    } else if (screen->typing)
        printf("filter: %s_", screen->filter);
    else
        printf("q quit  s %s  S %s  w %s  j k scroll  / filter%s%s  p %s",
               limit_orders[screen->limit_order], key_orders[screen->key_order],
               windows[screen->window], screen->filter[0] ? ": " : "", screen->filter,
               screen->paused ? "PAUSED" : "pause");
    end_line();
}

struct row {
    const json_t *limit, *values;
    const char *name;
    const char *field; /* of the series: what it denies */
    double allowed, denied;
    bool shadow; /* it denies nobody: what it would deny */
};

/* What refuses requests without being a limit, and its series of the whole server. The first one is
 * in the list of limits, too. */
static const struct {
    const char *name, *field;
} others[] = {{"standing", "refused_standing"},
              {"unknown callers", "refused_unknown"},
              {"challenges", "refused_challenge"},
              {"store failed", "refused_store"},
              {"not readable", "refused_unreadable"}};
#define OTHERS (sizeof others / sizeof *others)

static unsigned row_order; /* of the sort at hand */

static int by_order(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    double x = row_order == 0 ? a->denied : a->allowed, y = row_order == 0 ? b->denied : b->allowed;
    if (row_order < 2 && x != y)
        return x < y ? 1 : -1;
    return strcmp(a->name, b->name);
}

static bool passes(const struct screen *screen, const char *text)
{
    return !screen->filter[0] || strcasestr(text, screen->filter);
}

/* "gcra", "gcra 40%": how much of it counts now. */
static void put_algorithm(const struct row *row)
{
    char text[48];
    const json_t *scale = json_object_get(row->limit, "scale_percent");
    const char *name = row->shadow ? "shadow" : row->limit ? text_of(row->limit, "algorithm") : "-";
    if (json_is_integer(scale) && json_integer_value(scale) < 100)
        snprintf(text, sizeof text, "%.9s %d%%", name, (int)json_integer_value(scale));
    else
        snprintf(text, sizeof text, "%.40s", name);
    printf(" %-14.14s", text);
}

/* What is more than 80 columns goes to names. */
static int wider(const struct screen *screen, int width)
{
    return screen->columns > WIDTH_MIN ? width + screen->columns - WIDTH_MIN : width;
}

static void draw_limit(const struct screen *screen, const struct row *row)
{
    double points[POINTS] = {0}, denied[POINTS], all = row->allowed + row->denied;
    char line[3 * POINTS + 1];
    if (row->limit)
        read_series(row->values, "allowed", points, POINTS);
    read_series(row->values, row->field, denied, POINTS);
    for (int i = 0; i < POINTS; i++)
        points[i] += denied[i];
    top_sparkline(line, points, POINTS, screen->utf8);
    put_text(row->name, wider(screen, 20));
    put_algorithm(row);
    printf(" %9.1f ", row->allowed);
    if (row->denied > 0)
        colour(screen, row->shadow ? "2" : "31");
    printf("%8.1f %3.0f%%", row->denied, all > 0 ? row->denied * 100 / all : 0);
    colour(screen, "0");
    printf(" ");
    colour(screen, "36");
    fputs(line, stdout);
    colour(screen, "0");
    end_line();
}

static int draw_limits(const struct screen *screen, int most)
{
    const json_t *list = json_object_get(screen->limits, "limits"), *limit;
    const json_t *whole = json_object_get(screen->whole, "values");
    struct row *rows = calloc(json_array_size(list) + OTHERS + 1, sizeof *rows);
    size_t i, count = 0;
    int drawn = 0;
    json_array_foreach(list, i, limit)
    {
        const char *name = text_of(limit, "name");
        const json_t *values = json_object_get(json_object_get(screen->series, "limits"), name);
        bool shadow = json_is_true(json_object_get(limit, "shadow"));
        const char *field = shadow ? "shadow_denied" : "denied";
        if (rows && passes(screen, name) && strcmp(name, others[0].name) != 0)
            rows[count++] = (struct row){
                limit, values, name, field, rate_of(values, "allowed"), rate_of(values, field),
                shadow};
    }
    for (i = 0; i < OTHERS && rows; i++) {
        double denied = rate_of(whole, others[i].field);
        if (denied > 0 && passes(screen, others[i].name))
            rows[count++] =
                (struct row){NULL, whole, others[i].name, others[i].field, 0, denied, false};
    }
    row_order = screen->limit_order;
    if (count > 0)
        qsort(rows, count, sizeof *rows, by_order);
    colour(screen, "7");
    printf("%-*s %-14s %9s %8s %4s %-20s", wider(screen, 20), "LIMIT", "ALGORITHM", "ALLOWED/s",
           "DENIED/s", "DEN%", "LAST 20 S");
    colour(screen, "0");
    end_line();
    for (; drawn < most && (size_t)drawn < count; drawn++)
        draw_limit(screen, &rows[drawn]);
    free(rows);
    return drawn;
}

static void draw_key(const struct screen *screen, const json_t *key)
{
    char text[WEIR_DURATION_MAX] = "never";
    double used = number_of(key, "used_percent");
    const json_t *reset = json_object_get(key, "reset_after_ms");
    if (json_is_integer(reset))
        weir_duration(text, (uint64_t)json_integer_value(reset));
    put_text(text_of(key, "limit"), 16);
    putchar(' ');
    char *name = admin_key_name(key);
    put_text(name ? name : "", wider(screen, 27));
    free(name);
    printf(" %8.0f ", number_of(key, "requests"));
    if (number_of(key, "denied") > 0)
        colour(screen, "31");
    printf("%7.0f", number_of(key, "denied"));
    colour(screen, "0");
    putchar(' ');
    if (used >= 80)
        colour(screen, used >= 100 ? "31" : "33");
    printf("%4.0f%%", used);
    colour(screen, "0");
    printf(" %11s", text);
    end_line();
}

static bool key_passes(const struct screen *screen, const json_t *key)
{
    char *name = admin_key_name(key);
    bool found = passes(screen, text_of(key, "limit")) || passes(screen, text_of(key, "key")) ||
                 (name && passes(screen, name));
    free(name);
    return found;
}

/* The last key stays on the screen however far it is scrolled. */
static void bound_scrolling(struct screen *screen)
{
    const json_t *key;
    size_t i;
    int passed = 0;
    json_array_foreach(json_object_get(screen->top, "keys"), i, key) passed +=
        key_passes(screen, key);
    if (screen->first >= passed)
        screen->first = passed > 0 ? passed - 1 : 0;
}

static void draw_keys(struct screen *screen, int most)
{
    const json_t *list = json_object_get(screen->top, "keys"), *key;
    size_t i;
    int drawn = 0, passed = 0;
    bound_scrolling(screen);
    colour(screen, "7");
    printf("%-16s %-*s %8s %7s %5s %11s", "LIMIT", wider(screen, 27), "KEY", "REQUESTS", "DENIED",
           "USED", "FREE IN");
    colour(screen, "0");
    end_line();
    json_array_foreach(list, i, key)
    {
        if (drawn == most)
            break;
        if (!key_passes(screen, key))
            continue;
        if (passed++ < screen->first)
            continue;
        draw_key(screen, key);
        drawn++;
    }
}

static void draw(struct screen *screen)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    screen->rows = known && size.ws_row > 0 ? size.ws_row : ROWS_MIN;
    screen->columns = known && size.ws_col > 0 ? size.ws_col : WIDTH_MIN;
    int rows = screen->rows - HEAD_ROWS - 3; /* two headings, and the last line stays free */
    fputs("\033[H", stdout);
    draw_title(screen);
    int limits = draw_limits(screen, rows > 1 ? rows / 2 : 1);
    draw_keys(screen, rows > limits ? rows - limits : 0);
    fputs("\033[J", stdout);
    fflush(stdout);
}

/* --- Keys ------------------------------------------------------------------------------------- */

static void type(struct screen *screen, char c)
{
    size_t size = strlen(screen->filter);
    if (c == '\r' || c == '\n' || c == 27) {
        screen->typing = false;
        if (c == 27)
            screen->filter[0] = 0;
    } else if (c == 127 || c == 8) {
        screen->filter[size > 0 ? size - 1 : 0] = 0;
    } else if (c >= ' ' && c < 127 && size < FILTER_MAX) {
        screen->filter[size] = c;
        screen->filter[size + 1] = 0;
    }
}

/* Arrow keys come as ESC [ A (up) and ESC [ B (down). Returns the key that they are, j or k; 0:
 * more bytes follow, or it is another such key. An ESC without [ was pressed itself. */
static char unescape(struct screen *screen, char c)
{
    bool last = screen->escaped == 2;
    if (last || c == 27 || (screen->escaped == 1 && c == '[')) {
        screen->escaped = c == 27 ? 1 : last ? 0 : 2;
        return !last ? 0 : c == 'B' ? 'j' : c == 'A' ? 'k' : 0;
    }
    screen->escaped = 0;
    return c;
}

/* Takes a key. Returns whether the server has to be asked again. */
static bool take_key(struct screen *screen, char c)
{
    if (screen->typing) {
        type(screen, c);
        return false;
    }
    switch (unescape(screen, c)) {
    case 'q':
    case 3:
        screen->ended = true;
        return false;
    case 's':
        screen->limit_order = (screen->limit_order + 1) % 3;
        return false;
    case 'S':
        screen->key_order = (screen->key_order + 1) % 4;
        return true;
    case 'w':
        screen->window = (screen->window + 1) % 3;
        return true;
    case '/':
        screen->typing = true;
        screen->filter[0] = 0;
        return false;
    case 'j':
        screen->first++;
        return false;
    case 'k':
        screen->first -= screen->first > 0;
        return false;
    case 'p':
        screen->paused = !screen->paused;
        return !screen->paused;
    default:
        return false;
    }
}

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for keys until it is time to ask again. */
static void wait_for_keys(struct screen *screen)
{
    uint64_t end_ms = clock_ms() + screen->options->interval_s * 1000;
    for (bool again = false; !again && !screen->ended && !interrupted;) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        uint64_t now_ms = clock_ms();
        char c;
        if (now_ms >= end_ms && !screen->paused)
            return;
        int left_ms = screen->paused || end_ms - now_ms > 1000 ? 1000 : (int)(end_ms - now_ms);
        if (poll(&input, 1, left_ms) <= 0)
            continue;
        if (read(STDIN_FILENO, &c, 1) != 1) {
            screen->ended = true;
            return;
        }
        again = take_key(screen, c);
        draw(screen);
    }
}

static int run(struct screen *screen, struct weir_reason *reason)
{
    while (!screen->ended && !interrupted) {
        screen->lost.text[0] = '\0';
        if (!screen->paused && ask_all(screen, reason) < 0)
            screen->lost = *reason; /* a restart, or a cable: the next round may reach it */
        draw(screen);
        wait_for_keys(screen);
    }
    return 0;
}

static bool is_dumb(void)
{
    const char *name = getenv("TERM");
    return name && !strcmp(name, "dumb");
}

int top_screen_run(struct admin_client *client, const struct top_screen_options *options,
                   struct weir_reason *reason)
{
    struct screen screen = {.client = client, .options = options};
    struct termios before, raw;
    const struct sigaction act = {.sa_handler = on_interrupt};
    struct sigaction old_int, old_term;
    const char *no_colour = getenv("NO_COLOR");
    if (tcgetattr(STDIN_FILENO, &before) < 0 || ask_all(&screen, reason) < 0) {
        json_decref(screen.whole);
        json_decref(screen.series);
        json_decref(screen.limits);
        return WEIR_ERR_NOT_FOUND;
    }
    setlocale(LC_CTYPE, "");
    screen.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    if (!screen.utf8)
        setlocale(LC_CTYPE, "C");
    screen.colours = (!no_colour || !no_colour[0]) && !is_dumb();
    raw = before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
    sigaction(SIGINT, &act, &old_int);
    sigaction(SIGTERM, &act, &old_term);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    fputs("\033[?1049h\033[?25l\033[?7l", stdout); /* another screen, no cursor, no wrapping */
    int err = run(&screen, reason);
    fputs("\033[?7h\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    json_decref(screen.whole);
    json_decref(screen.series);
    json_decref(screen.limits);
    json_decref(screen.top);
    return err;
}
