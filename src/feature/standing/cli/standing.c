/* SPDX-License-Identifier: Apache-2.0 */
/* see standing.h */
#include "feature/standing/cli/standing.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/admin_access.h"
#include "cli/times.h"
#include "server/text/print.h"

#define ADDRESS_KIND "client.ip"
#define DURATION_MAX_MS (UINT64_C(100) * 365 * 86400 * 1000)

struct standing_options {
    struct admin_access access;
    const char *reason, *by;
    bool yes, json, utc;
    const char *kind, *level;
    uint64_t count, skip;
};

#define AT(field) .at = offsetof(struct standing_options, field)

#define OPTIONS_OF_ALL ADMIN_ACCESS_OPTIONS(offsetof(struct standing_options, access))
#define OPTIONS_OF_CHANGES                                                                         \
    CLI_OPTION(0, "reason", "TEXT", "why; up to 127 bytes. Callers that are refused see it",       \
               .kind = CLI_TEXT, AT(reason)),                                                      \
        CLI_OPTION(0, "by", "NAME", "who makes the change, for the history ($USER)",               \
                   .kind = CLI_TEXT, AT(by)),                                                      \
        CLI_OPTION('y', "yes", NULL, "do not ask, whatever a ban would hit", .kind = CLI_FLAG,     \
                   AT(yes)),                                                                       \
        CLI_UTC_OPTION(offsetof(struct standing_options, utc))
#define OPTIONS_OF_LISTS                                                                           \
    CLI_OPTION(0, "kind", "KIND", "only values of this kind", .kind = CLI_TEXT, AT(kind)),         \
        CLI_OPTION(0, "level", "LEVEL", "only entries of this level (list)", .kind = CLI_TEXT,     \
                   AT(level)),                                                                     \
        CLI_OPTION(0, "count", "N", "how many lines at most (100; up to 1000)", .kind = CLI_U64,   \
                   .min = 1, .max = 1000, AT(count)),                                              \
        CLI_OPTION(0, "json", NULL, "the answer of the server, as JSON", .kind = CLI_FLAG,         \
                   AT(json)),                                                                      \
        CLI_OPTION(0, "skip", "N", "how many lines to leave out first", .kind = CLI_U64,           \
                   .max = UINT64_C(1) << 40, AT(skip))

static const struct cli_option change_options[] = {OPTIONS_OF_ALL, OPTIONS_OF_CHANGES};
static const struct cli_option all_options[] = {OPTIONS_OF_ALL, OPTIONS_OF_CHANGES,
                                                OPTIONS_OF_LISTS};

static const char caller_notes[] =
    "CALLER is an address or a network (192.0.2.1, 10.0.0.0/8, 2001:db8::/32), or KIND=VALUE\n"
    "for a kind that `standing.by` of the rules names (user=ada, header.x-api-key=...).\n"
    "DURATION: 90s, 10m, 12h, 7d, 4w; without one there is no end.\n";

#define SYNTAX(name_, usage_, options_)                                                            \
    {                                                                                              \
        .command = (name_), .usage = (usage_), .notes = caller_notes, .options = (options_),       \
        .count = sizeof(options_) / sizeof *(options_), .takes_arguments = true                    \
    }

static const struct cli_syntax standing_syntax =
    SYNTAX("standing",
           "Usage: weir standing [list] [OPTION]...\n"
           "  or:  weir standing show CALLER [OPTION]...\n"
           "  or:  weir standing set CALLER LEVEL [DURATION] [OPTION]...\n"
           "  or:  weir standing clear CALLER [OPTION]...\n"
           "  or:  weir standing history [CALLER] [OPTION]...\n"
           "What a running server holds for or against callers. LEVEL: good, warned, throttled,\n"
           "challenged, suspended, revoked or trusted.\n",
           all_options);
static const struct cli_syntax ban_syntax =
    SYNTAX("ban",
           "Usage: weir ban CALLER [DURATION] [OPTION]...\n"
           "Refuse all requests of a caller: suspend it for a time, or, without one, revoke it.\n",
           change_options);
static const struct cli_syntax unban_syntax =
    SYNTAX("unban",
           "Usage: weir unban CALLER [OPTION]...\n"
           "End what operators and penalties hold against a caller, or for it.\n",
           change_options);
