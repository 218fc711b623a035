/* $tollbar_client of all modules. */

#ifndef NGX_TOLLBAR_CLIENT_H
#define NGX_TOLLBAR_CLIENT_H

#include <ngx_config.h>
#include <ngx_core.h>

/* Writes the key of the client's address: all of an IPv4 address, and the first 64 bits of an IPv6 address, since a host can change the others with
 * every request. It is the key that the library's other faces have for this address. A Unix socket has none: then the
 * value is not found. */
ngx_int_t ngx_tollbar_client(ngx_connection_t *c, ngx_pool_t *pool, ngx_variable_value_t *v);

#endif
