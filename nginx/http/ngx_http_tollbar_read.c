/* Reads the directives tollbar_zone and tollbar. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_zone_t zone_t;
typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_conf_t conf_t;
typedef ngx_http_tollbar_main_conf_t main_conf_t;
typedef ngx_http_tollbar_amount_t amount_t;

static char *read_zone_parameter(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone, ngx_str_t *name, size_t *size,
                                 ngx_str_t *limit);
static ngx_int_t bind_zone(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, zone_t *zone);
static ngx_int_t unquote(ngx_conf_t *cf, ngx_str_t *argument, ngx_uint_t *n);
static char *read_rate(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone);
static char *read_policy(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone);
static char *read_ban(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone);
static char *read_after(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone);
static char *check_ban(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone);
static char *read_limit_parameter(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit);
static char *read_amount(ngx_conf_t *cf, ngx_str_t *argument, size_t prefix, amount_t *amount, const char *message);
static char *read_status(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit);
static ngx_http_complex_value_t *compile(ngx_conf_t *cf, ngx_str_t *text);
static char *check_file(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone);

/* The expectation in messages about numbers that may hold variables. */
#define AMOUNT NGX_TOLLBAR_CONF_COUNT ", or hold variables"

static ngx_flag_t begins(const ngx_str_t *argument, const char *word)
{
    return ngx_strncmp(argument->data, word, ngx_strlen(word)) == 0;
}

/* tollbar_zone KEY zone=NAME:SIZE rate=RATE|policy=POLICY [burst=N] [on_full=WORD] [hot_keys=N]
 *              [room=N] [ban=TIME [after=N]] [top_refused=N]
 *              [file=PATH [capacity=N] [mode=OCTAL] [trust_anyone]]  (then zone=NAME)
 *              [sync=URL nodes=N [fallback=WORD] [lease=TIME] [overdraft=N] [name=NAME]] */