static const struct cli_syntax allow_syntax =
    SYNTAX("allow",
           "Usage: weir allow CALLER [DURATION] [OPTION]...\n"
           "Trust a caller: it meets only limits with `match: { standing: trusted }`.\n",
           change_options);

/* --- Reading the command line ----------------------------------------------------------------- */

/* A caller as kind and value; `room` holds the kind. */
struct caller {
    char kind[129];
    const char *value;
};

static bool read_caller(const char *text, struct caller *caller)
{
    const char *equals = strchr(text, '=');
    size_t size = equals ? (size_t)(equals - text) : sizeof ADDRESS_KIND - 1;

    if (size == 0 || size >= sizeof caller->kind || (equals && equals[1] == '\0'))
        return false;
    memcpy(caller->kind, equals ? text : ADDRESS_KIND, size);
    caller->kind[size] = '\0';
    caller->value = equals ? equals + 1 : text;
    return true;
}

static bool read_duration(const char *text, uint64_t *duration_ms)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},    {"min", 60000},
                 {"h", 3600000}, {"d", 86400000}, {"w", 604800000}};
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (text[0] < '0' || text[0] > '9')
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit) && number > 0 && number <= DURATION_MAX_MS / units[i].ms) {
            *duration_ms = number * units[i].ms;
            return true;
        }
    return false;
}

static const char *user_name(void)
{
    const char *name = getenv("SUDO_USER");

    if (!name || !*name)
        name = getenv("USER");
    return name && *name ? name : "operator";
}

/* Whether times are in UTC: the option of the command that runs. */
static bool in_utc;

/* --- Printing --------------------------------------------------------------------------------- */

static void print_text(const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);

    if (json_is_string(value))
        weir_print_text(stdout, json_string_value(value), json_string_length(value), 200);
    else
        fputs("-", stdout);
}

/* A moment, to the second; "-": no end. */
static void print_time(const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    char text[WEIR_MOMENT_MAX];

    if (json_is_integer(value))
        fputs(weir_moment_text(text, (uint64_t)json_integer_value(value) * 1000000, in_utc),
              stdout);
    else
        fputs("-", stdout);
}

/* --- Tables ----------------------------------------------------------------------------------- */

#define COLUMNS_MAX 8

/* A column of a list: the text of a cell is the caller's to free. */
struct column {
    const char *title;
    char *(*cell)(const json_t *row);
};

static char *text_cell(const json_t *row, const char *field)
{
    const json_t *value = json_object_get(row, field);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (json_is_string(value) && json_string_length(value) > 0)
        weir_print_text(out, json_string_value(value), json_string_length(value), 200);
    else
        fputs("-", out);
    fclose(out);
    return text;
}

static char *level_cell(const json_t *row)
{
    return text_cell(row, "level");
}

static char *was_cell(const json_t *row)
{
    return text_cell(row, "was");
}

static char *reason_cell(const json_t *row)
{
    return text_cell(row, "reason");
}

static char *by_cell(const json_t *row)
{
    const json_t *by = json_object_get(row, "by");

    return text_cell(row, json_string_length(by) > 0 ? "by" : "origin");
}

static char *time_cell(const json_t *row, const char *field)
{
    const json_t *value = json_object_get(row, field);
    char text[WEIR_MOMENT_MAX] = "-";

    if (json_is_integer(value))
        weir_moment_text(text, (uint64_t)json_integer_value(value) * 1000000, in_utc);
    return strdup(text);
}

static char *until_cell(const json_t *row)
{
    return time_cell(row, "until_ms");
}

static char *at_cell(const json_t *row)
{
    return time_cell(row, "at_ms");
}

static char *who_cell(const json_t *row)
{
    char *kind = text_cell(row, "kind"), *value = text_cell(row, "value"), *both = NULL;
    const char *note = json_is_true(json_object_get(row, "kernel")) ? " (in the kernel)" : "";

    if (kind && value && asprintf(&both, "%s=%s%s", kind, value, note) < 0)
        both = NULL;
    free(kind);
    free(value);
    return both;
}

static const struct column entry_columns[] = {{"LEVEL", level_cell},
                                              {"UNTIL", until_cell},
                                              {"BY", by_cell},
                                              {"WHO", who_cell},
                                              {"REASON", reason_cell}};
