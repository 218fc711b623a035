/* Header fields that tell a client about its limits. tollbar_http_fields writes them. The module
 * adds them before nginx produces the answer, so that error pages, redirects inside nginx and
 * answers of upstreams have them, too. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_charge_t charge_t;
typedef ngx_http_tollbar_outcome_t outcome_t;

/* The policy and the decision that a tollbar_http_limit points to. */
typedef struct {
    tollbar_policy_spec policy;
    tollbar_decision decision;
} source_t;

static ngx_int_t add_lines(ngx_http_request_t *r, const charge_t *charges, ngx_uint_t n, uint32_t fields);
static void describe(const charge_t *charge, source_t *source, tollbar_http_limit *limit);
static uint64_t more_after(const charge_t *charge, const tollbar_decision *decision);
static ngx_int_t add(ngx_http_request_t *r, u_char *line, u_char *end);

ngx_int_t ngx_http_tollbar_add_headers(ngx_http_request_t *r, ngx_int_t rc, const outcome_t *outcome)
{
    ngx_http_tollbar_conf_t *conf = ngx_http_get_module_loc_conf(r, ngx_http_tollbar_module);
    const uint32_t legacy = (uint32_t) conf->headers & (TOLLBAR_HTTP_LEGACY|TOLLBAR_HTTP_LEGACY_EPOCH);
    const uint32_t draft = (uint32_t) conf->headers & ~legacy;
    const charge_t *binding = outcome->binding;

    /* nginx has sent the header already: this is a subrequest that adds a later part of the
     * answer. */
    if (r->main->header_sent || binding == NULL) {
        return NGX_OK;
    }
    if (add_lines(r, binding, 1, (rc == NGX_BUSY ? TOLLBAR_HTTP_RETRY_AFTER : 0) | (binding->decided ? legacy : 0)) != NGX_OK) {
        return NGX_ERROR;
    }
    /* The draft's fields list every enforced limit, in the order of the configuration. */
    return add_lines(r, outcome->charges, outcome->enforced, draft);
}

uint64_t ngx_http_tollbar_seconds(uint64_t ns)
{
    return ns / 1000000000 + (ns % 1000000000 != 0);
}

/* Adds the fields of the limits. A draft's fields leave out limits without a decision. */
static ngx_int_t add_lines(ngx_http_request_t *r, const charge_t *charges, ngx_uint_t n, uint32_t fields)
{
    const ngx_flag_t all = (fields & (TOLLBAR_HTTP_RETRY_AFTER|TOLLBAR_HTTP_LEGACY|TOLLBAR_HTTP_LEGACY_EPOCH)) != 0;
    tollbar_http_limit limits[TOLLBAR_HTTP_LIMITS_MOST];
    source_t *sources;
    size_t count = 0;
    ngx_uint_t i;

    if (fields == 0) {
        return NGX_OK;
    }
    sources = ngx_palloc(r->pool, ngx_min(n, TOLLBAR_HTTP_LIMITS_MOST) * sizeof(source_t));
    if (sources == NULL) {
        return NGX_ERROR;
    }
    for (i = 0; i < n && count < TOLLBAR_HTTP_LIMITS_MOST; i++) {
        if (all || charges[i].decided) {
            describe(&charges[i], &sources[count], &limits[count]);
            count++;
        }
    }
    return count != 0 ? ngx_http_tollbar_add_fields(r, limits, count, fields) : NGX_OK;
}

ngx_int_t ngx_http_tollbar_add_fields(ngx_http_request_t *r, const tollbar_http_limit *limits, size_t count, uint32_t fields)
{
    const ngx_time_t *now = ngx_timeofday();
    const uint64_t utc = (uint64_t) now->sec * 1000000000 + (uint64_t) now->msec * 1000000;
    u_char *line, *end, *next;
    size_t capacity = 300, length, i;
    int32_t code;

    for (i = 0; i < count; i++) {
        capacity += 100 + 4 * limits[i].name_length;
    }
    line = ngx_pnalloc(r->pool, capacity);
    if (line == NULL) {
        return NGX_ERROR;
    }
    code = tollbar_http_fields(limits, count, fields, utc, (char *) line, capacity, &length);
    if (code != 0) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "header fields of limits cannot be written: %s", tollbar_strerror(code));
        return NGX_OK;
    }
    for (end = line + length; line < end; line = next + 2) {
        next = ngx_strlchr(line, end, CR);
        if (add(r, line, next) != NGX_OK) {
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}

static void describe(const charge_t *charge, source_t *source, tollbar_http_limit *limit)
{
    const ngx_http_tollbar_resolved_t *resolved = charge->resolved;
    const ngx_str_t *name = &charge->limit->base.shm_zone->shm.name;

    /* The limit's own burst may be smaller than that of the zone's policy. */
    source->policy = *resolved->policy;
    source->policy.burst = resolved->capacity;
    source->decision = (tollbar_decision) TOLLBAR_DECISION_INIT;
    source->decision.verdict = charge->retry_ns == 0                 ? TOLLBAR_ALLOWED
                               : charge->retry_ns == TOLLBAR_NO_TIME ? TOLLBAR_NEVER
                                                                     : TOLLBAR_DENIED;
    source->decision.remaining = charge->remaining;
    source->decision.retry_after_ns = charge->retry_ns;
    source->decision.reset_after_ns = charge->reset_ns;
    source->decision.bound = charge->bound;
    limit->name = (const char *) name->data;
    limit->name_length = name->len;
    limit->policy = &source->policy;
    limit->decision = &source->decision;
    limit->more_after_ns = more_after(charge, &source->decision);
    limit->partition = NULL;
    limit->partition_length = 0;
}

/* Nanoseconds until more permits are left than in `decision`. TOLLBAR_NO_TIME: unknown, as for
 * every limit with a node or a tree. */
static uint64_t more_after(const charge_t *charge, const tollbar_decision *decision)
{
    const ngx_http_tollbar_resolved_t *resolved = charge->resolved;
    /* The table's decision, which has `spare` permits more left than the limit's. */
    tollbar_decision whole = *decision;
    uint64_t more = TOLLBAR_NO_TIME;

    if (resolved->leased || resolved->class != NULL || !charge->decided) {
        return TOLLBAR_NO_TIME;
    }
    whole.remaining += resolved->spare;
    whole.reset_after_ns = charge->remaining < resolved->capacity;
    (void) tollbar_table_more_after(charge->limit->zone->zone.table, resolved->number, charge->key.data, charge->key.len,
                                    resolved->cost + resolved->spare, &whole, &more);
    return more;
}

/* Adds a line `Name: value`, which ends at `end`. */
static ngx_int_t add(ngx_http_request_t *r, u_char *line, u_char *end)
{
    ngx_table_elt_t *header = ngx_list_push(&r->main->headers_out.headers);
    u_char *colon = ngx_strlchr(line, end, ':');

    if (header == NULL) {
        return NGX_ERROR;
    }
    /* Newer versions of nginx have more fields. */
    ngx_memzero(header, sizeof(*header));
    header->hash = 1;
    header->key.data = line;
    header->key.len = (size_t) (colon - line);
    header->value.data = colon + 2;
    header->value.len = (size_t) (end - colon - 2);
    return NGX_OK;
}
