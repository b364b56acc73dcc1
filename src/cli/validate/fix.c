/* SPDX-License-Identifier: Apache-2.0 */
/* see fix.h */
#include "cli/validate/fix.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "rules/load/document.h"

#define ROUNDS 8 /* of one text there may be several things to escape */

/* A text that grows by insertions. */
struct draft {
    char *text;
    size_t size;
    bool failed; /* out of memory */
    uint32_t changes;
};

static void insert(struct draft *draft, size_t at, const char *text, size_t size)
{
    char *grown = draft->failed ? NULL : realloc(draft->text, draft->size + size + 1);
    if (!grown) {
        draft->failed = true;
        return;
    }
    memmove(grown + at + size, grown + at, draft->size - at);
    memcpy(grown + at, text, size);
    draft->text = grown;
    draft->size += size;
    grown[draft->size] = '\0';
    draft->changes++;
}

/* --- Backslashes ------------------------------------------------------------------------------ */

/* The place of a line and column; columns count characters (UTF-8). */
static size_t place_of(const struct draft *draft, uint32_t line, uint32_t column)
{
    size_t at = 0;
    for (; line > 1 && at < draft->size; at++)
        line -= draft->text[at] == '\n';
    for (; column > 1 && at < draft->size; column--)
        for (at++; at < draft->size && ((unsigned char)draft->text[at] & 0xC0) == 0x80; at++)
            ;
    return at;
}

/* Puts a backslash before a byte of a scalar. What YAML itself escapes is left alone. */
static void escape(struct draft *draft, const struct weir_problem *problem)
{
    size_t at = place_of(draft, problem->line, problem->column);
    char quote = at < draft->size ? draft->text[at] : '\0';
    bool quoted = quote == '"' || quote == '\'';
    at += quoted;
    for (uint32_t i = 0; i < problem->fix_at && at < draft->size; i++, at++) {
        bool doubled = quoted && draft->text[at] == quote && quote == '\'';
        bool backslash = quote == '"' && draft->text[at] == '\\';
        if (draft->text[at] == '\n' || (backslash && !strchr("\\\"", draft->text[at + 1])))
            return;
        at += doubled || backslash;
    }
    if (at < draft->size)
        insert(draft, at, "\\\\", quote == '"' ? 2 : 1);
}

/* --- `attributes` ----------------------------------------------------------------------------- */

/* The line that begins with a word, or SIZE_MAX. */
static size_t find_line(const struct draft *draft, const char *word)
{
    size_t size = strlen(word);
    for (size_t at = 0; at + size <= draft->size;) {
        if (memcmp(draft->text + at, word, size) == 0)
            return at;
        const char *end = memchr(draft->text + at, '\n', draft->size - at);
        if (!end)
            break;
        at = (size_t)(end - draft->text) + 1;
    }
    return SIZE_MAX;
}

static size_t end_of_line(const struct draft *draft, size_t at)
{
    const char *end = memchr(draft->text + at, '\n', draft->size - at);
    return end ? (size_t)(end - draft->text) : draft->size;
}

/* The first line that is neither empty nor a comment nor what opens a document. */
static size_t find_content(const struct draft *draft)
{
    size_t at = 0;
    while (at < draft->size) {
        size_t end = end_of_line(draft, at);
        bool marker = end - at >= 3 && memcmp(draft->text + at, "---", 3) == 0;
        if (end > at && draft->text[at] != '#' && !marker)
            break;
        at = end + 1;
    }
    return at < draft->size ? at : draft->size;
}

/* Adds a name to the list that begins on this line, if it is of one line: [a, b]. */
static bool add_to_list(struct draft *draft, size_t line, const char *name)
{
    size_t first = line + strcspn(draft->text + line, "[\n");
    size_t last = line + strcspn(draft->text + line, "]\n");
    if (draft->text[first] != '[' || draft->text[last] != ']')
        return false;
    char text[160];
    bool empty = strspn(draft->text + first + 1, " ") == last - first - 1;
    int size = snprintf(text, sizeof text, "%s%s", empty ? "" : ", ", name);
    insert(draft, last, text, (size_t)size);
    return true;
}

/* Adds an item before the first one of a list of several lines. */
static bool add_item(struct draft *draft, size_t line, const char *name)
{
    size_t next = end_of_line(draft, line) + 1;
    if (next >= draft->size)
        return false;
    size_t indent = strspn(draft->text + next, " ");
    if (draft->text[next + indent] != '-')
        return false;
    char text[200];
    int size = snprintf(text, sizeof text, "%.*s- %s\n", (int)(indent < 32 ? indent : 32),
                        "                                ", name);
    insert(draft, next, text, (size_t)size);
    return true;
}

