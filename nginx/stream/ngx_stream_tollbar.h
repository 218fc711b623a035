/* tollbar for stream: limits the rate of new connections, and how many a key may have at one
 * time. */

#ifndef NGX_STREAM_TOLLBAR_H
#define NGX_STREAM_TOLLBAR_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_stream.h>
#include "ngx_tollbar_rate_limit.h"

typedef struct {
    ngx_tollbar_rate_zone_t base;
    ngx_stream_complex_value_t *key;
} ngx_stream_tollbar_zone_t;

extern ngx_module_t ngx_stream_tollbar_module;

/* The handler of the preaccess phase. */
ngx_int_t ngx_stream_tollbar_handler(ngx_stream_session_t *s);

/* Adds a handler of the preaccess phase. nginx calls the handler that is added last first. */
ngx_int_t ngx_stream_tollbar_add_handler(ngx_conf_t *cf, ngx_stream_handler_pt handler);

/* Adds a variable. */
ngx_int_t ngx_stream_tollbar_add_variable(ngx_conf_t *cf, ngx_str_t *name, ngx_uint_t flags,
                                          ngx_stream_get_variable_pt get);

/* Adds $tollbar_status and $tollbar_client. */
ngx_int_t ngx_stream_tollbar_add_variables(ngx_conf_t *cf);

#endif
