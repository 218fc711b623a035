/* The parameters of tollbar_zone that belong to `sync`. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_zone_t zone_t;
typedef ngx_http_tollbar_sync_t sync_t;

/* URLs with a host. */
static const char *schemes[] = { "redis://", "rediss://", "valkey://", "valkeys://" };

const char *ngx_http_tollbar_fallbacks[3] = { "share", "deny", "allow" };

static ngx_int_t read_number(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync);
static ngx_int_t read_fallback(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync);
static ngx_int_t read_life(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync);
static ngx_int_t read_wait(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync);
static char *check_words(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone);
static char *check_node(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone, tollbar_lease **trial);
static char *refuse_node(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone, int32_t error);
static char *check_url(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync, tollbar_lease *trial);
static const char *why_not(const ngx_str_t *url, size_t column);
static size_t scheme_of(const ngx_str_t *url);
static char *resolve(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync);
static int32_t make_trial(const zone_t *zone, tollbar_lease **trial);

static ngx_flag_t begins(const ngx_str_t *text, const char *word)
{
    return ngx_strncmp(text->data, word, ngx_strlen(word)) == 0;
}

ngx_int_t ngx_http_tollbar_sync_read(ngx_conf_t *cf, ngx_str_t *argument, sync_t **place)
{
    static const tollbar_lease_options usual = TOLLBAR_LEASE_OPTIONS_INIT(0);
    static const char *words[] = { "sync=", "name=", "nodes=", "overdraft=", "fallback=", "lease=", "sync_wait=", "ssl_" };
    sync_t *sync = *place;
    ngx_uint_t n = 0;
    ngx_str_t value;

    while (!begins(argument, words[n])) {
        if (++n == sizeof(words) / sizeof(words[0])) {
            return NGX_DECLINED;
        }
    }
    if (sync == NULL) {
        sync = *place = ngx_pcalloc(cf->pool, sizeof(sync_t));
        if (sync == NULL) {
            return NGX_ERROR;
        }
        sync->first = *argument;
        sync->options = usual;
    }
    value.data = argument->data + ngx_strlen(words[n]);
    value.len = argument->len - ngx_strlen(words[n]);
    switch (n) {
    case 0:
        sync->url = value;
        return NGX_OK;
    case 1:
        sync->name = value;
        return NGX_OK;
    case 4:
        return read_fallback(cf, argument, sync);
    case 5:
        return read_life(cf, argument, sync);
    case 6:
        return read_wait(cf, argument, sync);
    case 7:
        return ngx_http_tollbar_secure_read(cf, argument, sync);
    default:
        return read_number(cf, argument, sync);
    }
}

static ngx_int_t read_number(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync)
{
    ngx_flag_t nodes = begins(argument, "nodes=");
    size_t prefix = nodes ? 6 : 10;
    ngx_int_t number = ngx_atoi(argument->data + prefix, argument->len - prefix);

    if (number < nodes || (nodes && number > 65535)) {
        (void) ngx_tollbar_conf_refuse(cf, nodes ? "invalid value \"%V\", it must be a whole number from 1 to 65535"
                                                 : "invalid value \"%V\", it must be a whole number, 0 or more", argument);
        return NGX_ERROR;
    }
    if (nodes) {
        sync->options.nodes = (uint32_t) number;
    } else {
        sync->options.overdraft = (uint64_t) number;
        sync->options.flags |= TOLLBAR_LEASE_HAS_OVERDRAFT;
    }
    return NGX_OK;
}

static ngx_int_t read_fallback(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync)
{
    uint32_t n;

    for (n = 0; n < 3; n++) {
        if (ngx_strcmp(argument->data + 9, ngx_http_tollbar_fallbacks[n]) == 0) {
            sync->options.fallback = n;
            return NGX_OK;
        }
    }
    (void) ngx_tollbar_conf_refuse(cf, "invalid value \"%V\", it must be share, deny or allow", argument);
    return NGX_ERROR;
}

static ngx_int_t read_life(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync)
{
    ngx_str_t text = { argument->len - 6, argument->data + 6 };
    ngx_int_t life = ngx_parse_time(&text, 0);

    if (life < 1 || life > 600000) {
        (void) ngx_tollbar_conf_refuse(cf, "invalid value \"%V\", it must be a time from 1ms to 10m", argument);
        return NGX_ERROR;
    }
    sync->options.life_ns = (uint64_t) life * 1000000;
    return NGX_OK;
}

/* A node notices within 250 ms that the store does not answer, and `fallback` then decides. With a
 * shorter wait a request would be refused before that. */
static ngx_int_t read_wait(ngx_conf_t *cf, ngx_str_t *argument, sync_t *sync)
{
    ngx_str_t text = { argument->len - 10, argument->data + 10 };
    ngx_int_t wait = ngx_parse_time(&text, 0);

    if (wait < 250 || wait > 60000) {
        (void) ngx_tollbar_conf_refuse(cf, "invalid value \"%V\", it must be a time from 250ms to 1m", argument);
        return NGX_ERROR;
    }
    sync->wait_ns = (uint64_t) wait * 1000000;
    return NGX_OK;
}

