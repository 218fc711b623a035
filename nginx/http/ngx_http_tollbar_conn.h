/* tollbar_conn for the handler of rates, which decides by both in one step: it takes the permits in
 * flight before it charges a rate, and gives them back if a rate refuses. */

#ifndef NGX_HTTP_TOLLBAR_CONN_H
#define NGX_HTTP_TOLLBAR_CONN_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

/* Whether the request's location has limits of tollbar_conn, and none of any location has decided
 * the request. */
ngx_flag_t ngx_http_tollbar_conn_counts(ngx_http_request_t *r);

/* Counts the request by all limits of its location, or by none. Returns NGX_DECLINED, or the status
 * with which a limit refuses the request. */
ngx_int_t ngx_http_tollbar_conn_enter(ngx_http_request_t *r);

/* Ends the counting as if no limit had been asked, and no limit learns from the request. */
void ngx_http_tollbar_conn_leave(ngx_http_request_t *r);

#endif
