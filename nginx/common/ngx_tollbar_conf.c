#include "ngx_tollbar_conf.h"

/* The library needs a 64-bit processor, for which compilers have this type. */
__extension__ typedef unsigned __int128 wide_t;

/* The most permits of a sliding log. */
#define ROOM_MOST 16777216

ngx_conf_enum_t ngx_tollbar_conf_log_levels[] = {
    { ngx_string("info"), NGX_LOG_INFO },
    { ngx_string("notice"), NGX_LOG_NOTICE },
    { ngx_string("warn"), NGX_LOG_WARN },
    { ngx_string("error"), NGX_LOG_ERR },
    { ngx_null_string, 0 }
};

ngx_tollbar_where_t ngx_tollbar_conf_here(ngx_conf_t *cf)
{
    ngx_tollbar_where_t here = { cf->conf_file->file.name, cf->conf_file->line };

    return here;
}

void ngx_tollbar_conf_late(ngx_conf_t *cf, const ngx_tollbar_where_t *where, const char *format, ...)
{
    u_char text[NGX_MAX_CONF_ERRSTR], *end;
    va_list arguments;

    va_start(arguments, format);
    end = ngx_vslprintf(text, text + sizeof(text), format, arguments);
    va_end(arguments);
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%*s in %V:%ui", (size_t) (end - text), text, &where->file, where->line);
}

char *ngx_tollbar_conf_refuse(ngx_conf_t *cf, const char *message, ngx_str_t *argument)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, message, argument);
    return NGX_CONF_ERROR;
}

char *ngx_tollbar_conf_set_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_uint_t *field = (ngx_uint_t *) ((u_char *) conf + cmd->offset);
    ngx_conf_enum_t *words = cmd->post;
    ngx_str_t *value = cf->args->elts;
    u_char list[128], *to = list;
    ngx_uint_t n;

    if (*field != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }
    for (n = 0; words[n].name.len != 0; n++) {
        if (words[n].name.len == value[1].len && ngx_strcasecmp(words[n].name.data, value[1].data) == 0) {
            *field = words[n].value;
            return NGX_CONF_OK;
        }
    }
    for (n = 0; words[n].name.len != 0; n++) {
        to = ngx_slprintf(to, list + sizeof(list), "%s%V", n == 0 ? "" : words[n + 1].name.len != 0 ? ", " : " or ",
                          &words[n].name);
    }
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value \"%V\" in \"%V\" directive, it must be %*s", &value[1], &cmd->name,
                       (size_t) (to - list), list);
    return NGX_CONF_ERROR;
}

char *ngx_tollbar_conf_set_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_uint_t *field = (ngx_uint_t *) ((u_char *) conf + cmd->offset);
    ngx_str_t *value = cf->args->elts;
    ngx_int_t status = ngx_tollbar_conf_status(&value[1]);

    if (*field != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }
    if (status == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value \"%V\" in \"%V\" directive, it must be a number from 400 to 599",
                           &value[1], &cmd->name);
        return NGX_CONF_ERROR;
    }
    *field = (ngx_uint_t) status;
    return NGX_CONF_OK;
}

ngx_int_t ngx_tollbar_conf_status(ngx_str_t *text)
{
    ngx_int_t status = ngx_atoi(text->data, text->len);

    return status >= 400 && status <= 599 ? status : NGX_ERROR;
}

char *ngx_tollbar_conf_find_zone(ngx_conf_t *cf, ngx_str_t *argument, size_t prefix, void *tag,
                                 ngx_tollbar_limit_t *limit)
{
    ngx_str_t name = { argument->len - prefix, argument->data + prefix };

    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "invalid zone name \"%V\", it must be the NAME of a "
                                       "zone", argument);
    }
    limit->shm_zone = ngx_shared_memory_add(cf, &name, 0, tag);
    return limit->shm_zone != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
}

