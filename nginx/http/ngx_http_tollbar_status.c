/* tollbar_status_page: the statistics of the zones, as JSON and for Prometheus. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_main_conf_t main_conf_t;
typedef ngx_http_tollbar_zone_t zone_t;

/* The decisions under one policy of a table. */
typedef struct {
    char policy[TOLLBAR_POLICY_TEXT_MAX];
    tollbar_counts counts;
} decided_t;

/* A zone and the statistics of its table or node. */
typedef struct {
    zone_t *zone;
    ngx_uint_t has;
    /* A node sets `bytes`, `capacity` and `denied`. */
    tollbar_table_stats stats;
    tollbar_lease_stats leases;
    uint64_t circuit;
    /* The decisions of each policy. A node has none. */
    decided_t *decided;
    ngx_uint_t decided_n;
    ngx_str_t name;
    ngx_str_t key;
    /* The name in the store. */
    ngx_str_t shared;
} seen_t;

#define TABLE 1
#define NODE 2

typedef struct {
    const char *name;
    const char *kind;
    const char *help;
    size_t offset;
    ngx_uint_t of;
    /* The offset in tollbar_counts. 0: the table does not count the metric by policy. */
    size_t counted;
} metric_t;

/* Prometheus' names of counters end in "_total". */
static const metric_t metrics[] = {
    { "bytes", "gauge", "Bytes of shared memory that the table or node takes.", offsetof(seen_t, stats.bytes), TABLE|NODE, 0 },
    { "capacity", "gauge", "Keys that the zone has room for.", offsetof(seen_t, stats.capacity), TABLE|NODE, 0 },
    { "slots", "gauge", "Slots of the table.", offsetof(seen_t, stats.slots), TABLE, 0 },
    { "keys", "gauge", "Slots that hold a key, with a debt or without.", offsetof(seen_t, stats.keys), TABLE, 0 },
    { "inserted", "counter", "Keys that took an empty slot.", offsetof(seen_t, stats.inserted), TABLE, 0 },
    { "reclaimed", "counter", "Keys that took the slot of a key without a debt.",
      offsetof(seen_t, stats.reclaimed), TABLE, 0 },
    { "refused", "counter", "New keys that were refused because no slot was free.", offsetof(seen_t, stats.refused), TABLE, 0 },
    { "inherited", "counter", "New keys that took over a slot and its debt.", offsetof(seen_t, stats.inherited), TABLE, 0 },
    { "untracked", "counter", "New keys that were admitted and not stored.",
      offsetof(seen_t, stats.untracked), TABLE, 0 },
    { "evicted", "counter", "Keys with a debt that were evicted.", offsetof(seen_t, stats.evicted), TABLE, 0 },
    { "retries", "counter", "Steps that were repeated because another process changed the slot first.",
      offsetof(seen_t, stats.retries), TABLE, 0 },
    { "backward_steps", "counter", "Requests with an older time than an earlier request.",
      offsetof(seen_t, stats.backward_steps), TABLE, 0 },
    { "allowed", "counter", "Requests that the table admitted and charged, by policy.", offsetof(seen_t, stats.allowed), TABLE,
      offsetof(tollbar_counts, allowed) },
    { "denied", "counter", "Requests refused by the limit, by policy, or by the node.", offsetof(seen_t, stats.denied), TABLE|NODE,
      offsetof(tollbar_counts, denied) },
    { "never", "counter", "Requests refused because they cost more than the burst, by policy.", offsetof(seen_t, stats.never), TABLE,
      offsetof(tollbar_counts, never) },
    { "circuit", "gauge", "Whether the store answers: 0 unknown, 1 yes, 2 no.", offsetof(seen_t, circuit), NODE, 0 },
    { "granted", "counter", "Permits that the store has granted.", offsetof(seen_t, leases.granted), NODE, 0 },
    { "asked", "counter", "Questions to the store.", offsetof(seen_t, leases.asked), NODE, 0 },
    { "overdrawn", "counter", "Permits admitted before the store's answer.", offsetof(seen_t, leases.overdrawn), NODE, 0 },
    { "fallback_permits", "counter", "Permits admitted at this machine's share while the store did not answer.",
      offsetof(seen_t, leases.fallback_permits), NODE, 0 },
    { "uncounted", "counter", "Permits admitted uncounted while the store did not answer.",
      offsetof(seen_t, leases.uncounted), NODE, 0 },
    { "queue_full", "counter", "Messages to the worker that asks the store that found no room.",
      offsetof(seen_t, leases.queue_full), NODE, 0 },
    { "opened", "counter", "Times that the store stopped answering.", offsetof(seen_t, leases.opened), NODE, 0 },
    { "owed", "gauge", "Permits admitted that the store has not charged yet.", offsetof(seen_t, leases.owed), NODE, 0 },
};

