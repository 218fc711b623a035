/* tollbar_status_page: the statistics of the zones as JSON. */

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
    uint64_t waiting;
    uint64_t waited;
    uint64_t wait_full;
    /* The decisions of each policy. A node has none. */
    decided_t *decided;
    ngx_uint_t decided_n;
    /* The keys that the table has refused most, if the zone has `top_refused`. */
    tollbar_table_refused *refused;
    size_t refused_n;
    ngx_str_t name;
    ngx_str_t key;
    /* The name in the store. */
    ngx_str_t shared;
} seen_t;

#define TABLE 1
#define NODE 2

typedef struct {
    const char *name;
    size_t offset;
    ngx_uint_t of;
} metric_t;

static const metric_t metrics[] = {
    { "bytes", offsetof(seen_t, stats.bytes), TABLE|NODE },
    { "capacity", offsetof(seen_t, stats.capacity), TABLE|NODE },
    { "slots", offsetof(seen_t, stats.slots), TABLE },
    { "keys", offsetof(seen_t, stats.keys), TABLE },
    { "inserted", offsetof(seen_t, stats.inserted), TABLE },
    { "reclaimed", offsetof(seen_t, stats.reclaimed), TABLE },
    { "refused", offsetof(seen_t, stats.refused), TABLE },
    { "inherited", offsetof(seen_t, stats.inherited), TABLE },
    { "untracked", offsetof(seen_t, stats.untracked), TABLE },
    { "evicted", offsetof(seen_t, stats.evicted), TABLE },
    { "retries", offsetof(seen_t, stats.retries), TABLE },
    { "backward_steps", offsetof(seen_t, stats.backward_steps), TABLE },
    { "allowed", offsetof(seen_t, stats.allowed), TABLE },
    { "denied", offsetof(seen_t, stats.denied), TABLE|NODE },
    { "never", offsetof(seen_t, stats.never), TABLE },
    { "circuit", offsetof(seen_t, circuit), NODE },
    { "granted", offsetof(seen_t, leases.granted), NODE },
    { "asked", offsetof(seen_t, leases.asked), NODE },
    { "overdrawn", offsetof(seen_t, leases.overdrawn), NODE },
    { "fallback_permits", offsetof(seen_t, leases.fallback_permits), NODE },
    { "uncounted", offsetof(seen_t, leases.uncounted), NODE },
    { "queue_full", offsetof(seen_t, leases.queue_full), NODE },
    { "full", offsetof(seen_t, leases.full), NODE },
    { "denied_pending", offsetof(seen_t, leases.denied_pending), NODE },
    { "denied_by_store", offsetof(seen_t, leases.denied_by_store), NODE },
    { "denied_by_fallback", offsetof(seen_t, leases.denied_by_fallback), NODE },
    { "opened", offsetof(seen_t, leases.opened), NODE },
    { "owed", offsetof(seen_t, leases.owed), NODE },
    { "waiting", offsetof(seen_t, waiting), NODE },
    { "waited", offsetof(seen_t, waited), NODE },
    { "wait_full", offsetof(seen_t, wait_full), NODE },
};

#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

/* The most bytes of one number, and of a zone's words without its name. */
#define NUMBER_MOST (sizeof(",\"denied_by_fallback\":") + NGX_INT64_LEN)
#define HEAD_MOST 256
/* The most bytes of one policy's decisions. */
#define DECIDED_MOST (sizeof("{\"policy\":\"\",\"allowed\":,\"denied\":,\"never\":},") + TOLLBAR_POLICY_TEXT_MAX + 3 * NGX_INT64_LEN)

/* The most bytes of one refused key. */
#define REFUSED_MOST \
    (sizeof("{\"refused\":,\"policy\":\"\",\"key\":\"\",\"cut\":false},") + NGX_INT64_LEN + TOLLBAR_POLICY_TEXT_MAX + NGX_HTTP_TOLLBAR_KEY_MOST)