char *ngx_http_tollbar_sync_check(ngx_conf_t *cf, ngx_str_t *name, size_t size, zone_t *zone)
{
    ngx_http_tollbar_main_conf_t *main = ngx_http_conf_get_module_main_conf(cf, ngx_http_tollbar_module);
    ngx_shm_zone_t **zones = main->zones.elts;
    tollbar_lease *trial = NULL;
    zone_t *other;
    ngx_uint_t n;
    size_t least;
    char *error = check_words(cf, name, zone);

    if (error == NGX_CONF_OK) {
        error = check_node(cf, name, zone, &trial);
    }
    if (error == NGX_CONF_OK) {
        error = ngx_http_tollbar_secure_check(cf, name, zone->sync);
    }
    if (error == NGX_CONF_OK) {
        error = check_url(cf, name, zone->sync, trial);
    }
    tollbar_lease_close(trial);
    if (error != NGX_CONF_OK || resolve(cf, name, zone->sync) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    least = ngx_http_tollbar_node_least(zone);
    if (size < least) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is too small, with \"sync\" it must have at least %uzk", name,
                           (least + 1023) / 1024);
        return NGX_CONF_ERROR;
    }
    /* Two zones with one limit of one store would give this machine two shares. A zone that is
     * declared twice gets another message later. */
    for (n = 0; n < main->zones.nelts; n++) {
        other = zones[n]->data;
        if (other->sync != NULL && ngx_http_tollbar_sync_same(other->sync, zone->sync)
            && (zones[n]->shm.name.len != name->len || ngx_memcmp(zones[n]->shm.name.data, name->data, name->len) != 0))
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" must have another \"name\" in the store than zone \"%V\", which has it in %V:%ui; declared",
                               name, &zones[n]->shm.name, &other->zone.where.file, other->zone.where.line);
            return NGX_CONF_ERROR;
        }
    }
    return NGX_CONF_OK;
}

/* Checks that need no call to the library. */
static char *check_words(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone)
{
    sync_t *sync = zone->sync;

    if (sync->url.data == NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"sync\" beside it, such as sync=redis://127.0.0.1:6379", &sync->first);
    }
    if (sync->options.nodes == 0) {
        return ngx_tollbar_conf_refuse(cf, "\"sync\" must have \"nodes\" parameter beside it, such as nodes=4, in zone \"%V\"", name);
    }
    if (zone->zone.on_full != NGX_CONF_UNSET_UINT) {
        return ngx_tollbar_conf_refuse(cf, "\"on_full\" must not be beside \"sync\" in zone \"%V\"", name);
    }
    if (zone->zone.room != 0) {
        return ngx_tollbar_conf_refuse(cf, "\"room\" must not be beside \"sync\" in zone \"%V\"", name);
    }
    if (zone->zone.hot_keys != 0) {
        return ngx_tollbar_conf_refuse(cf, "\"hot_keys\" must not be beside \"sync\" in zone \"%V\"", name);
    }
    if (zone->rate != NULL || zone->burst.text != NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"rate\" and \"burst\" must not hold variables beside \"sync\" in zone \"%V\"", name);
    }
    if (zone->paced) {
        zone->policy.burst = (uint64_t) zone->burst.number + 1;
        zone->never_delays = zone->burst.number != 0;
        zone->paced = 0;
    }
    if (sync->name.data == NULL) {
        sync->name = *name;
    }
    return NGX_CONF_OK;
}

static char *check_node(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone, tollbar_lease **trial)
{
    int32_t error = make_trial(zone, trial);

    return error == 0 ? NGX_CONF_OK : refuse_node(cf, name, zone, error);
}

/* Makes a node in this process's own memory, to see whether the library accepts the options and
 * which costs the node can admit. */
static int32_t make_trial(const zone_t *zone, tollbar_lease **trial)
{
    tollbar_lease_options options = zone->sync->options;

    options.capacity = 1;
    return tollbar_lease_new((const char *) zone->sync->name.data, zone->sync->name.len, &zone->policy, &options, trial);
}

static char *refuse_node(ngx_conf_t *cf, ngx_str_t *name, zone_t *zone, int32_t error)
{
    switch (error) {
    case TOLLBAR_E_LEASE_NAME:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid \"name\" \"%V\" of zone \"%V\", it must be 1 to 64 visible ASCII characters without braces",
                           &zone->sync->name, name);
        break;
    case TOLLBAR_E_LEASE_BURST:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "the burst of zone \"%V\" is too small for \"sync\": the \"overdraft\" of %uD \"nodes\" takes up all of it", name, zone->sync->options.nodes);
        break;
    default:
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" cannot have \"sync\": %s", name, tollbar_strerror(error));
    }
    return NGX_CONF_ERROR;
}

