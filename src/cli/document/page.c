/* SPDX-License-Identifier: Apache-2.0 */
/* see page.h */
#include "cli/document/page.h"

#include <string.h>

#define TEXT_MAX 4096 /* of a cell: some hundred paths */
#define CUT " ..."

struct page {
    FILE *out;
    bool html;
};

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}th,td{border:1px solid #8888;padding:.3em .6em;"
    "text-align:left;vertical-align:top}@media(prefers-color-scheme:dark){body{background:#111;"
    "color:#eee}}";

/* Text of the rules, or of weir's own: no character of it is markup. */
static void text(const struct page *page, const char *value)
{
    for (; *value != '\0'; value++) {
        switch (*value) {
        case '&':
            fputs("&amp;", page->out);
            break;
        case '<':
            fputs("&lt;", page->out);
            break;
        case '>':
            fputs("&gt;", page->out);
            break;
        case '"':
            fputs(page->html ? "&quot;" : "\"", page->out);
            break;
        case '`':
        case '*':
        case '_':
        case '|':
        case '[':
        case ']':
        case '\\':
            if (!page->html)
                putc('\\', page->out);
            putc(*value, page->out);
            break;
        case '\n':
            putc(' ', page->out);
            break;
        default:
            putc(*value, page->out);
        }
    }
}

static void heading(const struct page *page, int level, const char *value)
{
    if (page->html)
        fprintf(page->out, "<h%d>", level);
    else
        fprintf(page->out, "%.*s ", level, "###");
    text(page, value);
    if (page->html)
        fprintf(page->out, "</h%d>\n", level);
    else
        fputs("\n\n", page->out);
}

static void paragraph(const struct page *page, const char *value)
{
    fputs(page->html ? "<p>" : "", page->out);
    text(page, value);
    fputs(page->html ? "</p>\n" : "\n\n", page->out);
}

/* A table is opened with its first row; `cells` ends with NULL. */
static void row(const struct page *page, bool first, const char *const *cells)
{
    const char *tag = first ? "th" : "td";

    if (page->html && first)
        fputs("<table>\n", page->out);
    fputs(page->html ? "<tr>" : "|", page->out);
    for (size_t i = 0; cells[i]; i++) {
        if (page->html)
            fprintf(page->out, "<%s>", tag);
        else
            putc(' ', page->out);
        text(page, cells[i]);
        if (page->html)
            fprintf(page->out, "</%s>", tag);
        else
            fputs(" |", page->out);
    }
    fputs(page->html ? "</tr>\n" : "\n", page->out);
    if (!page->html && first) {
        putc('|', page->out);
        for (size_t i = 0; cells[i]; i++)
            fputs("---|", page->out);
        putc('\n', page->out);
    }
}

static void end_table(const struct page *page)
{
    fputs(page->html ? "</table>\n" : "\n", page->out);
}

/* Appends; what finds no room, and all after it, becomes CUT. */
static void add(char line[TEXT_MAX], const char *separator, const char *value)
{
    size_t used = strlen(line), end = strlen(CUT);
    bool is_cut = used >= end && !strcmp(line + used - end, CUT);

    if (is_cut)
        return;
    if (used + strlen(separator) + strlen(value) + end >= TEXT_MAX)
        memcpy(line + used, CUT, end + 1);
    else
        snprintf(line + used, TEXT_MAX - used, "%s%s", used > 0 ? separator : "", value);
}

/* Appends without the backticks of what is quoted. */
static void add_plain(char line[TEXT_MAX], const char *value)
{
    char plain[TEXT_MAX];
    size_t used = 0;

    for (; *value != '\0' && used < TEXT_MAX - 1; value++)
        if (*value != '`')
            plain[used++] = *value;
    plain[used] = '\0';
    add(line, "", plain);
}

static const char *string_of(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value ? value : "";
}

static void join(char line[TEXT_MAX], const json_t *list, const char *separator)
{
    line[0] = '\0';
    for (size_t i = 0; i < json_array_size(list); i++)
        add(line, separator, json_string_value(json_array_get(list, i)));
}

/* "GET, HEAD /games/:id", "any other request". */
static void write_requests(const json_t *limit, char line[TEXT_MAX])
{
    char part[TEXT_MAX];
    const json_t *conditions = json_object_get(limit, "conditions");

    join(line, json_object_get(limit, "methods"), ", ");
    join(part, json_object_get(limit, "paths"), ", ");
    add(line, " ", part[0] != '\0' ? part : line[0] != '\0' ? "on any path" : "all requests");
    for (size_t i = 0; i < json_array_size(conditions); i++) {
        const json_t *one = json_array_get(conditions, i);
        add(line, i == 0 ? "; only where " : " and ", string_of(one, "name"));
        add(line, " is ", "");
        add_plain(line, string_of(one, "wanted"));
    }
    join(part, json_object_get(limit, "unless"), ", ");
    if (part[0] != '\0')
        add(line, "; unless counted by ", part);
    if (string_of(limit, "when")[0] != '\0')
        add(line, "; ", string_of(limit, "when"));
}

/* "1", "10 for POST /export, else 1", "as `tokens` says". */
static void write_cost(const json_t *limit, char line[TEXT_MAX])
{
    const json_t *costs = json_object_get(limit, "costs");
    char number[64];

    line[0] = '\0';
    if (json_object_get(limit, "cost_from")) {
        add(line, "", string_of(limit, "cost_from"));
        return;
    }
    for (size_t i = 0; i < json_array_size(costs); i++) {
        const json_t *one = json_array_get(costs, i);
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT " for ",
                 json_integer_value(json_object_get(one, "cost")));
        add(line, ", ", number);
        add(line, "", string_of(one, "method"));
        add(line, string_of(one, "method")[0] != '\0' ? " " : "", string_of(one, "path"));
    }
    snprintf(number, sizeof number, "%s%" JSON_INTEGER_FORMAT, line[0] != '\0' ? "else " : "",
             json_integer_value(json_object_get(limit, "cost")));
    add(line, ", ", number);
}

