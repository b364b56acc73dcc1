/* SPDX-License-Identifier: Apache-2.0 */
/* The server linked without one feature: its line of services/list.c is a service that does
 * nothing (meson.build, which also says FEATURE, its name, and KEYWORDS, how many need it or a
 * feature that needs it). It starts, answers, and stops, and refuses each of these keywords by its
 * name. Without any left out, it refuses none. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "rules/load/grammar.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/load/schema.h"
#include "rules/load/server/settings.h"
#include "rules/rules.h"
#include "server/daemon/server.h"
#include "server/daemon/services/list.h"
#include "server/service.h"
#include "temporary.h"
#include "test.h"

extern const struct weir_service weir_service_without;
const struct weir_service weir_service_without = {.name = "without"};

#define TRIES 3000 /* of 20 ms: a minute */

static char folder[TEMPORARY_MAX];

static void serve(void)
{
    char text[512];
    snprintf(text, sizeof text,
             "version: 1\n"
             "server: { http: \"off\", admin: \"unix:%s/admin\", workers: 1 }\n"
             "limits:\n"
             "  - { name: one, key: [client.ip], rate: 10/s }\n",
             folder);
    const struct weir_server_options options = {.config_text = text};
    _exit(weir_server_run(&options));
}

/* --- Keywords --------------------------------------------------------------------------------- */

/* A place of keywords: a file has one in its second line, between these texts. */
struct place {
    const struct rules_section *section;
    const char *before, *after;
};
static const struct place places[] = {
    {&rules_section_file, "version: 1\n", ": {}\nlimits: []\n"},
    {&rules_section_server, "version: 1\nserver: { ", ": {} }\nlimits: []\n"},
    {&rules_section_limit, "limits:\n  - { name: a, key: [], rate: 1/s, ", ": {} }\n"},
};
#define PLACES (sizeof places / sizeof *places)

static bool is_lost(const struct rules_keyword *keyword)
{
    return keyword->feature && !weir_services_have(keyword->feature);
}

/* Whether the loader refuses the keyword for the want of its feature. */
static bool refused(const struct place *place, const struct rules_keyword *keyword)
{
    char text[256], expected[256];
    bool found = false;
    struct weir_rules *rules = NULL;
    struct weir_problems problems = {.has = weir_services_have};
    int size = snprintf(text, sizeof text, "%s%s%s", place->before, keyword->name, place->after);
    snprintf(expected, sizeof expected,
             "`%s` needs the feature %s, without which this weir is built", keyword->name,
             keyword->feature);
    int err = weir_rules_parse(&rules, "rules.yaml", ".", text, (size_t)size, &problems);
    for (uint32_t i = 0; i < problems.count; i++)
        found |= problems.list[i].line == 2 && strcmp(problems.list[i].message, expected) == 0;
    assert_true(err == WEIR_ERR_RULES || !found);
    weir_rules_unref(rules);
    weir_problems_free(&problems);
    return found;
}

TEST("it refuses the keywords of the feature by name and no others")
{
    unsigned count = 0;
    for (size_t p = 0; p < PLACES; p++)
        for (uint32_t i = 0; i < places[p].section->count; i++) {
            const struct rules_keyword *keyword = &places[p].section->keywords[i];
            if (keyword->feature && refused(&places[p], keyword) != is_lost(keyword))
                fail_msg("%s", keyword->name);
            count += is_lost(keyword);
        }
    assert_int_equal(count, KEYWORDS);
}

/* What the JSON Schema says of the keywords of a place. */
static const json_t *properties_of(const json_t *whole, const struct place *place)
{
    const json_t *at = whole;
    if (place->section == &rules_section_server)
        at = json_object_get(json_object_get(at, "properties"), "server");
    else if (place->section == &rules_section_limit)
        at = json_object_get(json_object_get(json_object_get(at, "properties"), "limits"), "items");
    return json_object_get(at, "properties");
}