static const struct column change_columns[] = {
    {"AT", at_cell},       {"WHO", who_cell}, {"WAS", was_cell},      {"IS", level_cell},
    {"UNTIL", until_cell}, {"BY", by_cell},   {"REASON", reason_cell}};

/* Characters of a text: bytes that begin one. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void print_padded(const char *text, size_t width, bool last)
{
    fputs(text, stdout);
    for (size_t i = width_of(text); i < width + 2 && !last; i++)
        putchar(' ');
}

/* A line a row, with the columns under each other. */
static void print_table(const json_t *list, const struct column *columns, size_t count)
{
    size_t rows = json_array_size(list), widths[COLUMNS_MAX];
    char **cells = calloc(rows * count + 1, sizeof *cells);

    for (size_t c = 0; c < count; c++)
        widths[c] = strlen(columns[c].title);
    for (size_t i = 0; cells && i < rows * count; i++) {
        cells[i] = columns[i % count].cell(json_array_get(list, i / count));
        size_t width = cells[i] ? width_of(cells[i]) : 0;
        if (width > widths[i % count])
            widths[i % count] = width;
    }
    for (size_t c = 0; rows > 0 && c < count; c++)
        print_padded(columns[c].title, widths[c], c + 1 == count);
    if (rows > 0)
        putchar('\n');
    for (size_t i = 0; cells && i < rows * count; i++) {
        bool last = i % count + 1 == count;
        print_padded(cells[i] ? cells[i] : "?", widths[i % count], last);
        if (last)
            putchar('\n');
        free(cells[i]);
    }
    free(cells);
}

/* One line an entry: level, end, who, value, why. */
static void print_entry(const json_t *entry)
{
    print_text(entry, "level");
    fputs("  until ", stdout);
    print_time(entry, "until_ms");
    fputs("  by ", stdout);
    print_text(entry, json_object_get(entry, "by") ? "by" : "origin");
    if (json_object_get(entry, "kind")) {
        fputs("  ", stdout);
        print_text(entry, "kind");
        fputs("=", stdout);
        print_text(entry, "value");
    }
    if (json_string_length(json_object_get(entry, "reason")) > 0) {
        fputs("  ", stdout);
        print_text(entry, "reason");
    }
    if (json_is_true(json_object_get(entry, "kernel")))
        fputs("  (in the kernel)", stdout);
    putchar('\n');
}

/* A step on the ladder of a penalty. */
static void print_step(const json_t *step)
{
    print_text(step, "penalty");
    printf(": step %d of %d  ", (int)json_integer_value(json_object_get(step, "step")),
           (int)json_integer_value(json_object_get(step, "steps")));
    print_text(step, "standing");
    fputs("  until ", stdout);
    print_time(step, "until_ms");
    fputs("  one step is forgiven at ", stdout);
    print_time(step, "forgiven_ms");
    putchar('\n');
}

static void print_all(const json_t *list, void (*print)(const json_t *))
{
    for (size_t i = 0; i < json_array_size(list); i++)
        print(json_array_get(list, i));
}

static void print_in_force(const json_t *answer)
{
    const json_t *now = json_object_get(answer, "in_force");

    print_text(answer, "kind");
    fputs("=", stdout);
    print_text(answer, "value");
    fputs(": ", stdout);
    if (json_is_object(now))
        print_entry(now);
    else
        puts("good; nothing is in force");
    if (json_is_false(json_object_get(answer, "written"))) {
        print_text(answer, "detail");
        fputs(": ", stdout);
        print_text(answer, "reason");
        putchar('\n');
    }
}

/* --- Calls ------------------------------------------------------------------------------------ */

/* One request, and the object that answers it. */
struct exchange {
    const char *method, *path;
    const struct admin_parameter *parameters;
    size_t count;
    const char *body;
    json_t *answer;
};

static int exchange(struct admin_client *client, void *context, struct weir_reason *reason)
{
    struct exchange *one = context;

    return admin_client_call(client, one->method, one->path, one->parameters, one->count, one->body,
                             &one->answer, reason);
}

/* Sends one request; *answer is the caller's. Returns the exit status. */
static int call(const struct standing_options *options, const char *method, const char *path,
                const struct admin_parameter *parameters, size_t count, const char *body,
                json_t **answer)
{
    struct exchange one = {method, path, parameters, count, body, NULL};
    int status = admin_access_call(&options->access, exchange, &one);

    *answer = one.answer;
    return status;
}