/* The rates of one plan, for calls of one cost (NULL: for units); all of them hold at one time. */
static void write_rates(const json_t *rates, const char *cost, char line[TEXT_MAX])
{
    line[0] = '\0';
    for (size_t i = 0; i < json_array_size(rates); i++) {
        const json_t *one = json_array_get(rates, i);
        add(line, ", and ",
            cost ? string_of(json_object_get(one, "calls"), cost) : string_of(one, "text"));
    }
    if (line[0] == '\0')
        add(line, "", "unlimited");
}

static void write_limits(const struct page *page, const json_t *limits)
{
    static const char *const names[] = {"requests", "limit",        "counted for each",
                                        "units",    "a call costs", NULL};

    row(page, true, names);
    for (size_t i = 0; i < json_array_size(limits); i++) {
        const json_t *limit = json_array_get(limits, i);
        const json_t *rates = json_object_get(limit, "rates");
        char requests[TEXT_MAX], key[TEXT_MAX], units[TEXT_MAX], cost[TEXT_MAX];
        write_requests(limit, requests);
        join(key, json_object_get(limit, "key"), " and ");
        write_rates(json_object_get(rates, ""), NULL, units);
        write_cost(limit, cost);
        row(page, false,
            (const char *const[]){requests, string_of(limit, "name"), key[0] != '\0' ? key : "all",
                                  json_object_get(rates, "") ? units : "as the plan says", cost,
                                  NULL});
    }
    end_table(page);
}