TEST("the JSON Schema lists the keywords that the program obeys and no others")
{
    json_t *whole = rules_schema(false, weir_services_have), *all = rules_schema(false, NULL);
    for (size_t p = 0; p < PLACES; p++) {
        const json_t *properties = properties_of(whole, &places[p]);
        assert_non_null(properties);
        for (uint32_t i = 0; i < places[p].section->count; i++) {
            const struct rules_keyword *keyword = &places[p].section->keywords[i];
            if (!json_object_get(properties_of(all, &places[p]), keyword->name))
                continue; /* it is not in this place */
            if (!json_object_get(properties, keyword->name) != is_lost(keyword))
                fail_msg("%s", keyword->name);
        }
    }
    assert_int_equal(json_equal(whole, all), KEYWORDS == 0);
    json_decref(whole);
    json_decref(all);
}

static bool is_service(const char *name)
{
    bool found = strcmp(name, FEATURE) == 0;
    for (size_t i = 0; weir_services[i]; i++)
        found |= strcmp(name, weir_services[i]->name) == 0;
    return found;
}

TEST("keywords need services that there are")
{
    for (size_t p = 0; p < PLACES; p++)
        for (uint32_t i = 0; i < places[p].section->count; i++) {
            const char *feature = places[p].section->keywords[i].feature;
            if (feature && !is_service(feature))
                fail_msg("%s: %s", places[p].section->keywords[i].name, feature);
        }
}

/* --- The server ------------------------------------------------------------------------------- */

/* Asks over the admin socket; whether the reply has the text. */
static bool answers(const char *path, const char *expected)
{
    char text[65536] = {0}, request[128];
    size_t size = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/admin", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        write(fd, request, (size_t)length) == length)
        for (ssize_t n; (n = read(fd, text + size, sizeof text - 1 - size)) > 0;)
            size += (size_t)n;
    close(fd);
    return strstr(text, expected);
}

TEST("the list lacks the feature")
{
    unsigned without = 0;
    for (size_t i = 0; weir_services[i]; i++)
        without += weir_services[i] == &weir_service_without;
    assert_int_equal(without, strcmp(FEATURE, "") != 0);
}

/* The first keyword of the feature, and its place; NULL: it has none. */
static const struct rules_keyword *first_keyword(const struct place **place)
{
    for (size_t p = 0; p < PLACES; p++)
        for (uint32_t i = 0; i < places[p].section->count; i++) {
            *place = &places[p];
            if (is_lost(&places[p].section->keywords[i]))
                return &places[p].section->keywords[i];
        }
    return NULL;
}

TEST("it does not start by rules that need the feature")
{
    char text[256], said[4096] = {0}, expected[256];
    const struct place *place;
    const struct rules_keyword *keyword = first_keyword(&place);
    int ends[2], status = 0;
    size_t size = 0;
    assert_int_equal(keyword != NULL, KEYWORDS > 0);
    if (!keyword)
        return;
    snprintf(text, sizeof text, "%s%s%s", place->before, keyword->name, place->after);
    snprintf(expected, sizeof expected, "`%s` needs the feature %s,", keyword->name,
             keyword->feature);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct weir_server_options options = {.config_text = text};
        dup2(ends[1], STDERR_FILENO);
        _exit(weir_server_run(&options));
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], said + size, sizeof said - 1 - size)) > 0;)
        size += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_non_null(strstr(said, "weir: (environment):2:"));
    assert_non_null(strstr(said, expected));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

TEST("it starts answers and stops")
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int status = -1;
    bool up = false;
    temporary_folder(folder);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        serve();
    for (int i = 0; i < TRIES && !up; i++) {
        up = answers("/healthz", "ok\n");
        if (!up && waitpid(child, &status, WNOHANG) == child)
            fail_msg("it ended: status %d", status);
        nanosleep(&pause, NULL);
    }
    bool metrics = up && answers("/metrics", "weir_decisions_total{limit=\"one\"");
    bool ready = up && answers("/readyz", "ready\n");
    kill(child, SIGTERM);
    assert_int_equal(waitpid(child, &status, 0), child);
    temporary_remove(folder);
    assert_true(up);
    assert_true(metrics);
    assert_true(ready);
    assert_int_equal(status, 0);
}

RUN_TESTS()
