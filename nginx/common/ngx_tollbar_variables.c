#include "ngx_tollbar_variables.h"

#include <tollbar.h>

const ngx_str_t ngx_tollbar_statuses[] = {
    ngx_null_string, ngx_string("PASSED"), ngx_string("DELAYED"), ngx_string("REJECTED"),
    ngx_string("DELAYED_DRY_RUN"), ngx_string("REJECTED_DRY_RUN")
};

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
        code = tollbar_prefix_from_address(&((struct sockaddr_in *) address)->sin_addr, 4, 32, 64,
                                           key);
    }
#if (NGX_HAVE_INET6)
    if (address->sa_family == AF_INET6) {
        code = tollbar_prefix_from_address(&((struct sockaddr_in6 *) address)->sin6_addr, 16, 32,
                                           64, key);
    }
#endif
    if (code != 0) {
        v->not_found = 1;
        return NGX_OK;
    }
    return ngx_tollbar_set_text(v, key->bytes, key->length);
}