static void declare(struct draft *draft, const char *name)
{
    static const char key[] = "attributes:";
    size_t line = find_line(draft, key);
    if (line != SIZE_MAX) {
        if (!add_to_list(draft, line, name))
            (void)add_item(draft, line, name);
        return;
    }
    size_t version = find_line(draft, "version:");
    size_t at = version != SIZE_MAX ? end_of_line(draft, version) + 1 : find_content(draft);
    char text[160];
    int size = snprintf(text, sizeof text, "%s [%s]\n", key, name);
    if (at <= draft->size)
        insert(draft, at, text, (size_t)size);
}

/* --- The whole -------------------------------------------------------------------------------- */

char *cli_fix_text(const char *text, size_t size, const struct weir_problems *problems,
                   size_t *fixed_size)
{
    struct draft draft = {.text = malloc(size + 1), .size = size};
    if (!draft.text)
        return NULL;
    memcpy(draft.text, text, size);
    draft.text[size] = '\0';
    /* From the end, so that no line or column that is still needed moves. */
    for (uint32_t i = problems->count; i > 0; i--)
        if (problems->list[i - 1].fix == WEIR_FIX_ESCAPE)
            escape(&draft, &problems->list[i - 1]);
    for (uint32_t i = 0; i < problems->count; i++)
        if (problems->list[i].fix == WEIR_FIX_DECLARE)
            declare(&draft, problems->list[i].fix_text);
    if (draft.failed || draft.changes == 0) {
        free(draft.text);
        return NULL;
    }
    *fixed_size = draft.size;
    return draft.text;
}

/* Loads a text as the file; how much of it is deprecated, or a negative error. */
static int64_t judge(const char *path, const char *text, size_t size,
                     struct weir_problems *problems)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
    struct weir_rules *rules = NULL;
    int error =
        folder ? weir_rules_parse(&rules, path, folder, text, size, problems) : WEIR_ERR_MEMORY;
    int64_t deprecated = error < 0 ? error : (int64_t)weir_rules_deprecated(rules);
    weir_rules_unref(rules);
    free(folder);
    return deprecated;
}

/* Changes *text until there is nothing left to fix. Returns how much less is deprecated. */
static int64_t fix_all(const char *path, char **text, size_t *size)
{
    struct weir_problems problems = {0};
    int64_t first = judge(path, *text, *size, &problems), left = first;
    for (int round = 0; round < ROUNDS && left > 0; round++) {
        size_t fixed_size;
        char *fixed = cli_fix_text(*text, *size, &problems, &fixed_size);
        struct weir_problems after = {0};
        int64_t now = fixed ? judge(path, fixed, fixed_size, &after) : -1;
        weir_problems_free(&problems);
        problems = after;
        bool better = now >= 0 && now <= left;
        if (!better) {
            free(fixed);
            break;
        }
        free(*text);
        *text = fixed;
        *size = fixed_size;
        left = now;
    }
    weir_problems_free(&problems);
    return first > 0 ? first - left : 0;
}

/* Writes beside the file, then puts it in its place. */
static int replace(const char *path, const char *text, size_t size, struct weir_reason *reason)
{
    struct stat old;
    char *real = realpath(path, NULL), *beside = NULL;
    if (!real || stat(real, &old) != 0 || asprintf(&beside, "%s.XXXXXX", real) < 0) {
        snprintf(reason->text, sizeof reason->text, "%s", strerror(errno));
        free(real);
        return WEIR_ERR_IO;
    }
    int file = mkostemp(beside, O_CLOEXEC);
    bool good = file >= 0 && fchmod(file, old.st_mode & 07777) == 0 &&
                (fchown(file, old.st_uid, old.st_gid) == 0 || old.st_uid == geteuid()) &&
                write(file, text, size) == (ssize_t)size && fsync(file) == 0;
    int error = errno;
    if (file >= 0 && close(file) != 0)
        good = false;
    if (good && rename(beside, real) != 0) {
        error = errno;
        good = false;
    }
    if (!good) {
        snprintf(reason->text, sizeof reason->text, "%s", strerror(error));
        if (file >= 0)
            unlink(beside);
    }
    free(beside);
    free(real);
    return good ? 0 : WEIR_ERR_IO;
}

static char *read_all(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    char *text = malloc(RULES_FILE_MAX + 1);
    if (file && text)
        *size = fread(text, 1, RULES_FILE_MAX + 1, file);
    if (!file || !text || ferror(file)) {
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    return text;
}

int cli_fix_rules(const char *path)
{
    size_t size = 0;
    char *text = read_all(path, &size);
    if (!text)
        return 0; /* loading it says why */
    struct weir_reason reason = {{0}};
    int64_t fixed = fix_all(path, &text, &size);
    int error = fixed > 0 ? replace(path, text, size, &reason) : 0;
    if (error < 0)
        cli_error("%s: cannot write the file: %s", path, reason.text);
    else if (fixed > 0)
        printf("%s: fixed %" PRId64 " line%s\n", path, fixed, fixed == 1 ? "" : "s");
    free(text);
    return error;
}