char *ngx_http_tollbar_read_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    static const tollbar_policy_spec none = TOLLBAR_POLICY_SPEC_INIT;
    main_conf_t *main = conf;
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string, limit = ngx_null_string, argument;
    ngx_shm_zone_t *shm_zone;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    size_t size = 0;
    ngx_uint_t n;
    char *error;

    if (zone == NULL || ngx_http_tollbar_key_compile(cf, &value[1], &zone->key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    zone->policy = none;
    zone->burst.number = NGX_CONF_UNSET;
    zone->zone.on_full = NGX_CONF_UNSET_UINT;
    for (n = 2; n < cf->args->nelts; n++) {
        argument = value[n];
        if (begins(&argument, "policy=\"") && unquote(cf, &argument, &n) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
        error = read_zone_parameter(cf, &argument, zone, &name, &size, &limit);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one:10m", &cmd->name);
    }
    if (limit.data == NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"rate\" or \"policy\" parameter, such as rate=10r/s", &cmd->name);
    }
    if (zone->paced) {
        if (zone->burst.number == NGX_CONF_UNSET) {
            zone->burst.number = 0;
        }
    } else if (zone->burst.number != NGX_CONF_UNSET || zone->burst.text != NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"burst\" must be in the policy of zone \"%V\", such as policy=\"10/s burst 20\"", &name);
    }

    error = check_ban(cf, &name, zone);
    if (error == NGX_CONF_OK && zone->zone.file.path.len != 0) {
        error = check_file(cf, &name, zone);
    }
    if (error == NGX_CONF_OK) {
        error = ngx_http_tollbar_check_top_refused(cf, &name, zone);
    }
    if (error != NGX_CONF_OK) {
        return error;
    }

    zone->zone.policies = &zone->policy;
    zone->zone.policies_n = 1;
    error = zone->sync != NULL ? ngx_http_tollbar_sync_check(cf, &name, size, zone) : ngx_http_tollbar_check_size(cf, &name, size, zone);
    if (error == NGX_CONF_OK) {
        error = ngx_tollbar_file_check(cf, &name, &zone->zone);
    }
    if (error != NGX_CONF_OK) {
        return error;
    }
    shm_zone = ngx_tollbar_zone_add(cf, &name, size, &ngx_http_tollbar_module, &zone->zone,
                                    &main->zones);
    if (shm_zone == NULL || bind_zone(cf, shm_zone, zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static ngx_int_t bind_zone(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, zone_t *zone)
{
    return zone->sync != NULL ? ngx_http_tollbar_node_bind(cf, shm_zone, zone)
                              : ngx_tollbar_zone_bind(cf, shm_zone, &zone->zone);
}

static char *read_zone_parameter(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone, ngx_str_t *name, size_t *size,
                                 ngx_str_t *limit)
{
    ngx_int_t rc;

    if (begins(argument, "zone=")) {
        return ngx_tollbar_file_given(cf) ? ngx_tollbar_file_name(cf, argument, name, size)
                                          : ngx_tollbar_conf_zone(cf, argument, name, size);
    }
    if (begins(argument, "burst=")) {
        return read_amount(cf, argument, 6, &zone->burst, "invalid burst value \"%V\", " AMOUNT);
    }
    if (begins(argument, "on_full=")) {
        return ngx_tollbar_conf_on_full(cf, argument, &zone->zone.on_full);
    }
    if (begins(argument, "hot_keys=")) {
        return ngx_tollbar_conf_hot_keys(cf, argument, &zone->zone.hot_keys);
    }
    if (begins(argument, "room=")) {
        return ngx_tollbar_conf_room(cf, argument, &zone->zone.room);
    }
    if (begins(argument, "top_refused=")) {
        return ngx_http_tollbar_read_top_refused(cf, argument, zone);
    }
    if (begins(argument, "ban=")) {
        return read_ban(cf, argument, zone);
    }
    if (begins(argument, "after=")) {
        return read_after(cf, argument, zone);
    }
    if (begins(argument, "rate=") || begins(argument, "policy=")) {
        if (limit->data != NULL) {
            return ngx_tollbar_conf_refuse(cf, "a zone must have one \"rate\" or \"policy\", and \"%V\" is the second", argument);
        }
        *limit = *argument;
        return begins(argument, "rate=") ? read_rate(cf, argument, zone) : read_policy(cf, argument, zone);
    }
    rc = ngx_tollbar_file_read(cf, argument, &zone->zone);
    if (rc == NGX_DECLINED) {
        rc = ngx_http_tollbar_sync_read(cf, argument, &zone->sync);
    }
    if (rc == NGX_DECLINED) {
        return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=, rate=, policy=, burst=, ban=, after=, on_full=, hot_keys=, room=, top_refused=, "
                                       "or file=, capacity=, mode=, trust_anyone, or sync=, "
                                       "nodes=, fallback=, lease=, overdraft=, name=, sync_wait=, "
                                       "ssl_trusted_certificate=, ssl_certificate=, ssl_certificate_key=", argument);
    }
    return rc == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}

/* nginx ends a word at a space, also between quotes: policy="10/s burst 20" arrives as three words.
 * Joins them, up to the word that ends with the closing quote, and sets `n` to that word's
 * index. */
static ngx_int_t unquote(ngx_conf_t *cf, ngx_str_t *argument, ngx_uint_t *n)
{
    ngx_str_t *value = cf->args->elts;
    ngx_uint_t last = *n;
    size_t length = argument->len;
    u_char *to;

    while (value[last].data[value[last].len - 1] != '"' || (last == *n && argument->len == sizeof("policy=\"") - 1)) {
        if (++last == cf->args->nelts) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "no closing quote in \"%V\", it must be policy=\"LIMIT/PERIOD OPTIONS\", and a list \"policy=10/s; 1000/day\"",
                               argument);
            return NGX_ERROR;
        }
        length += 1 + value[last].len;
    }
    to = ngx_pnalloc(cf->pool, length + 1);
    if (to == NULL) {
        return NGX_ERROR;
    }
    argument->data = to;
    to = ngx_cpymem(to, "policy=", 7);
    to = ngx_cpymem(to, value[*n].data + 8, value[*n].len - 8);
    while (*n < last) {
        *to++ = ' ';
        ++*n;
        to = ngx_cpymem(to, value[*n].data, value[*n].len);
    }
    *--to = '\0';
    argument->len = to - argument->data;
    return NGX_OK;
}

