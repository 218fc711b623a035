/* tollbar_status_page prometheus: the metrics of the zones and of the rules, by the library's own
 * writers. * The library has no writer for leases, so this file prints the metrics of zones with
 * `sync`. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_main_conf_t main_conf_t;
typedef ngx_http_tollbar_zone_t zone_t;

/* A metric of a zone with `sync`. */
typedef struct {
    const char *name;
    ngx_flag_t counts;
    const char *help;
    /* In leased_t. */
    size_t offset;
} metric_t;

/* A zone with `sync`, and its numbers. */
typedef struct {
    ngx_str_t name;
    tollbar_lease_stats stats;
    uint64_t waiting;
    uint64_t waited;
    uint64_t wait_full;
} leased_t;

/* Prometheus' names of counters end in "_total". */
static const metric_t metrics[] = {
    { "granted_permits", 1, "Permits that the store has granted.", offsetof(leased_t, stats.granted) },
    { "questions", 1, "Questions to the store.", offsetof(leased_t, stats.asked) },
    { "overdrawn_permits", 1, "Permits admitted before the store's answer.", offsetof(leased_t, stats.overdrawn) },
    { "fallback_permits", 1, "Permits admitted at this machine's share while the store did not answer.",
      offsetof(leased_t, stats.fallback_permits) },
    { "uncounted_permits", 1, "Permits admitted uncounted while the store did not answer.", offsetof(leased_t, stats.uncounted) },
    { "denied", 1, "Requests refused.", offsetof(leased_t, stats.denied) },
    { "queue_full", 1, "Messages to the worker that asks the store that found no room.", offsetof(leased_t, stats.queue_full) },
    { "full", 1, "Denied requests for whose key the zone had no place.", offsetof(leased_t, stats.full) },
    { "opened", 1, "Times that the store stopped answering.", offsetof(leased_t, stats.opened) },
    { "owed_permits", 0, "Permits admitted that the store has not charged yet.", offsetof(leased_t, stats.owed) },
    { "waiting", 0, "Requests that wait for the store now.", offsetof(leased_t, waiting) },
    { "waited", 1, "Requests that have waited for the store.", offsetof(leased_t, waited) },
    { "wait_full", 1, "Requests refused because too many waited for the store.", offsetof(leased_t, wait_full) },
};

#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

/* The reasons of refusals: words, and where the number is in leased_t. */
static const struct {
    const char *word;
    size_t offset;
} reasons[] = {
    { "pending", offsetof(leased_t, stats.denied_pending) },
    { "denied by the store", offsetof(leased_t, stats.denied_by_store) },
    { "store down", offsetof(leased_t, stats.denied_by_fallback) },
    { "table full", offsetof(leased_t, stats.full) },
    { "queue full", offsetof(leased_t, wait_full) },
};

#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

/* A writer of the library: prints into a buffer, and says how long the text is. */
typedef int32_t (*writer_t)(const void *sources, size_t count, char *buffer, size_t capacity, size_t *length);

static ngx_int_t append_tables(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end);
static ngx_int_t append_worst_cases(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end);
static ngx_int_t append_leases(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end);
static ngx_int_t append_learned(ngx_http_request_t *r, ngx_chain_t ***end);
static ngx_int_t append_times(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end);
static ngx_int_t append_rules(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end);
static int32_t write_tables(const void *sources, size_t count, char *buffer, size_t capacity, size_t *length);
static int32_t write_rules(const void *sources, size_t count, char *buffer, size_t capacity, size_t *length);
static ngx_int_t append(ngx_http_request_t *r, writer_t write, const void *sources, size_t count, ngx_chain_t ***end);
static ngx_int_t append_buffer(ngx_http_request_t *r, ngx_buf_t *buffer, ngx_chain_t ***end);
static u_char *print_metric(u_char *to, const metric_t *metric, const leased_t *zones, ngx_uint_t count);
static uint64_t number_of(const leased_t *zone, size_t offset);

