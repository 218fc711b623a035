/* Limits with `count` or `when`: the module charges them in the log phase, when the response's
 * status and the variables are known. * Before the response the module only peeks at such a limit.
 * It keeps the limit and the key in the request's pool, because an internal redirect clears the
 * module's own context. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_limit_t limit_t;

/* A limit that the module has peeked at. */
typedef struct {
    const limit_t *limit;
    uint32_t number;
    ngx_str_t key;
} peeked_t;

typedef struct {
    ngx_uint_t n;
    peeked_t limits[1];
} kept_t;

static char *read_status(ngx_conf_t *cf, ngx_str_t *argument, u_char *from, u_char *to, uint32_t *statuses);
static void cleanup(void *data);
static kept_t *find(ngx_http_request_t *r);
static ngx_uint_t status_of(const ngx_http_request_t *r);
static ngx_int_t is_counted(ngx_http_request_t *r, const limit_t *limit, ngx_uint_t status);
static void charge(ngx_http_request_t *r, const peeked_t *peeked);

#define COUNT "it must be failed, all, or status codes such as 401,403,5xx"

/* Sets the bit of a status that is charged. */
static void add(uint32_t *statuses, ngx_uint_t status)
{
    statuses[status / 32] |= (uint32_t) 1 << status % 32;
}

/* count=failed | all | STATUS[,STATUS...] */
char *ngx_http_tollbar_read_count(ngx_conf_t *cf, ngx_str_t *argument, limit_t *limit)
{
    u_char *at = argument->data + 6, *end = argument->data + argument->len, *comma;
    char *error;

    limit->afterwards = 1;
    limit->counted = NULL;
    if (ngx_strcmp(at, "all") == 0) {
        return NGX_CONF_OK;
    }
    limit->counted = ngx_pcalloc(cf->pool, NGX_HTTP_TOLLBAR_STATUSES / 32 * sizeof(uint32_t));
    if (limit->counted == NULL) {
        return NGX_CONF_ERROR;
    }
    if (ngx_strcmp(at, "failed") == 0) {
        add(limit->counted, NGX_HTTP_UNAUTHORIZED);
        add(limit->counted, NGX_HTTP_FORBIDDEN);
        return NGX_CONF_OK;
    }
    for ( ;; ) {
        comma = ngx_strlchr(at, end, ',');
        error = read_status(cf, argument, at, comma != NULL ? comma : end, limit->counted);
        if (error != NGX_CONF_OK || comma == NULL) {
            return error;
        }
        at = comma + 1;
    }
}

static char *read_status(ngx_conf_t *cf, ngx_str_t *argument, u_char *from, u_char *to, uint32_t *statuses)
{
    ngx_int_t status = to - from == 3 ? ngx_atoi(from, 3) : NGX_ERROR;
    ngx_uint_t n;

    if (status >= 100 && status < NGX_HTTP_TOLLBAR_STATUSES) {
        add(statuses, (ngx_uint_t) status);
        return NGX_CONF_OK;
    }
    if (to - from == 3 && from[0] >= '1' && from[0] <= '5' && from[1] == 'x' && from[2] == 'x') {
        for (n = 0; n < 100; n++) {
            add(statuses, (ngx_uint_t) (from[0] - '0') * 100 + n);
        }
        return NGX_CONF_OK;
    }
    return ngx_tollbar_conf_refuse(cf, "invalid count value \"%V\", " COUNT, argument);
}

ngx_int_t ngx_http_tollbar_keep(ngx_http_request_t *r, const ngx_http_tollbar_outcome_t *outcome)
{
    ngx_http_tollbar_charge_t *charges = outcome->charges;
    ngx_pool_cleanup_t *place;
    peeked_t *to;
    kept_t *kept;
    ngx_uint_t n, count = 0;

    for (n = 0; n < outcome->charges_n; n++) {
        count += charges[n].applies && charges[n].limit->afterwards;
    }
    if (count == 0) {
        return NGX_OK;
    }
    place = ngx_pool_cleanup_add(r->main->pool, sizeof(kept_t) + (count - 1) * sizeof(peeked_t));
    if (place == NULL) {
        return NGX_ERROR;
    }
    place->handler = cleanup;
    kept = place->data;
    kept->n = 0;
    for (n = 0; n < outcome->charges_n; n++) {
        if (!charges[n].applies || !charges[n].limit->afterwards) {
            continue;
        }
        to = &kept->limits[kept->n];
        to->limit = charges[n].limit;
        to->number = charges[n].resolved->number;
        /* A copy, because the variable may have another value in the log phase. */
        to->key.len = charges[n].key.len;
        to->key.data = ngx_pstrdup(r->main->pool, &charges[n].key);
        if (to->key.data == NULL) {
            return NGX_ERROR;
        }
        kept->n++;
    }
    return NGX_OK;
}

/* Marks the module's entry among the pool's cleanups. The pool frees the memory. */
static void cleanup(void *data)
{
}

static kept_t *find(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t *place;

    for (place = r->pool->cleanup; place != NULL; place = place->next) {
        if (place->handler == cleanup) {
            return place->data;
        }
    }
    return NULL;
}

ngx_int_t ngx_http_tollbar_log_handler(ngx_http_request_t *r)
{
    ngx_uint_t n, status;
    ngx_int_t rc;
    kept_t *kept;

    /* With log_subrequest, nginx calls this for subrequests, too. */
    kept = r == r->main ? find(r) : NULL;
    if (kept == NULL) {
        return NGX_OK;
    }
    status = status_of(r);
    for (n = 0; n < kept->n; n++) {
        rc = is_counted(r, kept->limits[n].limit, status);
        if (rc == NGX_OK) {
            charge(r, &kept->limits[n]);
        }
    }
    return NGX_OK;
}

/* The value of $status. */
static ngx_uint_t status_of(const ngx_http_request_t *r)
{
    return r->err_status ? r->err_status : r->headers_out.status;
}

/* NGX_OK: charge the request. NGX_DECLINED: do not. NGX_ERROR: a value cannot be evaluated. */
static ngx_int_t is_counted(ngx_http_request_t *r, const limit_t *limit, ngx_uint_t status)
{
    ngx_str_t text;

    if (limit->counted != NULL
        && (status >= NGX_HTTP_TOLLBAR_STATUSES || !(limit->counted[status / 32] & (uint32_t) 1 << status % 32)))
    {
        return NGX_DECLINED;
    }
    if (limit->when != NULL) {
        if (ngx_http_complex_value(r, limit->when, &text) != NGX_OK) {
            return NGX_ERROR;
        }
        if (text.len == 0 || (text.len == 1 && text.data[0] == '0')) {
            return NGX_DECLINED;
        }
    }
    return NGX_OK;
}

static void charge(ngx_http_request_t *r, const peeked_t *peeked)
{
    const limit_t *limit = peeked->limit;
    uint64_t cost;
    int32_t verdict;

    /* The cast is safe: only the limit's record of log lines changes. */
    if (ngx_http_tollbar_amount_of(r, (limit_t *) limit, &((limit_t *) limit)->cost, "cost", 1, &cost) != NGX_OK) {
        return;
    }
    verdict = tollbar_table_charge(limit->zone->zone.table, peeked->number, peeked->key.data, peeked->key.len, cost,
                                   NULL);
    if (verdict < 0) {
        ngx_tollbar_zone_failed(limit->base.shm_zone, r->connection->log, verdict);
    }
}