static char *read_rate(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone)
{
    ngx_str_t text = { argument->len - 5, argument->data + 5 };

    zone->paced = 1;
    if (ngx_http_script_variables_count(&text) == 0) {
        return ngx_tollbar_conf_rate(cf, argument, &zone->policy);
    }
    /* A table needs a policy. No request uses this one, because no rate's text has such a period:
     * texts have whole milliseconds. */
    zone->policy.limit = 1;
    zone->policy.period_ns = 1000000001;
    zone->policy.burst = 1;
    zone->rate = compile(cf, &text);
    zone->rates = ngx_http_tollbar_rates_create(cf->pool);
    return zone->rate != NULL && zone->rates != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static char *read_policy(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone)
{
    tollbar_policy_error error = TOLLBAR_POLICY_ERROR_INIT;
    ngx_str_t text = { argument->len - 7, argument->data + 7 };

    if (tollbar_policy_spec_parse((const char *) text.data, text.len, &zone->policy, &error) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid policy \"%V\", column %uL: %s%s", &text, error.column,
                           error.code == TOLLBAR_E_SYNTAX ? "expected " : "", error.expected);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static char *read_ban(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone)
{
    ngx_str_t text = { argument->len - 4, argument->data + 4 };
    ngx_int_t milliseconds = ngx_parse_time(&text, 0);

    if (milliseconds == NGX_ERROR || milliseconds == 0) {
        return ngx_tollbar_conf_refuse(cf, "invalid ban value \"%V\", it must be a time such as 10m, 1h or 1d", argument);
    }
    zone->ban_ns = (uint64_t) milliseconds * 1000000;
    return NGX_CONF_OK;
}

static char *read_after(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone)
{
    ngx_int_t number = ngx_atoi(argument->data + 6, argument->len - 6);

    if (number < 1 || number > 1000) {
        return ngx_tollbar_conf_refuse(cf, "invalid after value \"%V\", it must be a whole number from 1 to 1000", argument);
    }
    zone->ban_after = (uint32_t) number;
    return NGX_CONF_OK;
}

/* Checks whether the zone may have `ban`, and writes it into the policy. */
static char *check_ban(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone)
{
    if (zone->ban_ns == 0 && zone->ban_after == 0) {
        return NGX_CONF_OK;
    }
    if (zone->ban_ns == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"after\" must have a \"ban\" beside it, such as ban=1h, in zone \"%V\"", name);
    }
    if (zone->sync != NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"ban\" must be for a zone without \"sync\", not for zone \"%V\"", name);
    }
    if (!zone->paced) {
        return ngx_tollbar_conf_refuse(cf, "\"ban\" must be in the policy of zone \"%V\", such as policy=\"5/min ban 1h\"", name);
    }
    if (zone->rate != NULL || zone->burst.text != NULL) {
        return ngx_tollbar_conf_refuse(cf, "with \"ban\", \"rate\" and \"burst\" must hold no variables, in zone \"%V\"", name);
    }
    zone->policy.ban_ns = zone->ban_ns;
    zone->policy.ban_after = ngx_max(zone->ban_after, 1);
    return NGX_CONF_OK;
}

/* tollbar zone=NAME [burst=N] [nodelay|delay=N] [cost=N] [count=WHICH] [when=TEXT] [class=TEXT]
 * [status=N] [dry_run] */
char *ngx_http_tollbar_read_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    conf_t *here = conf;
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    ngx_str_t *value = cf->args->elts;
    limit_t *limit = ngx_pcalloc(cf->pool, sizeof(limit_t));
    ngx_uint_t n;
    char *error;

    if (limit == NULL) {
        return NGX_CONF_ERROR;
    }
    limit->burst.number = NGX_CONF_UNSET;
    limit->cost.number = 1;
    limit->status = NGX_CONF_UNSET_UINT;
    for (n = 1; n < cf->args->nelts; n++) {
        error = read_limit_parameter(cf, &value[n], limit);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    return ngx_tollbar_conf_add_limit(cf, &limit->base, &here->limits, &main->limits);
}

