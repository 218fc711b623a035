/* Limits with `count` or `when`: the module charges them in the log phase, when the response's status and the variables are known.
 *
 * Before the response the module only peeks at such a limit. It keeps the limit and the key in the request's pool, because an internal
 * redirect clears the module's own context. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_limit_t limit_t;

/* A limit that was looked at. */
typedef struct {
    const limit_t *limit;
    uint32_t number;
    ngx_str_t key;
} looked_at_t;

typedef struct {
    ngx_uint_t n;
    looked_at_t limits[1];
} kept_t;

static char *read_status(ngx_conf_t *cf, ngx_str_t *argument, u_char *from, u_char *to, uint32_t *statuses);
static void cleanup(void *data);
static kept_t *find(ngx_http_request_t *r);
static ngx_uint_t status_of(const ngx_http_request_t *r);
static ngx_int_t is_counted(ngx_http_request_t *r, const limit_t *limit, ngx_uint_t status);
static void charge(ngx_http_request_t *r, const looked_at_t *looked_at);

#define COUNT "it must be failed, all, or status codes such as 401,403,5xx"

/* Which statuses are charged: one bit each. */
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

ngx_int_t ngx_http_tollbar_keep(ngx_http_request_t *r, const ngx_http_tollbar_asked_t *asked)
{
    ngx_http_tollbar_charge_t *charges = asked->charges;
    ngx_pool_cleanup_t *place;
    looked_at_t *to;
    kept_t *kept;
    ngx_uint_t n, count = 0;

    for (n = 0; n < asked->charges_n; n++) {
        count += charges[n].limit->afterwards;
    }
    if (count == 0) {
        return NGX_OK;
    }
    place = ngx_pool_cleanup_add(r->main->pool, sizeof(kept_t) + (count - 1) * sizeof(looked_at_t));
    if (place == NULL) {
        return NGX_ERROR;
    }
    place->handler = cleanup;
    kept = place->data;
    kept->n = 0;
    for (n = 0; n < asked->charges_n; n++) {
        if (!charges[n].limit->afterwards) {
            continue;
        }
        to = &kept->limits[kept->n];
        to->limit = charges[n].limit;
        to->number = charges[n].terms->number;
        /* A copy: the variable may have another value by then. */
        to->key.len = charges[n].key.len;
        to->key.data = ngx_pstrdup(r->main->pool, &charges[n].key);
        if (to->key.data == NULL) {
            return NGX_ERROR;
        }
        kept->n++;
    }
    return NGX_OK;
}

/* The pool frees all that there is. */
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

    /* With log_subrequest, subrequests come here, too. */
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

/* What $status is. */
static ngx_uint_t status_of(const ngx_http_request_t *r)
{
    return r->err_status ? r->err_status : r->headers_out.status;
}

/* NGX_OK, NGX_DECLINED, or NGX_ERROR for a value that cannot be evaluated. */
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

static void charge(ngx_http_request_t *r, const looked_at_t *looked_at)
{
    const limit_t *limit = looked_at->limit;
    uint64_t cost;
    int32_t verdict;

    /* The limit is the configuration's, and only its record of messages changes. */
    if (ngx_http_tollbar_amount_of(r, (limit_t *) limit, &((limit_t *) limit)->cost, "cost", 1, &cost) != NGX_OK) {
        return;
    }
    verdict = tollbar_table_charge(limit->zone->zone.table, looked_at->number, looked_at->key.data, looked_at->key.len, cost,
                                   NULL);
    if (verdict < 0) {
        ngx_tollbar_zone_failed(limit->shm_zone, r->connection->log, verdict);
    }
}
