/* SPDX-License-Identifier: Apache-2.0 */
/* see module.h */
#include "nginx/module.h"

#include <ctype.h>

#include "nginx/check.h"
#include "nginx/decide.h"
#include "nginx/metrics.h"
#include "nginx/request.h"
#include "nginx/variables.h"

#define MODE_BITS 0666u

/* --- Directives ------------------------------------------------------------------------------- */

static char *set_path(ngx_conf_t *cf, ngx_str_t *path)
{
    const ngx_str_t *args = cf->args->elts;
    if (path->data)
        return (char *)(uintptr_t) "is duplicate";
    *path = args[1];
    return ngx_conf_full_name(cf->cycle, path, 1) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static char *set_rules(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    struct weir_ngx_main *main = conf;
    return set_path(cf, &main->rules);
}

/* "660" and "0660": bits to read and write, and those of the owner. */
static bool parse_mode(const ngx_str_t *text, ngx_uint_t *mode)
{
    *mode = 0;
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] < '0' || text->data[i] > '7')
            return false;
        *mode = *mode << 3 | (ngx_uint_t)(text->data[i] - '0');
    }
    return (text->len == 3 || text->len == 4) && (*mode & 0600) == 0600 &&
           (*mode & ~MODE_BITS) == 0;
}

/* One option of `weir_state`: false where it is none. */
static bool set_state_option(struct weir_ngx_main *main, ngx_str_t option)
{
    static const char *const names[] = {"size=", "mode=", "group=", "owner="};
    for (unsigned i = 0; i < 4; i++) {
        size_t size = ngx_strlen(names[i]);
        if (option.len <= size || ngx_strncmp(option.data, names[i], size) != 0)
            continue;
        ngx_str_t value = {option.len - size, option.data + size};
        if (i == 0)
            return (main->state_bytes = ngx_parse_offset(&value)) > 0;
        if (i == 1)
            return parse_mode(&value, &main->state_mode);
        *(i == 2 ? &main->group : &main->owner) = value;
        return true;
    }
    return false;
}

static char *set_state(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    struct weir_ngx_main *main = conf;
    const ngx_str_t *args = cf->args->elts;
    for (ngx_uint_t i = 2; i < cf->args->nelts; i++)
        if (!set_state_option(main, args[i])) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "weir_state: \"%V\" is none of size=64m, mode=0660, group=NAME, "
                               "owner=NAME",
                               &args[i]);
            return NGX_CONF_ERROR;
        }
    return set_path(cf, &main->state);
}

static char *set_on(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    struct weir_ngx_location *location = conf;
    struct weir_ngx_main *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    char *result = ngx_conf_set_flag_slot(cf, command, conf);
    if (result == NGX_CONF_OK && location->on)
        main->used = true;
    return result;
}

/* A value that must become a whole number; a constant that is none is seen now, and counts as if it
 * were not there. */
static char *set_number(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    struct weir_ngx_main *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    ngx_http_complex_value_t **place = (void *)((char *)conf + command->offset);
    char *result = ngx_http_set_complex_value_slot(cf, command, conf);
    if (result != NGX_CONF_OK || (*place)->lengths)
        return result;
    ngx_str_t *text = &(*place)->value;
    if (text->len > 0 && ngx_atoof(text->data, text->len) == NGX_ERROR) {
        weir_ngx_note(main, cf->pool, "%V: \"%V\" is not a whole number in %V:%ui", &command->name,
                      text, &cf->conf_file->file.name, cf->conf_file->line);
        *place = NULL;
    }
    return result;
}

/* Once the rules are read, weir_ngx_check_names looks whether they know it. */
static ngx_int_t remember_name(ngx_conf_t *cf, struct weir_ngx_main *main, const ngx_str_t *name)
{
    if (!main->named)
        main->named = ngx_array_create(cf->pool, 4, sizeof(struct weir_ngx_named));
    struct weir_ngx_named *named = main->named ? ngx_array_push(main->named) : NULL;
    if (!named)
        return NGX_ERROR;
    *named = (struct weir_ngx_named){
        .name = *name, .file = cf->conf_file->file.name, .line = cf->conf_file->line};
    return NGX_OK;
}

/* Whether a value is one variable and nothing else, which is then read where it is; *name: its
 * name. */
