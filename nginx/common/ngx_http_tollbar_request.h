/* What HTTP modules have in common: keys made of variables, and requests that wait. */

#ifndef NGX_HTTP_TOLLBAR_REQUEST_H
#define NGX_HTTP_TOLLBAR_REQUEST_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

typedef struct {
    ngx_http_complex_value_t value;
    /* The index of the variable that the key is, all of it: such keys need no script. NGX_ERROR for others. */
    ngx_int_t variable;
} ngx_http_tollbar_key_t;

ngx_int_t ngx_http_tollbar_key_compile(ngx_conf_t *cf, ngx_str_t *text, ngx_http_tollbar_key_t *key);

/* Logs that a key is too long for any limit. Returns NGX_DECLINED. */
ngx_int_t ngx_http_tollbar_key_too_long(ngx_http_request_t *r, ngx_http_tollbar_key_t *key, ngx_str_t *value);

/* Lets the request sleep on its connection's write event. Returns what a handler of a phase is to return; the phases are
 * run again afterwards, from that handler on. */
ngx_int_t ngx_http_tollbar_delay(ngx_http_request_t *r, ngx_msec_t wait);

/* NGX_DECLINED: there is no key, or none that is limited. NGX_ABORT: it cannot be evaluated. */
static ngx_inline ngx_int_t ngx_http_tollbar_key_of(ngx_http_request_t *r, ngx_http_tollbar_key_t *key, ngx_str_t *value)
{
    ngx_http_variable_value_t *variable;

    if (key->variable != NGX_ERROR) {
        variable = ngx_http_get_flushed_variable(r, (ngx_uint_t) key->variable);
        if (variable == NULL || variable->not_found) {
            return NGX_DECLINED;
        }
        value->data = variable->data;
        value->len = variable->len;
    } else if (ngx_http_complex_value(r, &key->value, value) != NGX_OK) {
        return NGX_ABORT;
    }
    if (value->len == 0) {
        return NGX_DECLINED;
    }
    return value->len > 65535 ? ngx_http_tollbar_key_too_long(r, key, value) : NGX_OK;
}

#endif