ngx_int_t ngx_http_tollbar_answer_prometheus(ngx_http_request_t *r)
{
    main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    ngx_int_t rc = ngx_http_tollbar_begin_page(r);
    ngx_chain_t *page = NULL, **end = &page;

    if (rc != NGX_OK) {
        return rc;
    }
    if (append_tables(r, main, &end) != NGX_OK || append_worst_cases(r, main, &end) != NGX_OK
        || append_leases(r, main, &end) != NGX_OK || append_learned(r, &end) != NGX_OK
        || append_times(r, main, &end) != NGX_OK || append_rules(r, main, &end) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    return ngx_http_tollbar_send_page(r, page, "text/plain; version=0.0.4; charset=utf-8");
}

ngx_int_t ngx_http_tollbar_check_prometheus(ngx_conf_t *cf, main_conf_t *main)
{
    ngx_shm_zone_t **zones = main->zones.elts;
    ngx_uint_t n, tables = 0;

    for (n = 0; n < main->zones.nelts; n++) {
        tables += ((zone_t *) zones[n]->data)->sync == NULL;
    }
    if (main->prometheus.line != 0 && tables > TOLLBAR_METRICS_MOST) {
        ngx_tollbar_conf_late(cf, &main->prometheus, "\"tollbar_status_page prometheus\" has room for %ui zones, and there must not be %ui",
                              (ngx_uint_t) TOLLBAR_METRICS_MOST, tables);
        return NGX_ERROR;
    }
    return NGX_OK;
}

static ngx_int_t append_tables(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end)
{
    tollbar_metrics_source *sources = ngx_palloc(r->pool, main->zones.nelts * sizeof(tollbar_metrics_source) + 1);
    ngx_shm_zone_t **zones = main->zones.elts;
    ngx_uint_t n, count = 0;
    zone_t *zone;
    ngx_str_t name;

    if (sources == NULL) {
        return NGX_ERROR;
    }
    for (n = 0; n < main->zones.nelts; n++) {
        zone = zones[n]->data;
        if (zone->sync != NULL) {
            continue;
        }
        if (ngx_http_tollbar_page_text(r->pool, &zones[n]->shm.name, &name, 0) != NGX_OK) {
            return NGX_ERROR;
        }
        /* If the rate holds variables, no request uses the first policy, and the others have a
         * burst above that of any limit. */
        sources[count++] = (tollbar_metrics_source) {
            (const char *) name.data, name.len, NULL, zone->zone.table,
            zone->rate != NULL ? TOLLBAR_METRICS_RATES_ONLY|TOLLBAR_METRICS_WITHOUT_FIRST : 0
        };
    }
    return append(r, write_tables, sources, count, end);
}

static ngx_int_t append_worst_cases(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end)
{
    ngx_shm_zone_t **zones = main->zones.elts;
    ngx_str_t *names = ngx_palloc(r->pool, main->zones.nelts * sizeof(ngx_str_t) + 1);
    ngx_uint_t n, count = 0;
    size_t bytes = 256;
    ngx_buf_t *buffer;
    zone_t *zone;

    for (n = 0; names != NULL && n < main->zones.nelts; n++) {
        if (ngx_http_tollbar_page_text(r->pool, &zones[n]->shm.name, &names[n], 1) != NGX_OK) {
            return NGX_ERROR;
        }
        bytes += 128 + names[n].len;
        count += ((zone_t *) zones[n]->data)->worst_case != 0;
    }
    if (count == 0) {
        return names != NULL ? NGX_OK : NGX_ERROR;
    }
    buffer = ngx_create_temp_buf(r->pool, bytes);
    if (buffer == NULL) {
        return NGX_ERROR;
    }
    buffer->last = ngx_sprintf(buffer->last, "# HELP tollbar_policy_worst_case "
                               "The most permits of a key in some window of one period.\n"
                               "# TYPE tollbar_policy_worst_case gauge\n");
    for (n = 0; n < main->zones.nelts; n++) {
        zone = zones[n]->data;
        if (zone->worst_case != 0) {
            buffer->last = ngx_sprintf(buffer->last, "tollbar_policy_worst_case{limit=\"%V\",policy=\"%uD\"} %uL\n",
                                       &names[n], zone->zone.number, zone->worst_case);
        }
    }
    return append_buffer(r, buffer, end);
}

static ngx_int_t append_leases(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end)
{
    leased_t *leased = ngx_palloc(r->pool, main->zones.nelts * sizeof(leased_t) + 1);
    ngx_shm_zone_t **zones = main->zones.elts;
    ngx_uint_t n, zone_n, count = 0;
    size_t names = 0;
    ngx_buf_t *buffer;
    zone_t *zone;
    int32_t error;

    if (leased == NULL) {
        return NGX_ERROR;
    }
    for (n = 0; n < main->zones.nelts; n++) {
        zone = zones[n]->data;
        if (zone->sync == NULL) {
            continue;
        }
        leased[count].stats = (tollbar_lease_stats) TOLLBAR_LEASE_STATS_INIT;
        error = tollbar_lease_get_stats(zone->sync->lease, &leased[count].stats);
        if (error != 0) {
            ngx_tollbar_zone_failed(zones[n], r->connection->log, error);
            return NGX_ERROR;
        }
        leased[count].waiting = ngx_http_tollbar_wait_count(zone->sync);
        leased[count].waited = zone->sync->node->waited;
        leased[count].wait_full = zone->sync->node->wait_full;
        leased[count].stats.denied += leased[count].wait_full;
        if (ngx_http_tollbar_page_text(r->pool, &zones[n]->shm.name, &leased[count].name, 1) != NGX_OK) {
            return NGX_ERROR;
        }
        names += leased[count++].name.len;
    }
    if (count == 0) {
        return NGX_OK;
    }
    buffer = ngx_create_temp_buf(r->pool, (METRICS + REASONS + 2) * (256 + names + count * (64 + NGX_INT64_LEN)));
    if (buffer == NULL) {
        return NGX_ERROR;
    }
    for (n = 0; n < METRICS; n++) {
        buffer->last = print_metric(buffer->last, &metrics[n], leased, count);
    }
    buffer->last = ngx_sprintf(buffer->last, "# HELP tollbar_lease_refused_total Requests refused, by reason.\n"
                               "# TYPE tollbar_lease_refused_total counter\n");
    for (n = 0; n < count * REASONS; n++) {
        zone_n = n / REASONS;
        buffer->last = ngx_sprintf(buffer->last, "tollbar_lease_refused_total{limit=\"%V\",reason=\"%s\"} %uL\n", &leased[zone_n].name,
                                   reasons[n % REASONS].word, number_of(&leased[zone_n], reasons[n % REASONS].offset));
    }
    buffer->last = ngx_sprintf(buffer->last, "# HELP tollbar_lease_circuit Whether the store answers: 0 unknown, 1 yes, 2 no.\n"
                               "# TYPE tollbar_lease_circuit gauge\n");
    for (n = 0; n < count; n++) {
        buffer->last = ngx_sprintf(buffer->last, "tollbar_lease_circuit{limit=\"%V\"} %uD\n", &leased[n].name, leased[n].stats.circuit);
    }
    return append_buffer(r, buffer, end);
}

static uint64_t number_of(const leased_t *zone, size_t offset)
{
    return *(const uint64_t *) ((const u_char *) zone + offset);
}

static u_char *print_metric(u_char *to, const metric_t *metric, const leased_t *zones, ngx_uint_t count)
{
    const char *end = metric->counts ? "_total" : "";
    ngx_uint_t n;

    to = ngx_sprintf(to, "# HELP tollbar_lease_%s%s %s\n# TYPE tollbar_lease_%s%s %s\n", metric->name, end, metric->help, metric->name, end,
                     metric->counts ? "counter" : "gauge");
    for (n = 0; n < count; n++) {
        to = ngx_sprintf(to, "tollbar_lease_%s%s{limit=\"%V\"} %uL\n", metric->name, end, &zones[n].name,
                         number_of(&zones[n], metric->offset));
    }
    return to;
}

static ngx_int_t append_learned(ngx_http_request_t *r, ngx_chain_t ***end)
{
    ngx_buf_t *buffer;

    if (ngx_http_tollbar_learned_metrics(r, &buffer) != NGX_OK) {
        return NGX_ERROR;
    }
    return buffer != NULL ? append_buffer(r, buffer, end) : NGX_OK;
}

static ngx_int_t append_times(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end)
{
    ngx_buf_t *buffer;

    if (main->times == NULL) {
        return NGX_OK;
    }
    buffer = ngx_http_tollbar_times_metrics(r, main->times);
    return buffer != NULL ? append_buffer(r, buffer, end) : NGX_ERROR;
}

static ngx_int_t append_rules(ngx_http_request_t *r, main_conf_t *main, ngx_chain_t ***end)
{
    ngx_http_tollbar_rules_t **rules = main->rules.elts;
    ngx_uint_t n, count = ngx_min(main->rules.nelts, TOLLBAR_METRICS_MOST);
    tollbar_rules_source *sources = ngx_palloc(r->pool, count * sizeof(tollbar_rules_source) + 1);
    ngx_str_t name;

    if (sources == NULL) {
        return NGX_ERROR;
    }
    for (n = 0; n < count; n++) {
        if (ngx_http_tollbar_page_text(r->pool, &rules[n]->path, &name, 0) != NGX_OK) {
            return NGX_ERROR;
        }
        sources[n] = (tollbar_rules_source) { (const char *) name.data, name.len, rules[n]->opened->rules };
    }
    return count != 0 ? append(r, write_rules, sources, count, end) : NGX_OK;
}

static int32_t write_tables(const void *sources, size_t count, char *buffer, size_t capacity, size_t *length)
{
    return tollbar_metrics(sources, count, TOLLBAR_METRICS_PROMETHEUS, buffer, capacity, length);
}

static int32_t write_rules(const void *sources, size_t count, char *buffer, size_t capacity, size_t *length)
{
    return ngx_http_tollbar_rules_calls.metrics(sources, count, TOLLBAR_METRICS_PROMETHEUS, buffer, capacity, length);
}

static ngx_int_t append(ngx_http_request_t *r, writer_t write, const void *sources, size_t count, ngx_chain_t ***end)
{
    size_t capacity = 8192 + count * 4096, length;
    ngx_buf_t *buffer;
    int32_t error;

    for ( ;; ) {
        length = 0;
        buffer = ngx_create_temp_buf(r->pool, capacity);
        if (buffer == NULL) {
            return NGX_ERROR;
        }
        error = write(sources, count, (char *) buffer->pos, capacity, &length);
        if (error != TOLLBAR_E_BUFFER_TOO_SMALL || length < capacity) {
            break;
        }
        /* A counter may gain digits until the next call. */
        capacity = length + length / 8 + 1;
    }
    if (error != 0) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "metrics cannot be written: %s", tollbar_strerror(error));
        return NGX_ERROR;
    }
    buffer->last += length;
    return append_buffer(r, buffer, end);
}

static ngx_int_t append_buffer(ngx_http_request_t *r, ngx_buf_t *buffer, ngx_chain_t ***end)
{
    ngx_chain_t *link = ngx_alloc_chain_link(r->pool);

    if (link == NULL) {
        return NGX_ERROR;
    }
    link->buf = buffer;
    link->next = NULL;
    **end = link;
    *end = &link->next;
    return NGX_OK;
}