static bool is_variable(const ngx_str_t *value, ngx_str_t *name)
{
    bool braces = value->len > 3 && value->data[1] == '{' && value->data[value->len - 1] == '}';
    if (value->len < 2 || value->data[0] != '$')
        return false;
    name->data = value->data + (braces ? 2 : 1);
    name->len = value->len - (braces ? 3 : 1);
    for (size_t i = 0; i < name->len; i++) {
        u_char c = name->data[i];
        bool captured = i == 0 && c >= '0' && c <= '9'; /* by a regular expression: $1 */
        if (captured || !(isalnum(c) || c == '_'))
            return false;
    }
    return true;
}

static char *add_attribute(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    struct weir_ngx_location *location = conf;
    struct weir_ngx_main *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    ngx_str_t *args = cf->args->elts;
    ngx_str_t name;
    ngx_http_compile_complex_value_t compile = {.cf = cf, .value = &args[2]};
    if (!location->attributes)
        location->attributes = ngx_array_create(cf->pool, 4, sizeof(struct weir_ngx_attribute));
    struct weir_ngx_attribute *attribute =
        location->attributes ? ngx_array_push(location->attributes) : NULL;
    if (!attribute || remember_name(cf, main, &args[1]) != NGX_OK)
        return NGX_CONF_ERROR;
    attribute->name = args[1];
    attribute->handle = WEIR_NGX_HANDLE_UNKNOWN;
    attribute->variable = NGX_ERROR;
    if (is_variable(&args[2], &name)) {
        attribute->variable = ngx_http_get_variable_index(cf, &name);
        return attribute->variable != NGX_ERROR ? NGX_CONF_OK : NGX_CONF_ERROR;
    }
    compile.complex_value = &attribute->value;
    return ngx_http_compile_complex_value(&compile) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static char *set_status(ngx_conf_t *cf, ngx_command_t *command, void *conf)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    if (core->handler == weir_ngx_status)
        return (char *)(uintptr_t) "is duplicate";
    core->handler = weir_ngx_status;
    return NGX_CONF_OK;
}

static ngx_conf_enum_t on_errors[] = {{ngx_string("open"), WEIR_NGX_OPEN},
                                      {ngx_string("closed"), WEIR_NGX_CLOSED},
                                      {ngx_null_string, 0}};
static ngx_conf_enum_t phases[] = {{ngx_string("preaccess"), WEIR_NGX_PREACCESS},
                                   {ngx_string("precontent"), WEIR_NGX_PRECONTENT},
                                   {ngx_null_string, 0}};

static ngx_conf_enum_t log_levels[] = {{ngx_string("info"), NGX_LOG_INFO},
                                       {ngx_string("notice"), NGX_LOG_NOTICE},
                                       {ngx_string("warn"), NGX_LOG_WARN},
                                       {ngx_string("error"), NGX_LOG_ERR},
                                       {ngx_null_string, 0}};

#define ANYWHERE (NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF)
#define IN_LOCATION NGX_HTTP_LOC_CONF_OFFSET

