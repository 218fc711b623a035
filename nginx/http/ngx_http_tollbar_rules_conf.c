/* tollbar_rules and tollbar_rules_field: which rules a level has, and how rules stay open over
 * reloads. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_rules_t rules_t;
typedef ngx_http_tollbar_rules_field_t field_t;
typedef ngx_http_tollbar_opened_t opened_t;
typedef ngx_http_tollbar_main_conf_t main_conf_t;
typedef ngx_http_tollbar_conf_t conf_t;

/* The text of a file's faults, a line for each. */
#define FAULTS_SIZE 4096
/* Keys with a debt for which the memory has room, without `keys`. */
#define KEYS 100000

static rules_t *find(ngx_array_t *all, const ngx_str_t *path);
static opened_t *former(const rules_t *rules);
static char *attach(ngx_conf_t *cf, rules_t *rules);
static char *read_option(ngx_conf_t *cf, ngx_str_t *argument, uint64_t *keys, uint32_t *room);
static char *open_file(ngx_conf_t *cf, const rules_t *rules, uint32_t flags, uint64_t keys, tollbar_rules **opened);
static void detach(void *data);
static char *next_line(char **rest);

/* tollbar_rules FILE [keys=NUMBER] [room=NUMBER] | off */
char *ngx_http_tollbar_read_rules(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    ngx_str_t *value = cf->args->elts, path = value[1];
    rules_t **place = &((conf_t *) conf)->rules;
    uint64_t keys = 0;
    uint32_t room = 0;
    ngx_uint_t n;
    char *error;

    if (*place != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }
    if (cf->args->nelts == 2 && ngx_strcmp(path.data, "off") == 0) {
        *place = NULL;
        return NGX_CONF_OK;
    }
    for (n = 2; n < cf->args->nelts; n++) {
        error = read_option(cf, &value[n], &keys, &room);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    keys = keys != 0 ? keys : KEYS;
    if (ngx_conf_full_name(cf->cycle, &path, 1) != NGX_OK || ngx_http_tollbar_rules_load(cf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    *place = find(&main->rules, &path);
    if (*place != NULL) {
        if ((*place)->keys == keys && (*place)->room == room) {
            return NGX_CONF_OK;
        }
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" has keys=%uL and room=%uD in %V:%ui, and keys=%uL and room=%uD here, the numbers must be equal",
                           &path, (*place)->keys, (*place)->room, &(*place)->where.file, (*place)->where.line, keys, room);
        return NGX_CONF_ERROR;
    }
    *place = ngx_pcalloc(cf->pool, sizeof(rules_t));
    if (*place == NULL || ngx_tollbar_conf_push(cf, &main->rules, *place) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    (*place)->where = ngx_tollbar_conf_here(cf);
    (*place)->path = path;
    (*place)->keys = keys;
    (*place)->room = room;
    error = attach(cf, *place);
    if (error != NGX_CONF_OK) {
        /* The configuration ends here, and no later step must see a file that is not open. */
        main->rules.nelts--;
    }
    return error;
}

/* Reads keys=NUMBER or room=NUMBER; 0 is none yet. */
static char *read_option(ngx_conf_t *cf, ngx_str_t *argument, uint64_t *keys, uint32_t *room)
{
    ngx_int_t number;

    if (ngx_strncmp(argument->data, "room=", 5) == 0 && *room == 0) {
        return ngx_tollbar_conf_room(cf, argument, room);
    }
    number = ngx_strncmp(argument->data, "keys=", 5) == 0 && *keys == 0 ? ngx_atoi(argument->data + 5, argument->len - 5) : NGX_ERROR;
    if (number <= 0) {
        return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\" in \"tollbar_rules\" directive, it must be keys=NUMBER, from 1 on, or room=NUMBER, "
                                       "each once", argument);
    }
    *keys = (uint64_t) number;
    return NGX_CONF_OK;
}

/* tollbar_rules_field NAME VALUE, tollbar_rules_answer NAME VALUE */
char *ngx_http_tollbar_read_rules_field(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    static const char *own[] = { "method", "path", "address", "host" };
    ngx_array_t **fields = cmd->offset == 0 ? &((conf_t *) conf)->rules_fields : &((conf_t *) conf)->rules_answers;
    ngx_str_t *value = cf->args->elts;
    ngx_http_compile_complex_value_t compile;
    field_t *field;
    ngx_uint_t n;

    for (n = 0; n < sizeof(own) / sizeof(own[0]); n++) {
        if (ngx_strcasecmp(value[1].data, (u_char *) own[n]) == 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid name \"%V\" in \"%V\" directive, nginx itself gives the method, the path, the address "
                               "and the host, so the name must be another",
                               &value[1], &cmd->name);
            return NGX_CONF_ERROR;
        }
    }
    if (*fields == NGX_CONF_UNSET_PTR) {
        *fields = ngx_array_create(cf->pool, 2, sizeof(field_t));
        if (*fields == NULL) {
            return NGX_CONF_ERROR;
        }
    }
    for (n = 0; n < (*fields)->nelts; n++) {
        field = (field_t *) (*fields)->elts + n;
        if (field->name.len == value[1].len + 1 && ngx_strncasecmp(field->name.data + 1, value[1].data, value[1].len) == 0) {
            return "is duplicate";
        }
    }
    field = ngx_array_push(*fields);
    if (field == NULL) {
        return NGX_CONF_ERROR;
    }
    field->name.len = value[1].len + 1;
    field->name.data = ngx_pnalloc(cf->pool, field->name.len);
    if (field->name.data == NULL) {
        return NGX_CONF_ERROR;
    }
    field->name.data[0] = ':';
    ngx_memcpy(field->name.data + 1, value[1].data, value[1].len);
    ngx_memzero(&compile, sizeof(compile));
    compile.cf = cf;
    compile.value = &value[2];
    compile.complex_value = &field->value;
    return ngx_http_compile_complex_value(&compile) == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

void ngx_http_tollbar_rules_start(ngx_array_t *all, ngx_log_t *log)
{
    rules_t **rules = all->elts;
    char faults[FAULTS_SIZE], *rest, *line;
    ngx_uint_t n;

    for (n = 0; n < all->nelts; n++) {
        if (!rules[n]->reloads) {
            continue;
        }
        rules[n]->reloads = 0;
        faults[0] = '\0';
        rest = faults;
        /* With `daemon on` the process that opened the rules was the master's parent. */
        (void) ngx_http_tollbar_rules_calls.adopt(rules[n]->opened->rules);
        if (ngx_http_tollbar_rules_calls.reload(rules[n]->opened->rules, faults, sizeof(faults)) < 0) {
            while ((line = next_line(&rest)) != NULL) {
                ngx_log_error(NGX_LOG_ERR, log, 0, "%s; the former rules of %V stay in force", line, &rules[n]->path);
            }
        }
    }
}

static rules_t *find(ngx_array_t *all, const ngx_str_t *path)
{
    rules_t **rules = all->elts;
    ngx_uint_t n;

    for (n = 0; n < all->nelts; n++) {
        if (rules[n]->path.len == path->len && ngx_memcmp(rules[n]->path.data, path->data, path->len) == 0) {
            return rules[n];
        }
    }
    return NULL;
}

/* Gives the rules of a configuration what the former configuration has open, or opens the file. */
static char *attach(ngx_conf_t *cf, rules_t *rules)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    tollbar_rules *trial = NULL;
    char *error;

    if (cleanup == NULL) {
        return NGX_CONF_ERROR;
    }
    rules->opened = former(rules);
    if (rules->opened != NULL) {
        /* Only looks for faults, because this configuration may still be refused. */
        error = open_file(cf, rules, 0, 1, &trial);
        if (error == NGX_CONF_OK && ngx_http_tollbar_rules_find_words(cf, rules, trial) != NGX_OK) {
            error = NGX_CONF_ERROR;
        }
        ngx_http_tollbar_rules_calls.close(trial);
        rules->reloads = 1;
    } else {
        rules->opened = ngx_calloc(sizeof(opened_t), cf->log);
        if (rules->opened == NULL) {
            return NGX_CONF_ERROR;
        }
        error = open_file(cf, rules, TOLLBAR_RULES_SHARED, rules->keys, &rules->opened->rules);
        if (error == NGX_CONF_OK && ngx_http_tollbar_rules_find_words(cf, rules, rules->opened->rules) != NGX_OK) {
            error = NGX_CONF_ERROR;
        }
    }
    rules->opened->uses++;
    cleanup->handler = detach;
    cleanup->data = rules;
    return error;
}

/* The rules of this file that the running configuration has open. NULL: none, or with other
 * memory. */
static opened_t *former(const rules_t *rules)
{
    volatile ngx_cycle_t *running = ngx_cycle;
    main_conf_t *main;
    rules_t *found;
    ngx_uint_t n;

    if (running->conf_ctx == NULL || running->modules == NULL) {
        return NULL;
    }
    /* A configuration that did not load this module has nothing at its index. */
    for (n = 0; running->modules[n] != &ngx_http_tollbar_module; n++) {
        if (running->modules[n] == NULL) {
            return NULL;
        }
    }
    main = ngx_http_cycle_get_module_main_conf(running, ngx_http_tollbar_module);
    found = main != NULL ? find(&main->rules, &rules->path) : NULL;
    return found != NULL && found->keys == rules->keys && found->room == rules->room ? found->opened : NULL;
}

static char *open_file(ngx_conf_t *cf, const rules_t *rules, uint32_t flags, uint64_t keys, tollbar_rules **opened)
{
    tollbar_rules_options options = TOLLBAR_RULES_OPTIONS_INIT;
    char faults[FAULTS_SIZE] = "", *rest = faults, *line;
    int32_t code;

    options.flags = flags;
    options.keys = keys;
    options.room = rules->room;
    code = ngx_http_tollbar_rules_calls.open((const char *) rules->path.data, &options, opened, faults, sizeof(faults));
    if (code == 0) {
        return NGX_CONF_OK;
    }
    while ((line = next_line(&rest)) != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", line);
    }
    if (faults[0] == '\0') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V: %s", &rules->path, tollbar_strerror(code));
    }
    return NGX_CONF_ERROR;
}

/* Called when nginx frees a configuration. The last one that uses the rules closes them. */
static void detach(void *data)
{
    rules_t *rules = data;

    if (--rules->opened->uses == 0) {
        ngx_http_tollbar_rules_calls.close(rules->opened->rules);
        ngx_free(rules->opened);
    }
}

/* Takes the next line off the text. NULL: there is none. */
static char *next_line(char **rest)
{
    char *line = *rest, *end;

    if (line == NULL || *line == '\0') {
        return NULL;
    }
    end = ngx_strchr(line, '\n');
    *rest = end != NULL ? end + 1 : NULL;
    if (end != NULL) {
        *end = '\0';
    }
    return line;
}