/* The message does not contain the URL, because a URL may have a password. */
static char *check_url(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync, tollbar_lease *trial)
{
    tollbar_lease_client *client = NULL;
    size_t column = 0;
    int32_t error = ngx_http_tollbar_secure_client(sync, trial, &column, &client);

    if (error == 0) {
        (void) tollbar_lease_client_close(client, 0);
        return NGX_CONF_OK;
    }
    if (error == TOLLBAR_E_URL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid \"sync\" of zone \"%V\", column %uz: %s", name, column,
                           why_not(&sync->url, column));
    } else {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"sync\" of zone \"%V\": %s", name, tollbar_strerror(error));
    }
    return NGX_CONF_ERROR;
}

static const char *why_not(const ngx_str_t *url, size_t column)
{
    if (begins(url, "redis-sentinel:") || begins(url, "valkey-sentinel:")) {
        return "Sentinel is not supported, give the address of the master";
    }
    if (begins(url, "redis-cluster:") || begins(url, "valkey-cluster:")) {
        return "Cluster is not supported, give the address of one server";
    }
    if (begins(url, "unix:")) {
        return "expected unix:/path[?db=N&user=NAME&password=SECRET]";
    }
    if (begins(url, "rediss:") || begins(url, "valkeys:")) {
        return "expected rediss://[user[:password]@]host[:port][/db]";
    }
    return scheme_of(url) != 0 ? "expected redis://[user[:password]@]host[:port][/db]" : "expected redis://, rediss:// or unix:";
}

/* The length of the scheme. 0: the URL has no host. */
static size_t scheme_of(const ngx_str_t *url)
{
    ngx_uint_t n;

    for (n = 0; n < sizeof(schemes) / sizeof(schemes[0]); n++) {
        if (begins(url, schemes[n])) {
            return ngx_strlen(schemes[n]);
        }
    }
    return 0;
}

/* Replaces the host's name by its address, as nginx resolves the names of upstreams when it reads
 * the configuration. */
static char *resolve(ngx_conf_t *cf, ngx_str_t *name, sync_t *sync)
{
    size_t scheme = scheme_of(&sync->url);
    u_char *end = sync->url.data + sync->url.len, *host = sync->url.data + scheme, *path, *at, *to;
    ngx_url_t url;
    ngx_addr_t address;
    u_char *named;

    if (scheme == 0) {
        return NGX_CONF_OK;
    }
    for (path = host; path < end && *path != '/' && *path != '?'; path++) {
        /* void */
    }
    at = ngx_strlchr(host, path, '@');
    host = at != NULL ? at + 1 : host;
    ngx_memzero(&url, sizeof(url));
    url.url.data = host;
    url.url.len = path - host;
    url.default_port = 6379;
    if (ngx_parse_url(cf->pool, &url) != NGX_OK || url.naddrs == 0 || url.family == AF_UNIX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in \"sync\" of zone \"%V\": \"%V\"",
                           url.err != NULL ? url.err : "no address", name, &url.url);
        return NGX_CONF_ERROR;
    }
    if (url.host.data[0] != '[' && ngx_parse_addr(cf->pool, &address, url.host.data, url.host.len) != NGX_OK) {
        named = ngx_pnalloc(cf->pool, url.host.len + 1);
        if (named == NULL) {
            return NGX_CONF_ERROR;
        }
        (void) ngx_cpystrn(named, url.host.data, url.host.len + 1);
        ngx_http_tollbar_secure_name(sync, (const char *) named);
    }
    to = ngx_pnalloc(cf->pool, sync->url.len + url.addrs[0].name.len);
    if (to == NULL) {
        return NGX_CONF_ERROR;
    }
    end = ngx_cpymem(ngx_cpymem(ngx_cpymem(to, sync->url.data, host - sync->url.data), url.addrs[0].name.data,
                                url.addrs[0].name.len), path, end - path);
    sync->url.data = to;
    sync->url.len = end - to;
    return NGX_CONF_OK;
}

uint64_t ngx_http_tollbar_sync_most(const zone_t *zone, uint64_t capacity)
{
    uint64_t fits = 0, too_many = capacity, tried;
    tollbar_lease *trial;

    if (zone->sync == NULL || make_trial(zone, &trial) != 0) {
        return capacity;
    }
    if (tollbar_lease_peek(trial, "*", 1, capacity, NULL) != TOLLBAR_NEVER) {
        fits = capacity;
    }
    while (fits < capacity && too_many - fits > 1) {
        tried = fits + (too_many - fits) / 2;
        if (tollbar_lease_peek(trial, "*", 1, tried, NULL) != TOLLBAR_NEVER) {
            fits = tried;
        } else {
            too_many = tried;
        }
    }
    tollbar_lease_close(trial);
    return fits;
}
