#include "ngx_tollbar_client.h"

#include <tollbar.h>

ngx_int_t ngx_tollbar_client(ngx_connection_t *c, ngx_pool_t *pool, ngx_variable_value_t *v)
{
    struct sockaddr *address = c->sockaddr;
    tollbar_prefix *key;
    int32_t code = TOLLBAR_E_ADDRESS;

    key = ngx_palloc(pool, sizeof(*key));
    if (key == NULL) {
        return NGX_ERROR;
    }
    if (address->sa_family == AF_INET) {
        code = tollbar_prefix_from_address(&((struct sockaddr_in *) address)->sin_addr, 4, 32, 64, key);
    }
#if (NGX_HAVE_INET6)
    if (address->sa_family == AF_INET6) {
        code = tollbar_prefix_from_address(&((struct sockaddr_in6 *) address)->sin6_addr, 16, 32, 64, key);
    }
#endif
    if (code != 0) {
        v->not_found = 1;
        return NGX_OK;
    }
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->len = key->length;
    v->data = key->bytes;
    return NGX_OK;
}
