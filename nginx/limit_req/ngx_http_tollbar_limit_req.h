/* The drop-in for limit_req: the data of its zones, and the functions between its files.
 *
 * nginx's documentation calls the requests above the rate `excess`. A key whose debt ends in `d`
 * nanoseconds, this request included, has an excess of d * rate - 1. */

#ifndef NGX_HTTP_TOLLBAR_LIMIT_REQ_H
#define NGX_HTTP_TOLLBAR_LIMIT_REQ_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_tollbar_request.h"
#include "ngx_tollbar_rate_limit.h"

typedef struct {
    ngx_tollbar_rate_zone_t base;
    ngx_http_tollbar_key_t key;
} ngx_http_tollbar_limit_req_zone_t;

extern ngx_module_t ngx_http_tollbar_limit_req_module;

/* The handler of the preaccess phase. */
ngx_int_t ngx_http_tollbar_limit_req_handler(ngx_http_request_t *r);

#endif