static ngx_command_t commands[] = {
    {ngx_string("weir_rules"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, set_rules,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("weir_state"), NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE, set_state,
     NGX_HTTP_MAIN_CONF_OFFSET, 0, NULL},
    {ngx_string("weir_on_error"), NGX_HTTP_MAIN_CONF | NGX_CONF_TAKE1, ngx_conf_set_enum_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(struct weir_ngx_main, on_error), on_errors},
    {ngx_string("weir_strict"), NGX_HTTP_MAIN_CONF | NGX_CONF_FLAG, ngx_conf_set_flag_slot,
     NGX_HTTP_MAIN_CONF_OFFSET, offsetof(struct weir_ngx_main, strict), NULL},
    {ngx_string("weir"), ANYWHERE | NGX_CONF_FLAG, set_on, IN_LOCATION,
     offsetof(struct weir_ngx_location, on), NULL},
    {ngx_string("weir_log_level"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot, IN_LOCATION,
     offsetof(struct weir_ngx_location, log_level), log_levels},
    {ngx_string("weir_cost"), ANYWHERE | NGX_CONF_TAKE1, set_number, IN_LOCATION,
     offsetof(struct weir_ngx_location, cost), NULL},
    {ngx_string("weir_settle"), ANYWHERE | NGX_CONF_TAKE1, set_number, IN_LOCATION,
     offsetof(struct weir_ngx_location, settle), NULL},
    {ngx_string("weir_attribute"), ANYWHERE | NGX_CONF_TAKE2, add_attribute, IN_LOCATION, 0, NULL},
    {ngx_string("weir_dry_run"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot, IN_LOCATION,
     offsetof(struct weir_ngx_location, dry_run), NULL},
    {ngx_string("weir_trusted"), ANYWHERE | NGX_CONF_FLAG, ngx_conf_set_flag_slot, IN_LOCATION,
     offsetof(struct weir_ngx_location, trusted), NULL},
    {ngx_string("weir_phase"), ANYWHERE | NGX_CONF_TAKE1, ngx_conf_set_enum_slot, IN_LOCATION,
     offsetof(struct weir_ngx_location, phase), phases},
    {ngx_string("weir_status"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS, set_status, IN_LOCATION, 0,
     NULL},
    ngx_null_command,
};

/* --- Configurations --------------------------------------------------------------------------- */

static void *create_main(ngx_conf_t *cf)
{
    struct weir_ngx_main *main = ngx_pcalloc(cf->pool, sizeof *main);
    if (main)
        main->on_error = NGX_CONF_UNSET_UINT;
    if (main)
        main->strict = NGX_CONF_UNSET;
    return main;
}

static char *init_main(ngx_conf_t *cf, void *conf)
{
    struct weir_ngx_main *main = conf;
    ngx_conf_init_value(main->strict, 0); /* on_error: choose_on_error, once the rules are read */
    return NGX_CONF_OK;
}

static void *create_location(ngx_conf_t *cf)
{
    struct weir_ngx_location *location = ngx_pcalloc(cf->pool, sizeof *location);
    if (!location)
        return NULL;
    location->on = NGX_CONF_UNSET;
    location->dry_run = NGX_CONF_UNSET;
    location->trusted = NGX_CONF_UNSET;
    location->phase = NGX_CONF_UNSET_UINT;
    location->log_level = NGX_CONF_UNSET_UINT;
#if nginx_version >= 1021000
    location->cost = NGX_CONF_UNSET_PTR;
    location->settle = NGX_CONF_UNSET_PTR;
#endif
    return location;
}

static char *merge_location(ngx_conf_t *cf, void *above, void *conf)
{
    const struct weir_ngx_location *parent = above;
    struct weir_ngx_location *location = conf;
    ngx_conf_merge_value(location->on, parent->on, 0);
    ngx_conf_merge_value(location->dry_run, parent->dry_run, 0);
    ngx_conf_merge_value(location->trusted, parent->trusted, 0);
    ngx_conf_merge_uint_value(location->phase, parent->phase, WEIR_NGX_PREACCESS);
    ngx_conf_merge_uint_value(location->log_level, parent->log_level, NGX_LOG_INFO);
    ngx_conf_merge_ptr_value(location->cost, parent->cost, NULL);
    ngx_conf_merge_ptr_value(location->settle, parent->settle, NULL);
    if (!location->attributes)
        location->attributes = parent->attributes;
    return NGX_CONF_OK;
}

static ngx_int_t add_handler(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handler)
{
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_handler_pt *place = ngx_array_push(&core->phases[phase].handlers);
    if (!place)
        return NGX_ERROR;
    *place = handler;
    return NGX_OK;
}

/* Where weir_on_error is absent, the rules say what happens while the state does not answer: each
 * limit by its on_store_error. Where they say nothing, requests pass until WEIR_REFUSED_FROM. */
static void choose_on_error(ngx_conf_t *cf, struct weir_ngx_main *main)
{
    const bool open_before = true; /* what the module did when the rules could not say it */
    if (main->on_error != NGX_CONF_UNSET_UINT)
        return;
    enum weir_on_store_error rules = weir_rules_on_store_error((const char *)main->rules.data);
    const char *warning = weir_on_store_error_warning(rules, open_before);
    main->rules_decide = !warning;
    main->on_error = weir_passes(WEIR_ERR_IO, rules, open_before) ? WEIR_NGX_OPEN : WEIR_NGX_CLOSED;
    if (warning)
        ngx_log_error(NGX_LOG_WARN, cf->log, 0, "weir: %s", warning);
}

/* Here, once: in workers libweir logs nothing (weir_ngx_options). */
static void warn_of_reset(ngx_conf_t *cf, const struct weir_ngx_main *main)
{
    const char *warning = weir_headers_warning((const char *)main->rules.data);
    if (warning)
        ngx_log_error(NGX_LOG_WARN, cf->log, 0, "weir_rules: %V: %s", &main->rules, warning);
}

static ngx_int_t init_configuration(ngx_conf_t *cf)
{
    struct weir_ngx_main *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_weir_module);
    if (!main->rules.data && !main->used)
        return NGX_OK;
    if (!main->rules.data || !main->state.data) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "weir: %s is missing in http { }",
                      !main->rules.data ? "weir_rules" : "weir_state");
        return NGX_ERROR;
    }
    if (weir_ngx_check_rules(cf, main) != NGX_OK || weir_ngx_check_names(cf, main) != NGX_OK)
        return NGX_ERROR;
    choose_on_error(cf, main);
    warn_of_reset(cf, main);
    if (weir_ngx_metrics_add(cf, main) != NGX_OK ||
        add_handler(cf, NGX_HTTP_PREACCESS_PHASE, weir_ngx_preaccess) != NGX_OK ||
        add_handler(cf, NGX_HTTP_PRECONTENT_PHASE, weir_ngx_precontent) != NGX_OK)
        return NGX_ERROR;
    return add_handler(cf, NGX_HTTP_LOG_PHASE, weir_ngx_request_log);
}

/* --- Processes -------------------------------------------------------------------------------- */

/* NULL: nginx has no `http`, or it does not say weir_rules. */
static struct weir_ngx_main *main_of(ngx_cycle_t *cycle)
{
    struct weir_ngx_main *main = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_weir_module);
    return main && main->rules.data ? main : NULL;
}

