/* `class` of a limit: the class of the zone's policy ("100/s reserve low 20 high 0") that a request
 * belongs to. A request of a class passes only if the class's reserve is left after it. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_limit_t limit_t;

static ngx_int_t find(const tollbar_policy_spec *policy, const ngx_str_t *name, uint64_t *reserve);

ngx_int_t ngx_http_tollbar_class_check(ngx_conf_t *cf, limit_t *limit)
{
    const ngx_str_t *name = &limit->class_name->value;

    if (limit->zone->policy.classes[0].name[0] == '\0') {
        ngx_tollbar_conf_late(cf, &limit->base.where,
                              "\"class\" must be for a zone whose policy has classes, such as "
                              "policy=\"100/s reserve low 20 high 0\", not for zone \"%V\"",
                              &limit->base.shm_zone->shm.name);
        return NGX_ERROR;
    }
    limit->class_varies = limit->class_name->lengths != NULL;
    if (!limit->class_varies && find(&limit->zone->policy, name, &limit->reserve) != NGX_OK) {
        ngx_tollbar_conf_late(cf, &limit->base.where,
                              "unknown class \"%V\" in \"tollbar\" directive, the policy of zone "
                              "\"%V\" must have it",
                              name, &limit->base.shm_zone->shm.name);
        return NGX_ERROR;
    }
    return NGX_OK;
}

ngx_int_t ngx_http_tollbar_class_of(ngx_http_request_t *r, limit_t *limit, uint64_t *reserve)
{
    ngx_str_t name;

    *reserve = limit->reserve;
    if (!limit->class_varies) {
        return NGX_OK;
    }
    if (ngx_http_complex_value(r, limit->class_name, &name) != NGX_OK) {
        return NGX_ABORT;
    }
    if (name.len == 0 || find(&limit->zone->policy, &name, reserve) == NGX_OK) {
        return NGX_OK;
    }
    if (ngx_tollbar_seldom(&limit->wrong_class)) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "unknown class \"%V\" for zone \"%V\", its policy must have it, in %V:%ui%s",
                      &name, &limit->base.shm_zone->shm.name, &limit->base.where.file,
                      limit->base.where.line, limit->wrong_class.text);
    }
    return NGX_ERROR;
}

uint64_t ngx_http_tollbar_needed(const ngx_http_tollbar_resolved_t *resolved)
{
    if (resolved->cost == 0) {
        return 0;
    }
    return resolved->cost > UINT64_MAX - resolved->reserve ? UINT64_MAX : resolved->cost + resolved->reserve;
}

int32_t ngx_http_tollbar_charge_at(const ngx_http_tollbar_charge_t *charge, uint64_t now, tollbar_decision *decision)
{
    const ngx_http_tollbar_resolved_t *resolved = charge->resolved;
    const tollbar_table *table = charge->limit->zone->zone.table;

    /* Without a reserve the plain call decides, which all policies have and which spends the credit
     * of hot keys. */
    return resolved->reserve != 0 ? tollbar_table_check_leaving_at(table, resolved->number, charge->key.data, charge->key.len, resolved->cost,
                                                                   resolved->reserve, now, decision)
                                  : tollbar_table_check_at(table, resolved->number, charge->key.data, charge->key.len, resolved->cost, now,
                                                           decision);
}

/* Finds a class by its name, or by its number: "1" for the policy's first class. */
static ngx_int_t find(const tollbar_policy_spec *policy, const ngx_str_t *name, uint64_t *reserve)
{
    const tollbar_class *class;
    ngx_uint_t n;

    for (n = 0; n < TOLLBAR_CLASSES_MOST && policy->classes[n].name[0] != '\0'; n++) {
        class = &policy->classes[n];
        if ((name->len == ngx_strlen(class->name) && ngx_memcmp(name->data, class->name, name->len) == 0)
            || (name->len == 1 && name->data[0] == '1' + n))
        {
            *reserve = class->reserve;
            return NGX_OK;
        }
    }
    return NGX_ERROR;
}
