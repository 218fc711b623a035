/* Decides a request by a limit with a tree: takes from the request's class and from all classes
 * above it, or from none. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_class_t class_t;
typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_resolved_t resolved_t;

class_t *ngx_http_tollbar_find_class(const ngx_http_tollbar_tree_t *tree, const ngx_str_t *name)
{
    class_t *class = tree->classes.elts;
    ngx_uint_t n;

    for (n = 0; n < tree->classes.nelts; n++, class++) {
        if (class->name.len == name->len
            && ngx_memcmp(class->name.data, name->data, name->len) == 0) {
            return class;
        }
    }
    return NULL;
}

void ngx_http_tollbar_tree_resolve(resolved_t *resolved, const class_t *class)
{
    resolved->policy = &class->ceiling;
    resolved->capacity = class->ceiling.burst;
    resolved->spare = 0;
    resolved->class = class;
}

ngx_int_t ngx_http_tollbar_tree_class_of(ngx_http_request_t *r, limit_t *limit,
                                         resolved_t *resolved)
{
    ngx_str_t name = limit->class_name->value;
    const class_t *class;

    if (limit->class_varies && ngx_http_complex_value(r, limit->class_name, &name) != NGX_OK) {
        return NGX_ABORT;
    }
    if (name.len == 0) {
        return NGX_DECLINED;
    }
    class = ngx_http_tollbar_find_class(limit->zone->tree, &name);
    if (class != NULL && !class->is_parent) {
        ngx_http_tollbar_tree_resolve(resolved, class);
        return NGX_OK;
    }
    if (ngx_tollbar_seldom(&limit->wrong_class)) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "unknown class \"%V\", it must be a class of tree \"%V\" without "
                      "children, in %V:%ui%s",
                      &name, &limit->base.shm_zone->shm.name, &limit->base.where.file,
                      limit->base.where.line, limit->wrong_class.text);
    }
    return NGX_ERROR;
}

ngx_int_t ngx_http_tollbar_tree_without_key(ngx_http_request_t *r, limit_t *limit, charge_t *charge)
{
    ngx_int_t rc = limit->varies ? ngx_http_tollbar_resolve_for(r, limit, charge) : NGX_OK;

    return rc == NGX_OK && charge->resolved->class->keyed ? NGX_DECLINED : rc;
}

ngx_int_t ngx_http_tollbar_take_tree(ngx_http_request_t *r, charge_t *charge)
{
    const ngx_http_tollbar_zone_t *zone = charge->limit->zone;
    const resolved_t *resolved = charge->resolved;
    const class_t *class = resolved->class;
    tollbar_share share = TOLLBAR_SHARE_INIT;
    /* A class without keys has one node for all requests. */
    const ngx_str_t key = class->keyed ? charge->key : (ngx_str_t) ngx_null_string;
    int32_t verdict = tollbar_hierarchy_take_at(zone->tree->hierarchy, zone->zone.table,
                                                class->number, key.data, key.len, resolved->cost,
                                                charge->now, &share);

    if (verdict < 0) {
        return ngx_http_tollbar_failed(r, charge, verdict);
    }
    charge->decided = 1;
    charge->bound = 0;
    charge->remaining = share.remaining;
    charge->reset_ns = share.reset_after_ns;
    charge->retry_ns = share.retry_after_ns;
    charge->reason = share.reason;
    return verdict == TOLLBAR_ALLOWED ? NGX_OK : NGX_BUSY;
}