static char *read_limit_parameter(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit)
{
    ngx_str_t value;

    if (begins(argument, "zone=")) {
        return ngx_tollbar_conf_find_zone(cf, argument, 5, &ngx_http_tollbar_module, &limit->base);
    }
    if (begins(argument, "burst=")) {
        return read_amount(cf, argument, 6, &limit->burst, "invalid burst value \"%V\", " AMOUNT);
    }
    if (begins(argument, "cost=")) {
        return read_amount(cf, argument, 5, &limit->cost, "invalid cost value \"%V\", " AMOUNT);
    }
    if (begins(argument, "delay=")) {
        return ngx_tollbar_conf_count(cf, argument, "delay", &limit->delay);
    }
    if (begins(argument, "count=")) {
        return ngx_http_tollbar_read_count(cf, argument, limit);
    }
    if (begins(argument, "when=")) {
        value.data = argument->data + 5;
        value.len = argument->len - 5;
        limit->afterwards = 1;
        limit->when = compile(cf, &value);
        return limit->when != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
    }
    if (begins(argument, "class=")) {
        value.data = argument->data + 6;
        value.len = argument->len - 6;
        limit->class_name = compile(cf, &value);
        return limit->class_name != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
    }
    if (begins(argument, "status=")) {
        return read_status(cf, argument, limit);
    }
    if (ngx_strcmp(argument->data, "nodelay") == 0) {
        limit->delay = NGX_MAX_INT_T_VALUE;
        return NGX_CONF_OK;
    }
    if (ngx_strcmp(argument->data, "dry_run") == 0) {
        limit->dry_run = 1;
        return NGX_CONF_OK;
    }
    return ngx_tollbar_conf_refuse(cf, "invalid parameter \"%V\", it must be zone=NAME, burst=, delay=, nodelay, cost=, count=, when=, class=, status= or dry_run",
                                   argument);
}

/* A number from 1 on, or text with variables. */
static char *read_amount(ngx_conf_t *cf, ngx_str_t *argument, size_t prefix, amount_t *amount, const char *message)
{
    ngx_str_t text = { argument->len - prefix, argument->data + prefix };

    if (ngx_http_script_variables_count(&text) != 0) {
        amount->number = NGX_CONF_UNSET;
        amount->text = compile(cf, &text);
        return amount->text != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
    }
    amount->text = NULL;
    amount->number = ngx_atoi(text.data, text.len);
    return amount->number > 0 ? NGX_CONF_OK : ngx_tollbar_conf_refuse(cf, message, argument);
}

static char *read_status(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit)
{
    ngx_str_t text = { argument->len - 7, argument->data + 7 };
    ngx_int_t status = ngx_tollbar_conf_status(&text);

    if (status == NGX_ERROR) {
        return ngx_tollbar_conf_refuse(cf, "invalid value \"%V\", it must be a number from 400 to 599", argument);
    }
    limit->status = (ngx_uint_t) status;
    return NGX_CONF_OK;
}

static ngx_http_complex_value_t *compile(ngx_conf_t *cf, ngx_str_t *text)
{
    ngx_http_complex_value_t *value = ngx_pcalloc(cf->pool, sizeof(ngx_http_complex_value_t));
    ngx_str_t *copy = ngx_palloc(cf->pool, sizeof(ngx_str_t));
    ngx_http_compile_complex_value_t compiled;

    if (value == NULL || copy == NULL) {
        return NULL;
    }
    *copy = *text;
    ngx_memzero(&compiled, sizeof(compiled));
    compiled.cf = cf;
    compiled.value = copy;
    compiled.complex_value = value;
    return ngx_http_compile_complex_value(&compiled) == NGX_OK ? value : NULL;
}

/* Checks that the zone has room for the smallest table. Its size depends on the policy, because
 * sliding windows and logs need more memory for each key. */
char *ngx_http_tollbar_check_size(ngx_conf_t *cf, ngx_str_t *name, size_t size, zone_t *zone)
{
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1);
    const tollbar_policy_spec *policies[] = { &zone->policy };
    uint64_t bytes;
    int32_t error;
    size_t least = ngx_tollbar_zone_least(&zone->zone);

    options.clock = ngx_tollbar_zone_clock(policies, 1);
    options.room = zone->zone.room;
    error = tollbar_table_bytes(policies, 1, &options, &bytes);
    if (error != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" cannot have this policy: %s", name, tollbar_strerror(error));
        return NGX_CONF_ERROR;
    }
    if (zone->zone.file.path.len == 0 && size < least) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is too small, it must have at least %uzk", name,
                           (least + 1023) / 1024);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

/* Refuses parameters that a zone with `file` cannot have. */
static char *check_file(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone)
{
    if (zone->sync != NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"file\" must not be beside \"sync\" in zone \"%V\"", name);
    }
    if (zone->rate != NULL || zone->burst.text != NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"rate\" and \"burst\" must not hold variables beside \"file\" in zone \"%V\"", name);
    }
    return NGX_CONF_OK;
}