#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

/* The most bytes of one number without the zone's name, and of the lines that precede a metric. */
#define NUMBER_MOST (sizeof("tollbar_zone_backward_steps_total{zone=\"\"} \n") + NGX_INT64_LEN)
#define HEAD_MOST 256
/* The most bytes of one policy's decisions in JSON, and of one of their numbers in Prometheus' text without the zone's name. */
#define DECIDED_MOST (sizeof("{\"policy\":\"\",\"allowed\":,\"denied\":,\"never\":},") + TOLLBAR_POLICY_TEXT_MAX + 3 * NGX_INT64_LEN)
#define BY_POLICY_MOST (NUMBER_MOST + sizeof("policy=\"\",") + TOLLBAR_POLICY_TEXT_MAX)

static ngx_int_t answer_json(ngx_http_request_t *r);
static ngx_int_t answer_prometheus(ngx_http_request_t *r);
static ngx_int_t begin(ngx_http_request_t *r);
static seen_t *collect(ngx_http_request_t *r, ngx_uint_t *count, size_t *names, size_t *decided);
static ngx_int_t collect_zone(ngx_http_request_t *r, ngx_shm_zone_t *shm_zone, seen_t *seen);
static int32_t read_stats(ngx_pool_t *pool, seen_t *seen);
static int32_t read_policies(ngx_pool_t *pool, seen_t *seen);
static ngx_int_t escape(ngx_pool_t *pool, const ngx_str_t *text, ngx_str_t *escaped);
static size_t sequence(const u_char *text, size_t length);
static u_char *print_json_zone(u_char *to, const seen_t *zone);
static u_char *print_kind(u_char *to, const seen_t *zone);
static u_char *print_decided(u_char *to, const seen_t *zone);
static u_char *print_metric(u_char *to, const metric_t *metric, const seen_t *zones, ngx_uint_t zones_n);
static uint64_t value_of(const seen_t *zone, const metric_t *metric);
static ngx_int_t send_page(ngx_http_request_t *r, ngx_buf_t *buffer, const char *type);

/* tollbar_status_page json|prometheus */
char *ngx_http_tollbar_read_status_page(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    ngx_str_t *value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "json") == 0) {
        core->handler = answer_json;
    } else if (ngx_strcmp(value[1].data, "prometheus") == 0) {
        core->handler = answer_prometheus;
    } else {
        return ngx_tollbar_conf_refuse(cf, "invalid value \"%V\" in \"tollbar_status_page\" directive, it must be json or prometheus",
                                       &value[1]);
    }
    return NGX_CONF_OK;
}