/* --- Questions before a ban ------------------------------------------------------------------- */

/* Asks on the terminal. */
static bool confirms(void)
{
    char answer[16] = "";

    fputs("Go on? [y/N] ", stderr);
    fflush(stderr);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Says whom a refusal would hit, and asks where that may be a slip. False: it is not wanted, or
 * nobody is there to be asked; *status says how the command ends. */
static bool is_sure(const struct standing_options *options, const struct caller *caller,
                    int *status)
{
    const struct admin_parameter parameters[] = {{"kind", caller->kind}, {"value", caller->value}};
    json_t *answer;
    const json_t *asks, *why;
    size_t i;

    *status = call(options, "GET", "/v1/standing/radius", parameters, 2, NULL, &answer);
    asks = json_object_get(answer, "asks");
    bool sure = *status == EXIT_SUCCESS && json_array_size(asks) == 0;
    if (!sure && *status == EXIT_SUCCESS) {
        fprintf(stderr, "weir: %s=", caller->kind);
        weir_print_text(stderr, caller->value, strlen(caller->value), 200);
        fprintf(stderr,
                ": at least %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                " requests of the last day\n",
                json_integer_value(json_object_get(answer, "requests_at_least")),
                json_integer_value(json_object_get(answer, "requests")));
        json_array_foreach(asks, i, why)
        {
            fprintf(stderr, "weir: %s\n", json_string_value(why));
        }
        *status = EXIT_FAILURE;
        if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
            sure = confirms();
        else
            cli_error("nothing was changed; say --yes if that is what you want");
    }
    json_decref(answer);
    return sure;
}

static bool refuses(const char *level)
{
    return !strcmp(level, "suspended") || !strcmp(level, "revoked");
}

/* --- Changes ---------------------------------------------------------------------------------- */

static int set(const struct standing_options *options, const struct caller *caller,
               const char *level, uint64_t duration_ms)
{
    int asked;

    if (refuses(level) && !options->yes && !is_sure(options, caller, &asked))
        return asked;
    json_t *body =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "kind", caller->kind, "value", caller->value,
                  "level", level, "reason", options->reason ? options->reason : "", "by",
                  options->by, "yes", true); /* it has asked */
    json_t *answer;
    char *text;
    int status;

    if (body && duration_ms > 0)
        json_object_set_new(body, "for_ms", json_integer((json_int_t)duration_ms));
    text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    if (!text) {
        cli_error("the value, reason or name is not UTF-8");
        return EXIT_FAILURE;
    }
    status = call(options, "PUT", "/v1/standing", NULL, 0, text, &answer);
    free(text);
    if (status == EXIT_SUCCESS) {
        print_in_force(answer);
        if (refuses(level))
            printf("undo: weir unban '%s=%s'\n", caller->kind, caller->value);
    }
    json_decref(answer);
    return cli_finish(status);
}

static int clear(const struct standing_options *options, const struct caller *caller)
{
    const struct admin_parameter parameters[] = {{"kind", caller->kind},
                                                 {"value", caller->value},
                                                 {"by", options->by},
                                                 {"reason", options->reason}};
    json_t *answer;
    int status = call(options, "DELETE", "/v1/standing", parameters, 4, NULL, &answer);

    if (status == EXIT_SUCCESS)
        print_in_force(answer);
    json_decref(answer);
    return cli_finish(status);
}

static void print_rows(const json_t *list, bool changes)
{
    if (changes)
        print_table(list, change_columns, sizeof change_columns / sizeof *change_columns);
    else
        print_table(list, entry_columns, sizeof entry_columns / sizeof *entry_columns);
}

/* list, show and history: a path, whose answer has an array of that name. */
static int show(const struct standing_options *options, const struct caller *caller,
                const char *path, const char *name, bool changes)
{
    char count[24], skip[24];
    const struct admin_parameter parameters[] = {
        {"kind", caller ? caller->kind : options->kind},
        {"value", caller ? caller->value : NULL},
        {"level", options->level},
        {"count", count},
        {"skip", skip},
    };
    json_t *answer;
    int status;

    snprintf(count, sizeof count, "%" PRIu64, options->count);
    snprintf(skip, sizeof skip, "%" PRIu64, options->skip);
    status = call(options, "GET", path, parameters, 5, NULL, &answer);
    if (status == EXIT_SUCCESS && options->json) {
        json_dumpf(answer, stdout, JSON_INDENT(1));
        putchar('\n');
    } else if (status == EXIT_SUCCESS) {
        if (json_object_get(answer, "in_force"))
            print_in_force(answer);
        print_rows(json_object_get(answer, name), changes);
        print_all(json_object_get(answer, "penalties"), print_step);
        print_rows(json_object_get(answer, "moves"), true);
    }
    json_decref(answer);
    return cli_finish(status);
}

