/* $tollbar_status and the module's other variables.
 *
 * The module stores their values in nginx's array of a request's variables, which subrequests share
 * and redirects keep. It stores a number in the pointer field of a value that is marked invalid.
 * When nginx reads the variable, the
 * module prints the number as text. So a variable that nothing reads takes no memory. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_main_conf_t main_conf_t;

enum {
    STATUS = NGX_HTTP_TOLLBAR_VARIABLE_STATUS, ZONE, REMAINING, RESET, RETRY_AFTER, REASON,
    RULES_STATUS = NGX_HTTP_TOLLBAR_VARIABLE_RULES_STATUS, RULE = NGX_HTTP_TOLLBAR_VARIABLE_RULE,
    RULES_REASON = NGX_HTTP_TOLLBAR_VARIABLE_RULES_REASON, VARIABLES = NGX_HTTP_TOLLBAR_VARIABLES
};

/* The length of a value that holds an unprinted number. */
#define KEPT 1

static ngx_int_t absent(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t print(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data);
static void keep(ngx_http_variable_value_t *v, uint64_t number);

static struct {
    ngx_str_t name;
    ngx_http_get_variable_pt get;
} variables[] = {
    { ngx_string("tollbar_status"), absent },
    { ngx_string("tollbar_zone"), absent },
    { ngx_string("tollbar_remaining"), print },
    { ngx_string("tollbar_reset"), print },
    { ngx_string("tollbar_retry_after"), print },
    { ngx_string("tollbar_reason"), absent },
    { ngx_string("tollbar_rules_status"), absent },
    { ngx_string("tollbar_rule"), absent },
    { ngx_string("tollbar_rules_reason"), absent },
};

ngx_int_t ngx_http_tollbar_add_variables(ngx_conf_t *cf)
{
    ngx_uint_t n;

    for (n = 0; n < VARIABLES; n++) {
        if (ngx_http_tollbar_add_variable(cf, &variables[n].name, 0, variables[n].get) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    return ngx_http_tollbar_add_client(cf);
}

ngx_int_t ngx_http_tollbar_find_variables(ngx_conf_t *cf)
{
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    ngx_http_variable_t *asked_for = core->variables.elts;
    ngx_uint_t n, k, asked_for_n = core->variables.nelts;
    ngx_int_t index;
    ngx_flag_t used[VARIABLES] = { 0 };

    for (n = 0; n < VARIABLES; n++) {
        for (k = 0; k < asked_for_n; k++) {
            used[n] |= asked_for[k].name.len == variables[n].name.len
                       && ngx_strncmp(asked_for[k].name.data, variables[n].name.data, asked_for[k].name.len) == 0;
        }
    }
    main->variables_used = used[ZONE] || used[REMAINING] || used[RESET] || used[RETRY_AFTER] || used[REASON];
    main->rule_used = used[RULE];
    for (n = 0; n < VARIABLES; n++) {
        index = ngx_http_get_variable_index(cf, &variables[n].name);
        if (index == NGX_ERROR) {
            return NGX_ERROR;
        }
        main->variables[n] = (ngx_uint_t) index;
    }
    return NGX_OK;
}

void ngx_http_tollbar_set_variables(ngx_http_request_t *r, const ngx_http_tollbar_charge_t *charge, ngx_flag_t refused)
{
    main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    ngx_http_variable_value_t *values = r->main->variables;
    const ngx_str_t *zone = &charge->limit->base.shm_zone->shm.name;

    ngx_tollbar_set_text(&values[main->variables[ZONE]], zone->data, zone->len);
    if (refused) {
        ngx_http_tollbar_set_reason(&values[main->variables[REASON]], charge->reason);
    }
    if (!charge->decided) {
        return;
    }
    keep(&values[main->variables[REMAINING]], charge->remaining);
    if (charge->reset_ns != TOLLBAR_NO_TIME) {
        keep(&values[main->variables[RESET]], ngx_http_tollbar_seconds(charge->reset_ns));
    }
    if (refused && charge->retry_ns != TOLLBAR_NO_TIME) {
        keep(&values[main->variables[RETRY_AFTER]], ngx_max(ngx_http_tollbar_seconds(charge->retry_ns), 1));
    }
}

void ngx_http_tollbar_set_reason(ngx_http_variable_value_t *v, uint32_t reason)
{
    const char *words = tollbar_strreason(reason);

    ngx_tollbar_set_text(v, (const u_char *) words, ngx_strlen(words));
}

static ngx_int_t absent(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    v->not_found = 1;
    return NGX_OK;
}

static ngx_int_t print(ngx_http_request_t *r, ngx_http_variable_value_t *v, uintptr_t data)
{
    uint64_t number = (uintptr_t) v->data;
    u_char *text;

    if (v->len != KEPT) {
        v->not_found = 1;
        return NGX_OK;
    }
    text = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (text == NULL) {
        return NGX_ERROR;
    }
    return ngx_tollbar_set_text(v, text, (size_t) (ngx_sprintf(text, "%uL", number) - text));
}

/* Marks the value invalid, because nginx has cached "not found" if the variable was read before the
 * limits were checked. */
static void keep(ngx_http_variable_value_t *v, uint64_t number)
{
    v->valid = 0;
    v->not_found = 0;
    v->len = KEPT;
    v->data = (u_char *) (uintptr_t) number;
}