char *ngx_tollbar_conf_push(ngx_conf_t *cf, ngx_array_t *array, void *pointer)
{
    void **place;

    if (array->elts == NULL && ngx_array_init(array, cf->pool, 1, sizeof(void *)) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    place = ngx_array_push(array);
    if (place == NULL) {
        return NGX_CONF_ERROR;
    }
    *place = pointer;
    return NGX_CONF_OK;
}

char *ngx_tollbar_conf_add_limit(ngx_conf_t *cf, ngx_tollbar_limit_t *limit, ngx_array_t *level,
                                 ngx_array_t *all)
{
    ngx_tollbar_limit_t **others = level->elts;
    ngx_str_t *value = cf->args->elts;
    ngx_uint_t n;
    char *error;

    if (limit->shm_zone == NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one",
                                       &value[0]);
    }
    for (n = 0; n < level->nelts; n++) {
        if (others[n]->shm_zone == limit->shm_zone) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"%V\" directive is duplicate: zone \"%V\" is limited in %V:%ui, "
                               "and again",
                               &value[0], &limit->shm_zone->shm.name, &others[n]->where.file,
                               others[n]->where.line);
            return NGX_CONF_ERROR;
        }
    }
    limit->where = ngx_tollbar_conf_here(cf);
    error = ngx_tollbar_conf_push(cf, level, limit);
    return error == NGX_CONF_OK ? ngx_tollbar_conf_push(cf, all, limit) : error;
}

ngx_int_t ngx_tollbar_conf_declared(ngx_conf_t *cf, const ngx_tollbar_limit_t *limit,
                                    const char *directive)
{
    if (limit->shm_zone->data != NULL) {
        return NGX_OK;
    }
    ngx_tollbar_conf_late(cf, &limit->where,
                          "unknown zone \"%V\" in \"%s\" directive, a \"%s_zone\" must declare it",
                          &limit->shm_zone->shm.name, directive, directive);
    return NGX_ERROR;
}

char *ngx_tollbar_conf_bound(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *keys,
                             const ngx_tollbar_where_t *where)
{
    ngx_str_t *value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V \"%V\" is already bound to key \"%V\" in %V:%ui, "
                       "and again", &value[0], name, keys, &where->file, where->line);
    return NGX_CONF_ERROR;
}

char *ngx_tollbar_conf_zone(ngx_conf_t *cf, ngx_str_t *argument, ngx_str_t *name, size_t *size)
{
    u_char *colon = (u_char *) ngx_strchr(argument->data, ':');
    ngx_str_t text;
    ssize_t bytes;

    if (colon == NULL) {
        return ngx_tollbar_conf_refuse(cf, "invalid zone size \"%V\", it must be zone=NAME:SIZE, such as zone=one:10m", argument);
    }
    name->data = argument->data + 5;
    name->len = colon - name->data;
    text.data = colon + 1;
    text.len = argument->data + argument->len - text.data;
    bytes = ngx_parse_size(&text);
    if (bytes == NGX_ERROR) {
        return ngx_tollbar_conf_refuse(cf, "invalid zone size \"%V\", it must be a number of bytes, such as 10485760, 10240k or 10m",
                                       argument);
    }
    if (name->len == 0) {
        return ngx_tollbar_conf_refuse(cf, "invalid zone name \"%V\", it must be zone=NAME:SIZE, such as zone=one:10m", argument);
    }
    if (bytes < (ssize_t) (8 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is too small, it must have at least %uzk", argument,
                           8 * ngx_pagesize / 1024);
        return NGX_CONF_ERROR;
    }
    *size = (size_t) bytes;
    return NGX_CONF_OK;
}

char *ngx_tollbar_conf_hot_keys(ngx_conf_t *cf, ngx_str_t *argument, uint32_t *keys)
{
    ngx_int_t number = ngx_atoi(argument->data + 9, argument->len - 9);

    if (number == NGX_ERROR || number > 16384) {
        return ngx_tollbar_conf_refuse(cf, "invalid hot_keys value \"%V\", it must be a number of keys from 0 to 16384", argument);
    }
    *keys = (uint32_t) number;
    return NGX_CONF_OK;
}

char *ngx_tollbar_conf_room(ngx_conf_t *cf, ngx_str_t *argument, uint32_t *room)
{
    ngx_int_t number = ngx_atoi(argument->data + 5, argument->len - 5);

    if (number < 1 || number > ROOM_MOST) {
        return ngx_tollbar_conf_refuse(cf, "invalid room value \"%V\", it must be a number of segments or permits "
                                       "from 1 to 16777216", argument);
    }
    *room = (uint32_t) number;
    return NGX_CONF_OK;
}