/* --- Commands --------------------------------------------------------------------------------- */

/* Reads options and arguments; false: the command ends with *status. */
static bool read_options(const struct cli_syntax *syntax, int *argc, char ***argv,
                         struct standing_options *options, int *status)
{
    int first;

    *options = (struct standing_options){
        .access = admin_access_default(), .by = user_name(), .count = 100};
    first = cli_read_options(syntax, *argc, *argv, options, status);
    if (first < 0)
        return false;
    in_utc = options->utc;
    *argc -= first;
    *argv += first;
    return true;
}

/* A caller, and where `timed` a duration behind it. */
static int change(const struct cli_syntax *syntax, int argc, char **argv, const char *level,
                  const char *level_for_ever)
{
    struct standing_options options;
    uint64_t duration_ms = 0;
    struct caller caller;
    int status;

    if (!read_options(syntax, &argc, &argv, &options, &status))
        return status;
    if (argc < 1 || argc > (level ? 2 : 1))
        return cli_usage_error(syntax->command,
                               level ? "give a caller, and perhaps a duration" : "give one caller");
    if (!read_caller(argv[0], &caller))
        return cli_usage_error(syntax->command, "'%s': not ADDRESS or KIND=VALUE", argv[0]);
    if (argc == 2 && !read_duration(argv[1], &duration_ms))
        return cli_usage_error(syntax->command, "'%s': not a duration such as 10m, 12h or 7d",
                               argv[1]);
    if (!level)
        return clear(&options, &caller);
    return set(&options, &caller, duration_ms > 0 ? level : level_for_ever, duration_ms);
}

int weir_command_ban(int argc, char **argv)
{
    return change(&ban_syntax, argc, argv, "suspended", "revoked");
}

int weir_command_unban(int argc, char **argv)
{
    return change(&unban_syntax, argc, argv, NULL, NULL);
}

int weir_command_allow(int argc, char **argv)
{
    return change(&allow_syntax, argc, argv, "trusted", "trusted");
}

static int set_level(const struct standing_options *options, const struct caller *caller, int argc,
                     char **argv)
{
    uint64_t duration_ms = 0;

    if (argc < 1 || argc > 2)
        return cli_usage_error("standing", "set: give a caller, a level, and perhaps a duration");
    if (argc == 2 && !read_duration(argv[1], &duration_ms))
        return cli_usage_error("standing", "'%s': not a duration such as 10m, 12h or 7d", argv[1]);
    return set(options, caller, argv[0], duration_ms);
}

int weir_command_standing(int argc, char **argv)
{
    struct standing_options options;
    struct caller caller;
    const char *what;
    int status;

    if (!read_options(&standing_syntax, &argc, &argv, &options, &status))
        return status;
    what = argc > 0 ? argv[0] : "list";
    if (argc > 1 && !read_caller(argv[1], &caller))
        return cli_usage_error("standing", "'%s': not ADDRESS or KIND=VALUE", argv[1]);
    if (!strcmp(what, "list") && argc <= 1)
        return show(&options, NULL, "/v1/standing", "entries", false);
    if (!strcmp(what, "history") && argc <= 2)
        return show(&options, argc == 2 ? &caller : NULL, "/v1/standing/history", "changes", true);
    if (!strcmp(what, "show") && argc == 2)
        return show(&options, &caller, "/v1/standing", "entries", false);
    if (!strcmp(what, "clear") && argc == 2)
        return clear(&options, &caller);
    if (!strcmp(what, "set") && argc >= 2)
        return set_level(&options, &caller, argc - 2, argv + 2);
    return cli_usage_error("standing",
                           "'%s': use list, show CALLER, set CALLER LEVEL [DURATION], "
                           "clear CALLER or history [CALLER]",
                           what);
}