/* What each plan affords: a row for each limit by plan, plan and cost. */
static void write_plans(const struct page *page, const json_t *limits)
{
    static const char *const names[] = {"plan", "limit", "a call costs", "calls", NULL};
    bool any = false;

    for (size_t i = 0; i < json_array_size(limits); i++) {
        const json_t *limit = json_array_get(limits, i), *rates, *first;
        const char *plan, *cost;
        json_t *all = json_object_get(limit, "rates"), *calls;
        json_object_foreach(all, plan, calls)
        {
            rates = calls;
            first = json_object_get(json_array_get(rates, 0), "calls");
            bool each = json_object_size(first) > 0; /* else each call says its own cost */
            json_t *units = json_pack("{s:s}", first ? "1" : "any", ""), *value;
            json_t *of = each ? (json_t *)first : units;
            json_object_foreach(of, cost, value)
            {
                char line[TEXT_MAX];
                if (plan[0] == '\0' && json_object_size(of) < 2)
                    continue; /* in the table of limits */
                if (!any) {
                    heading(page, 2, "What calls you get");
                    row(page, true, names);
                }
                any = true;
                write_rates(rates, each ? cost : NULL, line);
                row(page, false,
                    (const char *const[]){plan[0] != '\0' ? plan : "all", string_of(limit, "name"),
                                          cost, line, NULL});
            }
            json_decref(units);
        }
    }
    if (any)
        end_table(page);
}

static void write_answers(const struct page *page, const json_t *model)
{
    const json_t *fields = json_object_get(model, "fields");

    heading(page, 2, "What answers say");
    row(page, true, (const char *const[]){"field", "meaning", NULL});
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *one = json_array_get(fields, i);
        row(page, false,
            (const char *const[]){string_of(one, "name"), string_of(one, "text"), NULL});
    }
    row(page, false,
        (const char *const[]){"Retry-After",
                              "of a denied request: seconds until the same request is admitted",
                              NULL});
    end_table(page);
}

static void write_denials(const struct page *page, const json_t *limits)
{
    char charged[TEXT_MAX] = "", line[TEXT_MAX];

    heading(page, 2, "When a limit is used up");
    paragraph(page, "A request is denied if one of its limits has no room for it, with status 429 "
                    "unless stated otherwise, Retry-After, and a body of problem details (RFC "
                    "9457, application/problem+json). One that passes is charged to all its "
                    "limits.");
    for (size_t i = 0; i < json_array_size(limits); i++) {
        const json_t *limit = json_array_get(limits, i);
        json_int_t status = json_integer_value(json_object_get(limit, "status"));
        if (status != 429) {
            snprintf(line, sizeof line, "Denials by %.80s have status %" JSON_INTEGER_FORMAT ".",
                     string_of(limit, "name"), status);
            paragraph(page, line);
        }
        json_int_t above = json_integer_value(json_object_get(limit, "above_status"));
        if (above != status) {
            snprintf(line, sizeof line,
                     "A call that costs more than %.80s ever has is denied with status "
                     "%" JSON_INTEGER_FORMAT ": no wait helps.",
                     string_of(limit, "name"), above);
            paragraph(page, line);
        }
        if (strcmp(string_of(limit, "body"), "application/problem+json") != 0) {
            snprintf(line, sizeof line, "Denials by %.80s have a body of type %.200s.",
                     string_of(limit, "name"), string_of(limit, "body"));
            paragraph(page, line);
        }
        if (json_is_true(json_object_get(limit, "charged_when_denied")))
            add(charged, ", ", string_of(limit, "name"));
    }
    heading(page, 2, "Fair use");
    if (charged[0] != '\0') {
        snprintf(line, sizeof line,
                 "Denied requests count, too, in: %.3900s. Others cost nothing when denied.",
                 charged);
        paragraph(page, line);
    } else {
        paragraph(page, "Denied requests cost nothing.");
    }
    paragraph(page,
              "Wait for Retry-After before the next try, and no shorter; where it is missing, "
              "wait longer after each failure, by a random part. Spread what you send over "
              "the window instead of using it up at its beginning.");
}

void document_page(FILE *out, const struct document_labels *labels, const json_t *model)
{
    struct page page = {out, labels->html};
    const json_t *limits = json_object_get(model, "limits");

    if (labels->html) {
        fputs("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
              "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
              out);
        text(&page, labels->title);
        fprintf(out, "</title>\n<style>%s</style>\n", style);
    }
    heading(&page, 1, labels->title);
    paragraph(&page, "A request meets every limit whose line it is in. Units come back as the "
                     "limit says.");
    write_limits(&page, limits);
    write_plans(&page, limits);
    write_answers(&page, model);
    write_denials(&page, limits);
}