static ngx_int_t answer_json(ngx_http_request_t *r);
static seen_t *collect(ngx_http_request_t *r, ngx_uint_t *count, size_t *names, size_t *decided, size_t *refused);
static ngx_int_t collect_zone(ngx_http_request_t *r, ngx_shm_zone_t *shm_zone, seen_t *seen);
static int32_t read_stats(ngx_pool_t *pool, seen_t *seen);
static int32_t read_policies(ngx_pool_t *pool, seen_t *seen);
static ngx_int_t escape(ngx_pool_t *pool, const ngx_str_t *text, ngx_str_t *escaped);
static size_t sequence(const u_char *text, size_t length);
static u_char *print_json_zone(u_char *to, const seen_t *zone);
static u_char *print_kind(u_char *to, const seen_t *zone);
static u_char *print_decided(u_char *to, const seen_t *zone);
static u_char *print_refused(u_char *to, const seen_t *zone);
static uint64_t value_of(const seen_t *zone, const metric_t *metric);

/* tollbar_status_page json|prometheus */
char *ngx_http_tollbar_read_status_page(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    ngx_str_t *value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "json") == 0) {
        core->handler = answer_json;
    } else if (ngx_strcmp(value[1].data, "prometheus") == 0) {
        core->handler = ngx_http_tollbar_answer_prometheus;
        main->prometheus = ngx_tollbar_conf_here(cf);
    } else {
        return ngx_tollbar_conf_refuse(cf, "invalid value \"%V\" in \"tollbar_status_page\" directive, it must be json or prometheus",
                                       &value[1]);
    }
    return NGX_CONF_OK;
}