static ngx_int_t answer_json(ngx_http_request_t *r)
{
    ngx_int_t rc = begin(r);
    ngx_uint_t n, zones_n;
    ngx_buf_t *buffer;
    seen_t *zones;
    size_t names, decided;

    if (rc != NGX_OK) {
        return rc;
    }
    zones = collect(r, &zones_n, &names, &decided);
    if (zones == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    buffer = ngx_create_temp_buf(
        r->pool, HEAD_MOST + names + decided * DECIDED_MOST
                     + zones_n * (METRICS * NUMBER_MOST + HEAD_MOST + TOLLBAR_POLICY_TEXT_MAX));
    if (buffer == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    buffer->last = ngx_sprintf(buffer->last, "{\"version\":\"%s\",\"zones\":[", tollbar_version_string());
    for (n = 0; n < zones_n; n++) {
        if (n != 0) {
            *buffer->last++ = ',';
        }
        buffer->last = print_json_zone(buffer->last, &zones[n]);
    }
    buffer->last = ngx_cpymem(buffer->last, "]}\n", 3);
    return send_page(r, buffer, "application/json");
}

static ngx_int_t answer_prometheus(ngx_http_request_t *r)
{
    ngx_int_t rc = begin(r);
    ngx_uint_t n, zones_n;
    ngx_buf_t *buffer;
    seen_t *zones;
    size_t names, decided;

    if (rc != NGX_OK) {
        return rc;
    }
    zones = collect(r, &zones_n, &names, &decided);
    if (zones == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    buffer = ngx_create_temp_buf(r->pool, METRICS * (HEAD_MOST + names + zones_n * NUMBER_MOST)
                                              + 3 * decided * (names + BY_POLICY_MOST));
    if (buffer == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    for (n = 0; n < METRICS; n++) {
        buffer->last = print_metric(buffer->last, &metrics[n], zones, zones_n);
    }
    return send_page(r, buffer, "text/plain; version=0.0.4; charset=utf-8");
}

static ngx_int_t begin(ngx_http_request_t *r)
{
    return r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD) ? ngx_http_discard_request_body(r) : NGX_HTTP_NOT_ALLOWED;
}

/* Collects all zones. `*names` is the bytes of their printed names and keys, `*decided` the number of their policies. */
static seen_t *collect(ngx_http_request_t *r, ngx_uint_t *count, size_t *names, size_t *decided)
{
    main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    ngx_shm_zone_t **all = main->zones.elts;
    seen_t *zones = ngx_pcalloc(r->pool, main->zones.nelts * sizeof(seen_t) + 1);
    ngx_uint_t n;

    *names = *decided = 0;
    *count = main->zones.nelts;
    for (n = 0; zones != NULL && n < main->zones.nelts; n++) {
        if (collect_zone(r, all[n], &zones[n]) != NGX_OK) {
            return NULL;
        }
        *names += zones[n].name.len + zones[n].key.len + zones[n].shared.len;
        *decided += zones[n].decided_n;
    }
    return zones;
}

static ngx_int_t collect_zone(ngx_http_request_t *r, ngx_shm_zone_t *shm_zone, seen_t *seen)
{
    int32_t error;

    seen->zone = shm_zone->data;
    seen->has = seen->zone->sync != NULL ? NODE : TABLE;
    error = read_stats(r->pool, seen);
    if (error != 0) {
        ngx_tollbar_zone_failed(shm_zone, r->connection->log, error);
        return NGX_ERROR;
    }
    if (escape(r->pool, &shm_zone->shm.name, &seen->name) != NGX_OK
        || escape(r->pool, &seen->zone->zone.keys, &seen->key) != NGX_OK)
    {
        return NGX_ERROR;
    }
    return seen->has == NODE ? escape(r->pool, &seen->zone->sync->name, &seen->shared) : NGX_OK;
}

static int32_t read_stats(ngx_pool_t *pool, seen_t *seen)
{
    static const tollbar_table_stats no_table = TOLLBAR_TABLE_STATS_INIT;
    static const tollbar_lease_stats no_node = TOLLBAR_LEASE_STATS_INIT;
    ngx_http_tollbar_sync_t *sync = seen->zone->sync;
    int32_t error;

    seen->stats = no_table;
    seen->leases = no_node;
    if (sync == NULL) {
        error = tollbar_table_get_stats(seen->zone->zone.table, &seen->stats);
        return error == 0 ? read_policies(pool, seen) : error;
    }
    seen->stats.bytes = sync->node->bytes;
    seen->stats.capacity = sync->node->capacity;
    error = tollbar_lease_get_stats(sync->lease, &seen->leases);
    seen->circuit = seen->leases.circuit;
    seen->stats.denied = seen->leases.denied;
    return error;
}

/* Reads the policies and their decisions. If the rate has variables, no request uses the table's first policy, so the page leaves it out. The other
 * policies then have a burst above that of any limit, so the page shows only their rates. */
static int32_t read_policies(ngx_pool_t *pool, seen_t *seen)
{
    static const tollbar_counts none = TOLLBAR_COUNTS_INIT;
    uint32_t number = seen->zone->rate != NULL, end = seen->stats.policies;
    tollbar_table *table = seen->zone->zone.table;
    decided_t *decided = ngx_palloc(pool, (end - number) * sizeof(decided_t) + 1);
    int32_t error = decided != NULL ? 0 : TOLLBAR_E_NO_MEMORY;

    seen->decided = decided;
    for ( /* void */ ; error == 0 && number < end; number++, decided++) {
        tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;

        decided->counts = none;
        error = tollbar_table_get_policy(table, number, &policy);
        if (seen->zone->rate != NULL) {
            policy.burst = policy.limit;
        }
        if (error == 0) {
            error = tollbar_policy_spec_print(&policy, decided->policy, sizeof(decided->policy), NULL);
        }
        if (error == 0) {
            error = tollbar_table_get_counts(table, number, &decided->counts);
        }
        seen->decided_n++;
    }
    return error;
}

/* Escapes a text for JSON and for Prometheus. Both escape quotes, backslashes and newlines, and both need UTF-8. Only JSON has escapes for other
 * control characters, so these become question marks, and so do bytes that are not UTF-8. */
static ngx_int_t escape(ngx_pool_t *pool, const ngx_str_t *text, ngx_str_t *escaped)
{
    u_char *to = ngx_pnalloc(pool, 2 * text->len + 1);
    size_t n = 0, length;
    u_char c;

    if (to == NULL) {
        return NGX_ERROR;
    }
    escaped->data = to;
    while (n < text->len) {
        c = text->data[n];
        length = sequence(text->data + n, text->len - n);
        if (c == '"' || c == '\\') {
            *to++ = '\\';
            *to++ = c;
        } else if (c == '\n') {
            *to++ = '\\';
            *to++ = 'n';
        } else if (c < 0x20 || c == 0x7f || length == 0) {
            *to++ = '?';
        } else {
            to = ngx_cpymem(to, text->data + n, length);
        }
        n += ngx_max(length, 1);
    }
    escaped->len = to - escaped->data;
    return NGX_OK;
}

/* The length in bytes of the UTF-8 character at the start of the text. 0: there is none. */
static size_t sequence(const u_char *text, size_t length)
{
    u_char *at = (u_char *) text;

    if (*text < 0x80) {
        return 1;
    }
    return ngx_utf8_decode(&at, length) > 0x10ffff ? 0 : (size_t) (at - text);
}

static u_char *print_json_zone(u_char *to, const seen_t *zone)
{
    char policy[TOLLBAR_POLICY_TEXT_MAX] = "";
    ngx_uint_t n;

    to = ngx_sprintf(to, "{\"name\":\"%V\",\"key\":\"%V\",", &zone->name, &zone->key);
    if (zone->zone->rate == NULL && tollbar_policy_spec_print(&zone->zone->policy, policy, sizeof(policy), NULL) == 0) {
        to = ngx_sprintf(to, "\"policy\":\"%s\",", policy);
    }
    to = print_kind(to, zone);
    for (n = 0; n < METRICS; n++) {
        /* print_kind has printed the circuit as a word. */
        if ((metrics[n].of & zone->has) != 0 && metrics[n].offset != offsetof(seen_t, circuit)) {
            to = ngx_sprintf(to, ",\"%s\":%uL", metrics[n].name, value_of(zone, &metrics[n]));
        }
    }
    if (zone->has == TABLE) {
        to = print_decided(to, zone);
    }
    *to++ = '}';
    return to;
}

static u_char *print_decided(u_char *to, const seen_t *zone)
{
    const decided_t *decided = zone->decided;
    ngx_uint_t n;

    to = ngx_cpymem(to, ",\"decisions\":[", sizeof(",\"decisions\":[") - 1);
    for (n = 0; n < zone->decided_n; n++, decided++) {
        to = ngx_sprintf(to, "%s{\"policy\":\"%s\",\"allowed\":%uL,\"denied\":%uL,\"never\":%uL}", n != 0 ? "," : "",
                         decided->policy, decided->counts.allowed, decided->counts.denied, decided->counts.never);
    }
    *to++ = ']';
    return to;
}

static u_char *print_kind(u_char *to, const seen_t *zone)
{
    static const char *circuits[] = { "unknown", "closed", "open" };
    const ngx_http_tollbar_sync_t *sync = zone->zone->sync;

    if (sync != NULL) {
        return ngx_sprintf(to, "\"sync\":\"%V\",\"nodes\":%uD,\"fallback\":\"%s\",\"circuit\":\"%s\"", &zone->shared,
                           sync->options.nodes, ngx_http_tollbar_fallbacks[sync->options.fallback],
                           circuits[ngx_min(zone->circuit, 2)]);
    }
    /* If the rate has variables, no request uses the first policy. */
    return ngx_sprintf(to, "\"policies\":%uD", zone->stats.policies - (zone->zone->rate != NULL));
}

static u_char *print_metric(u_char *to, const metric_t *metric, const seen_t *zones, ngx_uint_t zones_n)
{
    const char *end = metric->kind[0] == 'c' ? "_total" : "";
    ngx_uint_t n, m, begun = 0;
    const decided_t *decided;

    for (n = 0; n <= zones_n; n++) {
        /* The head of a metric is printed before its first number. If there is no zone at all, the metrics of tables get a head without numbers,
         * because an empty page would be invalid. */
        if (!begun && (n < zones_n ? zones[n].has & metric->of : metric->of & TABLE)) {
            begun = 1;
            to = ngx_sprintf(to, "# HELP tollbar_zone_%s%s %s\n# TYPE tollbar_zone_%s%s %s\n", metric->name, end, metric->help,
                             metric->name, end, metric->kind);
        }
        if (n < zones_n && metric->counted != 0 && zones[n].has == TABLE) {
            for (m = 0; m < zones[n].decided_n; m++) {
                decided = &zones[n].decided[m];
                to = ngx_sprintf(to, "tollbar_zone_%s%s{zone=\"%V\",policy=\"%s\"} %uL\n", metric->name, end, &zones[n].name,
                                 decided->policy, *(const uint64_t *) ((const u_char *) &decided->counts + metric->counted));
            }
        } else if (n < zones_n && (zones[n].has & metric->of)) {
            to = ngx_sprintf(to, "tollbar_zone_%s%s{zone=\"%V\"} %uL\n", metric->name, end, &zones[n].name,
                             value_of(&zones[n], metric));
        }
    }
    return to;
}

static uint64_t value_of(const seen_t *zone, const metric_t *metric)
{
    return *(const uint64_t *) ((const u_char *) zone + metric->offset);
}

static ngx_int_t send_page(ngx_http_request_t *r, ngx_buf_t *buffer, const char *type)
{
    ngx_chain_t out = { buffer, NULL };
    ngx_int_t rc;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = buffer->last - buffer->pos;
    r->headers_out.content_type.data = (u_char *) type;
    r->headers_out.content_type.len = ngx_strlen(type);
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    buffer->last_buf = r == r->main;
    buffer->last_in_chain = 1;
    rc = ngx_http_send_header(r);
    return rc == NGX_ERROR || rc > NGX_OK || r->header_only ? rc : ngx_http_output_filter(r, &out);
}