char *ngx_tollbar_conf_on_full(ngx_conf_t *cf, ngx_str_t *argument, ngx_uint_t *on_full)
{
    /* A word's index is its TOLLBAR_ON_FULL_ number. */
    static const char *words[] = { "evict-nearest", "inherit", "allow", "deny" };
    ngx_uint_t n;

    for (n = 0; n < sizeof(words) / sizeof(words[0]); n++) {
        if (ngx_strcmp(argument->data + 8, words[n]) == 0) {
            *on_full = n;
            return NGX_CONF_OK;
        }
    }
    return ngx_tollbar_conf_refuse(cf, "invalid value \"%V\", it must be evict-nearest, inherit, "
                                   "allow or deny", argument);
}

char *ngx_tollbar_conf_count(ngx_conf_t *cf, ngx_str_t *argument, const char *name,
                             ngx_int_t *number)
{
    size_t prefix = ngx_strlen(name) + 1;

    *number = ngx_atoi(argument->data + prefix, argument->len - prefix);
    if (*number <= 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid %s value \"%V\", " NGX_TOLLBAR_CONF_COUNT,
                           name, argument);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

char *ngx_tollbar_conf_rate(ngx_conf_t *cf, ngx_str_t *argument, tollbar_policy_spec *policy)
{
    ngx_str_t text = { argument->len - 5, argument->data + 5 };
    const char *expected = ngx_tollbar_rate_parse(&text, policy);

    if (expected != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid rate \"%V\", %s", argument, expected);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

ngx_int_t ngx_tollbar_conf_raise_burst(ngx_conf_t *cf, const ngx_tollbar_limit_t *limit,
                                       const char *directive, tollbar_policy_spec *policy,
                                       uint64_t burst)
{
    tollbar_policy_spec tried = *policy;
    uint64_t fits = 0, too_many = burst;

    /* A burst of N is N requests beyond the one that is always allowed. */
    tried.burst = burst + 1;
    if (tollbar_policy_spec_validate(&tried) == 0) {
        policy->burst = ngx_max(policy->burst, burst + 1);
        return NGX_OK;
    }
    while (too_many - fits > 1) {
        tried.burst = fits + (too_many - fits) / 2 + 1;
        if (tollbar_policy_spec_validate(&tried) == 0) {
            fits = tried.burst - 1;
        } else {
            too_many = tried.burst - 1;
        }
    }
    ngx_tollbar_conf_late(cf, &limit->where, "invalid burst %uL in \"%s\" directive, with the rate "
                          "of zone \"%V\" it must be at most %uL", burst, directive,
                          &limit->shm_zone->shm.name, fits);
    return NGX_ERROR;
}

uint64_t ngx_tollbar_time_of(const tollbar_policy_spec *policy, uint64_t permits)
{
    wide_t time = (wide_t) permits * policy->period_ns / policy->limit;

    return time > INT64_MAX ? INT64_MAX : (uint64_t) time;
}

ngx_uint_t ngx_tollbar_excess(const tollbar_policy_spec *policy, uint64_t debt_ns, uint64_t own)
{
    wide_t owed = ((wide_t) debt_ns * policy->limit * 1000 + policy->period_ns / 2)
                  / policy->period_ns;

    owed = owed > (wide_t) own * 1000 ? owed - (wide_t) own * 1000 : 0;
    return owed > NGX_MAX_INT_T_VALUE ? NGX_MAX_INT_T_VALUE : (ngx_uint_t) owed;
}

ngx_flag_t ngx_tollbar_seldom(ngx_tollbar_seldom_t *message)
{
    if (message->second == ngx_time()) {
        message->left_out++;
        return 0;
    }
    message->second = ngx_time();
    message->text[0] = '\0';
    if (message->left_out != 0) {
        *ngx_slprintf(message->text, message->text + sizeof(message->text) - 1, " (and %ui more since the last line)",
                      message->left_out) = '\0';
        message->left_out = 0;
    }
    return 1;
}