static ngx_int_t answer_json(ngx_http_request_t *r)
{
    ngx_int_t rc = ngx_http_tollbar_begin_page(r);
    ngx_uint_t n, zones_n;
    ngx_buf_t *buffer;
    ngx_chain_t page, rest;
    seen_t *zones;
    size_t names, decided, refused;

    if (rc != NGX_OK) {
        return rc;
    }
    zones = collect(r, &zones_n, &names, &decided, &refused);
    if (zones == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    buffer = ngx_create_temp_buf(
        r->pool, HEAD_MOST + names + decided * DECIDED_MOST + refused * REFUSED_MOST
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
    *buffer->last++ = ']';
    if (ngx_http_tollbar_learned_json(r, &rest.buf) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    page.buf = buffer;
    page.next = &rest;
    rest.next = NULL;
    return ngx_http_tollbar_send_page(r, &page, "application/json");
}

ngx_int_t ngx_http_tollbar_begin_page(ngx_http_request_t *r)
{
    return r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD) ? ngx_http_discard_request_body(r) : NGX_HTTP_NOT_ALLOWED;
}

/* Collects all zones. `*names` is the bytes of their printed names and keys, `*decided` the number
 * of their policies, `*refused` the number of their refused keys. */
static seen_t *collect(ngx_http_request_t *r, ngx_uint_t *count, size_t *names, size_t *decided, size_t *refused)
{
    main_conf_t *main = ngx_http_get_module_main_conf(r, ngx_http_tollbar_module);
    ngx_shm_zone_t **all = main->zones.elts;
    seen_t *zones = ngx_pcalloc(r->pool, main->zones.nelts * sizeof(seen_t) + 1);
    ngx_uint_t n;

    *names = *decided = *refused = 0;
    *count = main->zones.nelts;
    for (n = 0; zones != NULL && n < main->zones.nelts; n++) {
        if (collect_zone(r, all[n], &zones[n]) != NGX_OK) {
            return NULL;
        }
        *names += zones[n].name.len + zones[n].key.len + zones[n].shared.len;
        *decided += zones[n].decided_n;
        *refused += zones[n].refused_n;
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
        error = error == 0 ? read_policies(pool, seen) : error;
        return error == 0 ? ngx_http_tollbar_read_refused(pool, seen->zone, &seen->refused, &seen->refused_n) : error;
    }
    seen->stats.bytes = sync->node->bytes;
    seen->stats.capacity = sync->node->capacity;
    error = tollbar_lease_get_stats(sync->lease, &seen->leases);
    seen->circuit = seen->leases.circuit;
    seen->waiting = ngx_http_tollbar_wait_count(sync);
    seen->waited = sync->node->waited;
    seen->wait_full = sync->node->wait_full;
    seen->stats.denied = seen->leases.denied + seen->wait_full;
    return error;
}

/* Reads the policies and their decisions. If the rate has variables, no request uses the table's
 * first policy, so the page leaves it out. The other policies then have a burst above that of any
 * limit, so the page shows only their rates. */
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

static ngx_int_t escape(ngx_pool_t *pool, const ngx_str_t *text, ngx_str_t *escaped)
{
    return ngx_http_tollbar_page_text(pool, text, escaped, 1);
}

/* JSON and Prometheus escape quotes, backslashes and newlines, and both need UTF-8. Only JSON has
 * escapes for other control characters, so these become question marks, and so do bytes that are
 * not UTF-8. */
ngx_int_t ngx_http_tollbar_page_text(ngx_pool_t *pool, const ngx_str_t *text, ngx_str_t *escaped, ngx_flag_t escapes)
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
        if (escapes && (c == '"' || c == '\\')) {
            *to++ = '\\';
            *to++ = c;
        } else if (escapes && c == '\n') {
            *to++ = '\\';
            *to++ = 'n';
        } else if ((c < 0x20 && (escapes || c != '\n')) || c == 0x7f || length == 0) {
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
    if (zone->zone->tree != NULL) {
        to = ngx_sprintf(to, "\"tree\":\"%V\",", &zone->zone->tree->rate);
    } else if (zone->zone->rate == NULL && tollbar_policy_spec_print(&zone->zone->policy, policy, sizeof(policy), NULL) == 0) {
        to = ngx_sprintf(to, "\"policy\":\"%s\",", policy);
    }
    if (zone->zone->worst_case != 0) {
        to = ngx_sprintf(to, "\"worst_case\":%uL,", zone->zone->worst_case);
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
        to = print_refused(to, zone);
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

/* Prints `top_refused` of a zone that has it. */
static u_char *print_refused(u_char *to, const seen_t *zone)
{
    const tollbar_table_refused *refused = zone->refused;
    ngx_uint_t n, first = zone->zone->rate != NULL;

    if (zone->zone->zone.top_refused == 0) {
        return to;
    }
    to = ngx_cpymem(to, ",\"top_refused\":[", sizeof(",\"top_refused\":[") - 1);
    for (n = 0; n < zone->refused_n; n++, refused++) {
        /* A policy that another worker has added since has no text here. */
        const char *policy = refused->policy - first < zone->decided_n ? zone->decided[refused->policy - first].policy : "";

        to = ngx_sprintf(to, "%s{\"refused\":%uL,\"policy\":\"%s\",\"key\":\"", n != 0 ? "," : "", refused->count, policy);
        to = ngx_http_tollbar_print_key(to, zone->zone, refused);
        to = ngx_sprintf(to, "\",\"cut\":%s}", refused->is_cut == TOLLBAR_YES ? "true" : "false");
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

static uint64_t value_of(const seen_t *zone, const metric_t *metric)
{
    return *(const uint64_t *) ((const u_char *) zone + metric->offset);
}

ngx_int_t ngx_http_tollbar_send_page(ngx_http_request_t *r, ngx_chain_t *page, const char *type)
{
    ngx_chain_t *link;
    ngx_int_t rc;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = 0;
    for (link = page; link != NULL; link = link->next) {
        r->headers_out.content_length_n += link->buf->last - link->buf->pos;
        if (link->next == NULL) {
            link->buf->last_buf = r == r->main;
            link->buf->last_in_chain = 1;
        }
    }
    r->headers_out.content_type.data = (u_char *) type;
    r->headers_out.content_type.len = ngx_strlen(type);
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    rc = ngx_http_send_header(r);
    return rc == NGX_ERROR || rc > NGX_OK || r->header_only ? rc : ngx_http_output_filter(r, page);
}
