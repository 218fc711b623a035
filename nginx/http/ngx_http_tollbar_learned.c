/* Writes the zones of tollbar_conn_zone with `adaptive` to the status pages: the limit that each has
 * learned, the requests that are open, the latency and the decisions. */

#include "ngx_http_tollbar.h"
#include "ngx_tollbar_conn_limit.h"

typedef ngx_tollbar_conn_zone_t zone_t;
typedef ngx_tollbar_learned_state_t state_t;

/* A zone's numbers. */
typedef struct {
    ngx_str_t name;
    state_t state;
} seen_t;

/* The name is that of JSON, and in a metric it follows "tollbar_adaptive_". */
typedef struct {
    const char *name;
    const char *type;
    /* The label of the verdict. */
    const char *label;
    /* NULL: the metric is that of the line above. */
    const char *help;
    size_t offset;
} metric_t;

static const metric_t metrics[] = {
    { "limit", "gauge", "", "Requests that may be open at one time, by what the zone has learned.",
      offsetof(state_t, limit) },
    { "in_flight", "gauge", "", "Requests that are open.", offsetof(state_t, in_flight) },
    { "latency_nanoseconds", "gauge", "", "The long-term latency with which Gradient2 compares.",
      offsetof(state_t, latency_ns) },
    { "decisions_total", "counter", ",verdict=\"allowed\"", "Decisions of the limit.", offsetof(state_t, allowed) },
    { "decisions_total", "counter", ",verdict=\"denied\"", NULL, offsetof(state_t, denied) },
};

#define METRICS (sizeof(metrics) / sizeof(metrics[0]))
/* The most bytes of a line without the zone's name, and of a zone in JSON. */
#define LINE_MOST 256
#define JSON_MOST 256

static seen_t *collect(ngx_http_request_t *r, ngx_uint_t *count, size_t *names);

ngx_int_t ngx_http_tollbar_learned_metrics(ngx_http_request_t *r, ngx_buf_t **buffer)
{
    ngx_uint_t count, n, m;
    size_t names;
    seen_t *seen = collect(r, &count, &names);
    u_char *to;

    *buffer = NULL;
    if (seen == NULL) {
        return NGX_ERROR;
    }
    if (count == 0) {
        return NGX_OK;
    }
    *buffer = ngx_create_temp_buf(r->pool, METRICS * (LINE_MOST + count * LINE_MOST + names));
    if (*buffer == NULL) {
        return NGX_ERROR;
    }
    to = (*buffer)->last;
    for (m = 0; m < METRICS; m++) {
        if (metrics[m].help != NULL) {
            to = ngx_sprintf(to, "# HELP tollbar_adaptive_%s %s\n# TYPE tollbar_adaptive_%s %s\n", metrics[m].name,
                             metrics[m].help, metrics[m].name, metrics[m].type);
        }
        for (n = 0; n < count; n++) {
            to = ngx_sprintf(to, "tollbar_adaptive_%s{limit=\"%V\"%s} %uL\n", metrics[m].name, &seen[n].name,
                             metrics[m].label,
                             *(const uint64_t *) ((const u_char *) &seen[n].state + metrics[m].offset));
        }
    }
    (*buffer)->last = to;
    return NGX_OK;
}

ngx_int_t ngx_http_tollbar_learned_json(ngx_http_request_t *r, ngx_buf_t **buffer)
{
    ngx_uint_t count, n;
    size_t names;
    seen_t *seen = collect(r, &count, &names);
    u_char *to;

    *buffer = NULL;
    if (seen == NULL) {
        return NGX_ERROR;
    }
    *buffer = ngx_create_temp_buf(r->pool, JSON_MOST + count * JSON_MOST + names);
    if (*buffer == NULL) {
        return NGX_ERROR;
    }
    to = (*buffer)->last;
    for (n = 0; n < count; n++) {
        to = ngx_sprintf(to, "%s{\"name\":\"%V\",\"limit\":%uL,\"in_flight\":%uL,\"latency_nanoseconds\":%uL,"
                         "\"allowed\":%uL,\"denied\":%uL}",
                         n == 0 ? ",\"adaptive\":[" : ",", &seen[n].name, seen[n].state.limit, seen[n].state.in_flight,
                         seen[n].state.latency_ns, seen[n].state.allowed, seen[n].state.denied);
    }
    (*buffer)->last = ngx_sprintf(to, "%s}\n", count != 0 ? "]" : "");
    return NGX_OK;
}

/* Collects the zones that learn. `*names` is the bytes of their names. NULL: there is no memory. */
static seen_t *collect(ngx_http_request_t *r, ngx_uint_t *count, size_t *names)
{
    ngx_tollbar_conn_main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_conn_module);
    zone_t **zones = main->zones.elts;
    seen_t *seen = ngx_palloc(r->pool, main->zones.nelts * sizeof(seen_t) + 1);
    ngx_uint_t n;

    *count = 0;
    *names = 0;
    for (n = 0; seen != NULL && n < main->zones.nelts; n++) {
        /* A process that ends has no view of the table. */
        if (zones[n]->learned == NULL || zones[n]->table == NULL) {
            continue;
        }
        ngx_tollbar_conn_zone_state(zones[n], &seen[*count].state);
        if (ngx_http_tollbar_page_text(r->pool, &zones[n]->shm_zone->shm.name, &seen[*count].name, 1) != NGX_OK) {
            return NULL;
        }
        *names += seen[(*count)++].name.len;
    }
    return seen;
}
