/* Values of variables that several modules have. */

#ifndef NGX_TOLLBAR_VARIABLES_H
#define NGX_TOLLBAR_VARIABLES_H

#include <ngx_config.h>
#include <ngx_core.h>

/* The outcome of a request or a connection. nginx's own $limit_req_status has the same numbers. */
#define NGX_TOLLBAR_PASSED 1
#define NGX_TOLLBAR_DELAYED 2
#define NGX_TOLLBAR_REJECTED 3
#define NGX_TOLLBAR_DELAYED_DRY_RUN 4
#define NGX_TOLLBAR_REJECTED_DRY_RUN 5

/* Their names. */
extern const ngx_str_t ngx_tollbar_statuses[];

/* Sets the value to a text that lives at least as long as the request. */
static ngx_inline ngx_int_t ngx_tollbar_set_text(ngx_variable_value_t *v, const u_char *text,
                                                 size_t length)
{
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = (unsigned) length;
    v->data = (u_char *) text;
    return NGX_OK;
}

/* Sets the value to the name of an outcome. 0: the value is not found. */
static ngx_inline ngx_int_t ngx_tollbar_set_status(ngx_variable_value_t *v, ngx_uint_t status)
{
    if (status == 0) {
        v->not_found = 1;
        return NGX_OK;
    }
    return ngx_tollbar_set_text(v, ngx_tollbar_statuses[status].data,
                                ngx_tollbar_statuses[status].len);
}

/* Sets the value to the key of the client's address: all of an IPv4 address, and the first 64 bits
 * of an IPv6 address, since a host can change the others with every request. It is the key that the
 * library's other faces have for this address. A Unix socket has none: then the value is not
 * found. */
ngx_int_t ngx_tollbar_client(ngx_connection_t *c, ngx_pool_t *pool, ngx_variable_value_t *v);

#endif
