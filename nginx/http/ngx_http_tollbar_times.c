/* How long decisions take: a histogram of all workers, of one request in 1,024. It has the name and
 * the bounds of every other face of tollbar. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_main_conf_t main_conf_t;

/* The bounds of the buckets are 2^8 ns, 2^9 ns and so on, up to 17 ms. The last bucket has no
 * bound. */
#define FIRST 8
#define BOUNDS 17

struct ngx_http_tollbar_times_s {
    ngx_atomic_t sum_ns;
    ngx_atomic_t counts[BOUNDS + 1];
};

static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data);

/* No zone of a configuration has a name with blanks. */
ngx_int_t ngx_http_tollbar_times_add(ngx_conf_t *cf, main_conf_t *main)
{
    ngx_str_t name = ngx_string("tollbar decision times");
    ngx_shm_zone_t *shm_zone;

    /* Nobody would see the times. */
    if (main->prometheus.line == 0 || main->limits.nelts == 0) {
        return NGX_OK;
    }
    /* The smallest zone for which nginx's slab allocator has room. */
    shm_zone = ngx_shared_memory_add(cf, &name, 8 * ngx_pagesize, &ngx_http_tollbar_module);
    if (shm_zone == NULL) {
        return NGX_ERROR;
    }
    shm_zone->data = main;
    shm_zone->init = init;
    return NGX_OK;
}

/* nginx calls this after it has mapped the zone. After a reload the memory is that of the old
 * workers, which still count in it. */
static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data)
{
    main_conf_t *main = shm_zone->data;
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (pool->data == NULL) {
        pool->data = ngx_slab_calloc_locked(pool, sizeof(ngx_http_tollbar_times_t));
    }
    main->times = pool->data;
    return main->times != NULL ? NGX_OK : NGX_ERROR;
}

uint64_t ngx_http_tollbar_times_begin(void)
{
    struct timespec now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

void ngx_http_tollbar_times_end(ngx_http_tollbar_times_t *times, uint64_t begin_ns)
{
    uint64_t took = ngx_http_tollbar_times_begin() - begin_ns;
    ngx_uint_t n = 0;

    while (n < BOUNDS && took > (uint64_t) 1 << (n + FIRST)) {
        n++;
    }
    (void) ngx_atomic_fetch_add(&times->sum_ns, took);
    (void) ngx_atomic_fetch_add(&times->counts[n], 1);
}

ngx_buf_t *ngx_http_tollbar_times_metrics(ngx_http_request_t *r, const ngx_http_tollbar_times_t *times)
{
    ngx_buf_t *buffer = ngx_create_temp_buf(r->pool, 256 + (BOUNDS + 3) * (64 + NGX_INT64_LEN));
    uint64_t count = 0;
    ngx_uint_t n;
    u_char *to;

    if (buffer == NULL) {
        return NULL;
    }
    to = ngx_sprintf(buffer->last, "# HELP tollbar_decision_nanoseconds "
                     "Time of a decision, of a sample of all requests.\n"
                     "# TYPE tollbar_decision_nanoseconds histogram\n");
    for (n = 0; n <= BOUNDS; n++) {
        count += times->counts[n];
        to = ngx_sprintf(to, "tollbar_decision_nanoseconds_bucket{le=\"");
        to = n < BOUNDS ? ngx_sprintf(to, "%uL", (uint64_t) 1 << (n + FIRST)) : ngx_sprintf(to, "+Inf");
        to = ngx_sprintf(to, "\"} %uL\n", count);
    }
    to = ngx_sprintf(to, "tollbar_decision_nanoseconds_sum %uL\n", (uint64_t) times->sum_ns);
    buffer->last = ngx_sprintf(to, "tollbar_decision_nanoseconds_count %uL\n", count);
    return buffer;
}