/* The configuration is read, the users of the workers included. An error leaves the one that runs
 * in force; init_module has none, because nginx would end by it. */
static char *check_configuration(ngx_cycle_t *cycle, void *unused)
{
    struct weir_ngx_main *main = main_of(cycle);
    if (!main || ngx_process == NGX_PROCESS_SIGNALLER)
        return NGX_CONF_OK;
    return weir_ngx_check(cycle, main) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static ngx_int_t init_module(ngx_cycle_t *cycle)
{
    struct weir_ngx_main *main = ngx_test_config ? NULL : main_of(cycle);
    if (main) {
        weir_ngx_metrics_note(main);
        weir_ngx_log_notes(cycle, main);
    }
    return NGX_OK;
}

static ngx_int_t init_process(ngx_cycle_t *cycle)
{
    struct weir_ngx_main *main = main_of(cycle);
    bool serves = ngx_process == NGX_PROCESS_WORKER || ngx_process == NGX_PROCESS_SINGLE;
    return main && serves ? weir_ngx_worker_start(cycle, main) : NGX_OK;
}

static void exit_process(ngx_cycle_t *cycle)
{
    struct weir_ngx_main *main = main_of(cycle);
    if (main)
        weir_ngx_worker_stop(main);
}

static ngx_http_module_t context = {
    weir_ngx_variables_add, init_configuration, create_main, init_main, NULL, NULL,
    create_location,        merge_location,
};

ngx_module_t ngx_http_weir_module = {
    NGX_MODULE_V1, &context, commands, NGX_HTTP_MODULE, NULL, init_module,
    init_process,  NULL,     NULL,     exit_process,    NULL, NGX_MODULE_V1_PADDING,
};

/* A module of the core alone learns when the whole configuration is read. */
static ngx_core_module_t check_context = {ngx_string("weir_check"), NULL, check_configuration};

static ngx_module_t check_module = {
    NGX_MODULE_V1, &check_context, NULL, NGX_CORE_MODULE,       NULL, NULL, NULL, NULL,
    NULL,          NULL,           NULL, NGX_MODULE_V1_PADDING,
};

ngx_module_t *ngx_modules[] = {&ngx_http_weir_module, &check_module, NULL};
char *ngx_module_names[] = {(char *)(uintptr_t) "ngx_http_weir_module",
                            (char *)(uintptr_t) "ngx_weir_check_module", NULL};
char *ngx_module_order[] = {NULL};
