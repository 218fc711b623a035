/* Code of all http modules: keys with variables, the client's key, delays, and places among nginx's
 * handlers and variables. */

#ifndef NGX_HTTP_TOLLBAR_REQUEST_H
#define NGX_HTTP_TOLLBAR_REQUEST_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

typedef struct {
    ngx_http_complex_value_t value;
    /* The variable's index if the key is one variable and nothing else. Such a key needs no script.
     * NGX_ERROR: another key. */
    ngx_int_t variable;
} ngx_http_tollbar_key_t;

ngx_int_t ngx_http_tollbar_key_compile(ngx_conf_t *cf, ngx_str_t *text, ngx_http_tollbar_key_t *key);

/* Adds a handler of a phase. nginx calls the handler that is added last first. */
ngx_int_t ngx_http_tollbar_add_handler(ngx_conf_t *cf, ngx_uint_t phase,
                                       ngx_http_handler_pt handler);

/* Adds a variable. */
ngx_int_t ngx_http_tollbar_add_variable(ngx_conf_t *cf, ngx_str_t *name, ngx_uint_t flags,
                                        ngx_http_get_variable_pt get);

/* Adds $tollbar_client. */
ngx_int_t ngx_http_tollbar_add_client(ngx_conf_t *cf);

/* Logs that a key is too long for any limit. Returns NGX_DECLINED. */
ngx_int_t ngx_http_tollbar_key_too_long(ngx_http_request_t *r, ngx_http_tollbar_key_t *key, ngx_str_t *value);

/* Delays the request by the timer of its connection's write event. Returns the phase handler's
 * return value. After the delay nginx runs the phases again, beginning with that handler. */
ngx_int_t ngx_http_tollbar_delay(ngx_http_request_t *r, ngx_msec_t wait);

/* Evaluates the key. NGX_DECLINED: it is empty or too long, so the request is not limited.
 * NGX_ABORT: it cannot be evaluated. */
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
