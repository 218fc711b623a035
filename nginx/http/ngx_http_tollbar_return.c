/* Whether `return` answers before any limit is checked.
 *
 * nginx has no interface for this question. The configuration of the rewrite module has the answer:
 * it begins with a pointer to the array of its codes, in every version from 1.9.11, the first that
 * loads modules, to 1.31. A module loads only into the version that it was built for, so the check
 * is compiled only for these versions. Built for
 * another one, the module does not warn. */

#include "ngx_http_tollbar.h"

#define OLDEST_KNOWN 1009011
#define NEWEST_KNOWN 1031999

#if nginx_version >= OLDEST_KNOWN && nginx_version <= NEWEST_KNOWN

static ngx_array_t *codes_of(ngx_conf_t *cf);

/* Returns 1 only if nothing before the `return` could end the phase otherwise: no `if`, `rewrite`
 * or `break`. */
ngx_flag_t ngx_http_tollbar_returns(ngx_conf_t *cf)
{
    ngx_array_t *codes = codes_of(cf);
    ngx_http_script_code_pt code;
    size_t at = 0;

    while (codes != NULL && codes->size == 1 && at + sizeof(code) <= codes->nelts) {
        code = *(ngx_http_script_code_pt *) ((u_char *) codes->elts + at);
        if (code == ngx_http_script_return_code) {
            return 1;
        } else if (code == ngx_http_script_value_code) {
            at += sizeof(ngx_http_script_value_code_t);
        } else if (code == ngx_http_script_set_var_code) {
            at += sizeof(ngx_http_script_var_code_t);
        } else {
            break;
        }
    }
    return 0;
}

/* The rewrite module's codes for this level. NULL if there are none. */
static ngx_array_t *codes_of(ngx_conf_t *cf)
{
    ngx_http_conf_ctx_t *ctx = cf->ctx;
    ngx_uint_t n;

    for (n = 0; cf->cycle->modules[n] != NULL; n++) {
        if (ngx_strcmp(cf->cycle->modules[n]->name, "ngx_http_rewrite_module") == 0) {
            return *(ngx_array_t **) ctx->loc_conf[cf->cycle->modules[n]->ctx_index];
        }
    }
    return NULL;
}

#else

ngx_flag_t ngx_http_tollbar_returns(ngx_conf_t *cf)
{
    return 0;
}

#endif
