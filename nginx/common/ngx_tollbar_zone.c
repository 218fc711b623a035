#include "ngx_tollbar_zone.h"

#include "ngx_tollbar_file.h"

static void *module_of(const ngx_shm_zone_t *shm_zone);
static ngx_flag_t keeps_memory(const ngx_tollbar_zone_t *old, const ngx_tollbar_zone_t *zone);
static ngx_flag_t same_clock(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b);
static void start(ngx_shm_zone_t *shm_zone, ngx_log_t *log);
static uint32_t keep_of(const ngx_tollbar_zone_t *zone, uint32_t number);
static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data);
static ngx_int_t make(ngx_shm_zone_t *shm_zone, ngx_tollbar_zone_t *old);
static void copy(ngx_shm_zone_t *shm_zone, ngx_tollbar_zone_t *old);
static ngx_int_t choose_seed(ngx_shm_zone_t *shm_zone);
static uint64_t largest_capacity(tollbar_table_options *options, const tollbar_policy_spec *const *policies, size_t count,
                                 uint64_t memory);
static ngx_uint_t all_policies(ngx_tollbar_zone_t *zone, ngx_tollbar_zone_t *old, const tollbar_policy_spec **policies,
                               tollbar_policy_spec *added);
static ngx_flag_t may_have_file(ngx_cycle_t *cycle, const ngx_shm_zone_t *shm_zone);
static ngx_flag_t same_keys(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b);
static void end_view(void *data);

ngx_shm_zone_t *ngx_tollbar_zone_add(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag,
                                     ngx_tollbar_zone_t *zone, ngx_array_t *zones)
{
    ngx_shm_zone_t *shm_zone = ngx_shared_memory_add(cf, name, size, tag);
    ngx_tollbar_zone_t *other;

    if (shm_zone == NULL) {
        return NULL;
    }
    if (shm_zone->data != NULL) {
        other = shm_zone->data;
        (void) ngx_tollbar_conf_bound(cf, name, &other->keys, &other->where);
        return NULL;
    }
    zone->layout = sizeof(*zone);
    zone->cycle = cf->cycle;
    zone->where = ngx_tollbar_conf_here(cf);
    zone->keys = ((ngx_str_t *) cf->args->elts)[1];
    return ngx_tollbar_conf_push(cf, zones, shm_zone) == NGX_CONF_OK ? shm_zone : NULL;
}

size_t ngx_tollbar_zone_least(ngx_tollbar_zone_t *zone)
{
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1);
    const tollbar_policy_spec *policies[NGX_TOLLBAR_POLICIES_MOST];
    uint64_t bytes = 0;
    ngx_uint_t n;

    for (n = 0; n < zone->policies_n; n++) {
        policies[n] = &zone->policies[n];
    }
    options.clock = ngx_tollbar_zone_clock(policies, zone->policies_n);
    options.room = zone->room;
    if (tollbar_table_bytes(policies, zone->policies_n, &options, &bytes) != 0) {
        return 0;
    }
    return ngx_tollbar_zone_size_for(bytes);
}

size_t ngx_tollbar_zone_size_for(uint64_t bytes)
{
    /* The slab allocator has a descriptor for each page, and takes some pages for itself. */
    size_t pages = bytes / ngx_pagesize + 3;

    return ngx_align(pages * (ngx_pagesize + sizeof(ngx_slab_page_t)), ngx_pagesize);
}

ngx_int_t ngx_tollbar_zone_bind(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, ngx_tollbar_zone_t *zone)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);

    if (cleanup == NULL) {
        return NGX_ERROR;
    }
    cleanup->handler = end_view;
    cleanup->data = zone;
    shm_zone->data = zone;
    shm_zone->init = zone->file.path.len != 0 ? ngx_tollbar_file_init : init;
    return NGX_OK;
}

void ngx_tollbar_zone_settle(ngx_shm_zone_t *shm_zone)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    ngx_tollbar_zone_t *old = ngx_tollbar_zone_former_table(shm_zone);

    /* A file's placeholder holds nothing, so it stays. */
    if (zone->file.path.len != 0) {
        ngx_tollbar_zone_keep(shm_zone);
        return;
    }
    if (old != NULL && keeps_memory(old, zone)) {
        ngx_tollbar_zone_keep(shm_zone);
    } else {
        ngx_tollbar_zone_renew(shm_zone);
    }
}

/* Old workers still use the old memory, so another table needs new memory. Without room a new rate
 * does, too: the old table could take it, but a key without another slot would keep the time until
 * its debt ends. A copy keeps the number of requests of the debt. */
static ngx_flag_t keeps_memory(const ngx_tollbar_zone_t *old, const ngx_tollbar_zone_t *zone)
{
    return old->on_full == zone->on_full && old->room == zone->room && same_keys(old, zone)
           && (zone->room != 0 ? same_clock(old, zone) : ngx_tollbar_zone_same_rates(old, zone));
}

static ngx_flag_t same_clock(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b)
{
    const tollbar_policy_spec *one[] = { a->policies }, *other[] = { b->policies };

    return ngx_tollbar_zone_clock(one, 1) == ngx_tollbar_zone_clock(other, 1);
}

void ngx_tollbar_zone_keep(ngx_shm_zone_t *shm_zone)
{
    ngx_shm_zone_t *old = ngx_tollbar_zone_former(shm_zone);

    if (old != NULL) {
        shm_zone->tag = old->tag;
    }
}

void ngx_tollbar_zone_renew(ngx_shm_zone_t *shm_zone)
{
    ngx_shm_zone_t *old = ngx_tollbar_zone_former(shm_zone);

    if (old != NULL) {
        shm_zone->tag = old->tag == module_of(old) ? (u_char *) old->tag + 1 : module_of(old);
    }
}

void ngx_tollbar_zone_failed(ngx_shm_zone_t *shm_zone, ngx_log_t *log, int32_t error)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    ngx_tollbar_seldom_t *message;
    ngx_uint_t n = 0;

    while (n < NGX_TOLLBAR_ZONE_ERRORS - 1 && zone->failed[n].error != error && zone->failed[n].error != 0) {
        n++;
    }
    zone->failed[n].error = error;
    message = &zone->failed[n].message;
    if (ngx_tollbar_seldom(message)) {
        ngx_log_error(NGX_LOG_ALERT, log, 0, "zone \"%V\" gives no answer: %s%s", &shm_zone->shm.name, tollbar_strerror(error),
                      message->text);
    }
}

void ngx_tollbar_zones_start(ngx_array_t *zones, ngx_log_t *log)
{
    ngx_shm_zone_t **zone = zones->elts;
    ngx_uint_t n;

    for (n = 0; n < zones->nelts; n++) {
        start(zone[n], log);
    }
}

static void start(ngx_shm_zone_t *shm_zone, ngx_log_t *log)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    int32_t error;
    uint32_t n, number;

    if (zone->table == NULL) {
        return;
    }
    if (zone->file.path.len != 0) {
        ngx_tollbar_file_start(shm_zone, log);
        return;
    }
    error = tollbar_table_get_stats(zone->table, &stats);
    for (n = 0; error == 0 && n < zone->policies_n; n++) {
        if (n < stats.policies) {
            error = tollbar_table_set_policy(zone->table, n, &zone->policies[n], keep_of(zone, n));
        } else {
            error = tollbar_table_add_policy(zone->table, &zone->policies[n], &number);
        }
    }
    if (error == 0) {
        error = tollbar_table_record_refusals(zone->table, zone->top_refused);
    }
    if (error != 0) {
        /* It is too late to refuse the configuration, so the former policies stay in force. */
        ngx_log_error(NGX_LOG_ALERT, log, 0, "zone \"%V\" keeps its former limits: %s", &shm_zone->shm.name,
                      tollbar_strerror(error));
    }
}

/* TOLLBAR_KEEP_TIME for another burst, because a key of nginx's own module keeps its excess over a
 * reload: a larger burst then admits more at once. Under another rate or algorithm, which only a
 * table with room takes, a key keeps the permits that it has left. */
static uint32_t keep_of(const ngx_tollbar_zone_t *zone, uint32_t number)
{
    tollbar_policy_spec former = TOLLBAR_POLICY_SPEC_INIT;

    if (zone->room == 0 || tollbar_table_get_policy(zone->table, number, &former) != 0) {
        return TOLLBAR_KEEP_TIME;
    }
    former.burst = zone->policies[number].burst;
    return ngx_tollbar_zone_same_policy(&former, &zone->policies[number]) ? TOLLBAR_KEEP_TIME : TOLLBAR_KEEP_COUNT;
}

/* nginx calls this after it has mapped the zone. The zone's memory is new, or, in a reload that
 * keeps the zone, still in use by the old workers. */
static ngx_int_t init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    ngx_tollbar_zone_t *old = ngx_tollbar_zone_former_table(shm_zone);
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    int32_t error;

    if (pool->data == NULL) {
        return make(shm_zone, old != NULL && old->table != NULL && same_keys(old, zone) ? old : NULL);
    }
    /* The call reads the table's size from its header. It only needs to know that the memory ends
     * at the end of the zone. */
    error = tollbar_table_attach(pool->data, (size_t) (pool->end - (u_char *) pool->data), &zone->table);
    if (error == 0) {
        error = tollbar_table_set_hot_keys(zone->table, zone->hot_keys);
    }
    if (error != 0) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" cannot be used again: %s, in %V:%ui", &shm_zone->shm.name,
                      tollbar_strerror(error), &zone->where.file, zone->where.line);
        return NGX_ERROR;
    }
    if (old != NULL) {
        zone->seed = old->seed;
    }
    return NGX_OK;
}

/* Makes the table of a new zone. The table takes all free pages of nginx's slab allocator. The
 * allocator's header stays at the start of the zone, because nginx unlocks the mutex in it whenever
 * a worker dies. */
static ngx_int_t make(ngx_shm_zone_t *shm_zone, ngx_tollbar_zone_t *old)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    ngx_slab_pool_t *pool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(0);
    const tollbar_policy_spec *policies[NGX_TOLLBAR_POLICIES_MOST];
    tollbar_policy_spec added[NGX_TOLLBAR_POLICIES_MOST];
    size_t memory = pool->pfree * ngx_pagesize;
    ngx_uint_t policies_n = all_policies(zone, old, policies, added);
    int32_t error = TOLLBAR_E_NO_MEMORY;

    /* Slots store hashes, which depend on the seed. A copy therefore needs the old table's seed. */
    if (old != NULL) {
        zone->seed = old->seed;
    } else if (choose_seed(shm_zone) != NGX_OK) {
        return NGX_ERROR;
    }
    options.on_full = (uint32_t) zone->on_full;
    options.clock = ngx_tollbar_zone_clock(policies, zone->policies_n);
    options.hot_keys = zone->hot_keys;
    options.room = zone->room;
    options.seed = zone->seed;
    options.flags = TOLLBAR_TABLE_HAS_SEED;
    options.capacity = largest_capacity(&options, policies, policies_n, memory);
    if (options.capacity == 0) {
        /* No table can hold the new policies and the old table's policies. Then the new table has
         * the new ones only. */
        policies_n = zone->policies_n;
        options.capacity = largest_capacity(&options, policies, policies_n, memory);
    }

    /* The allocator gives more than a page as whole pages, which are aligned enough for a table. */
    pool->data = ngx_slab_alloc_locked(pool, memory);
    if (pool->data != NULL) {
        error = tollbar_table_init_in(pool->data, memory, policies, policies_n, &options, &zone->table);
    }
    if (error != 0) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0, "zone \"%V\" of %uz bytes cannot hold a table: %s, in %V:%ui",
                      &shm_zone->shm.name, shm_zone->shm.size, tollbar_strerror(error), &zone->where.file, zone->where.line);
        return NGX_ERROR;
    }
    if (old != NULL) {
        copy(shm_zone, old);
    }
    return NGX_OK;
}

/* Lists the policies of a new table: those of the configuration, and after them those that requests
 * added to the old table. The copy of the old table needs the policies of all its keys. */
static ngx_uint_t all_policies(ngx_tollbar_zone_t *zone, ngx_tollbar_zone_t *old, const tollbar_policy_spec **policies,
                               tollbar_policy_spec *added)
{
    ngx_uint_t n;

    for (n = 0; n < zone->policies_n; n++) {
        policies[n] = &zone->policies[n];
    }
    for (; old != NULL && n < NGX_TOLLBAR_POLICIES_MOST; n++) {
        added[n] = (tollbar_policy_spec) TOLLBAR_POLICY_SPEC_INIT;
        if (tollbar_table_get_policy(old->table, (uint32_t) n, &added[n]) != 0) {
            break;
        }
        policies[n] = &added[n];
    }
    return n;
}

/* Copies the old table's keys. Charges that old workers make after the copy are lost. */
static void copy(ngx_shm_zone_t *shm_zone, ngx_tollbar_zone_t *old)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    tollbar_table_copy_result copied = TOLLBAR_TABLE_COPY_RESULT_INIT;
    uint64_t now = 0;
    int32_t error = tollbar_table_now(zone->table, &now);

    if (error == 0) {
        error = tollbar_table_copy(zone->table, old->table, now, &copied);
    }
    if (error != 0) {
        ngx_log_error(NGX_LOG_WARN, shm_zone->shm.log, 0, "zone \"%V\" starts empty: %s", &shm_zone->shm.name,
                      tollbar_strerror(error));
    } else if (copied.lost != 0) {
        ngx_log_error(NGX_LOG_WARN, shm_zone->shm.log, 0, "zone \"%V\" has no room for %uL of %uL keys", &shm_zone->shm.name,
                      copied.lost, copied.lost + copied.copied);
    }
}

static ngx_int_t choose_seed(ngx_shm_zone_t *shm_zone)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    ngx_fd_t fd = ngx_open_file("/dev/urandom", NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);
    ssize_t n = -1;

    /* Not ngx_random: a client that guesses the seed can choose keys that collide. */
    if (fd != NGX_INVALID_FILE) {
        n = ngx_read_fd(fd, &zone->seed, sizeof(zone->seed));
        ngx_close_file(fd);
    }
    if (n != sizeof(zone->seed)) {
        ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, ngx_errno, "/dev/urandom cannot be read");
        return NGX_ERROR;
    }
    return NGX_OK;
}

uint32_t ngx_tollbar_zone_clock(const tollbar_policy_spec *const *policies, ngx_uint_t count)
{
    ngx_uint_t n;

    for (n = 0; n < count; n++) {
        if (policies[n]->algorithm == TOLLBAR_ALGORITHM_CALENDAR) {
            return TOLLBAR_CLOCK_WALL;
        }
    }
    return TOLLBAR_CLOCK_TSC;
}

/* The largest capacity of a table that fits into `memory` bytes. 0 if no table fits. */
static uint64_t largest_capacity(tollbar_table_options *options, const tollbar_policy_spec *const *policies, size_t count,
                                 uint64_t memory)
{
    uint64_t fits = 0, too_many = memory, bytes;
    tollbar_table_options tried = *options;

    while (too_many - fits > 1) {
        tried.capacity = fits + (too_many - fits) / 2;
        if (tollbar_table_bytes(policies, count, &tried, &bytes) == 0 && bytes <= memory) {
            fits = tried.capacity;
        } else {
            too_many = tried.capacity;
        }
    }
    return fits;
}

ngx_tollbar_zone_t *ngx_tollbar_zone_former_table(ngx_shm_zone_t *shm_zone)
{
    ngx_shm_zone_t *old = ngx_tollbar_zone_former(shm_zone);

    return old != NULL && old->init == shm_zone->init ? old->data : NULL;
}

/* While nginx reads a new configuration, ngx_cycle is the running one. At the start of nginx it has
 * no zones. */
ngx_shm_zone_t *ngx_tollbar_zone_former(ngx_shm_zone_t *shm_zone)
{
    volatile ngx_list_part_t *part = &ngx_cycle->shared_memory.part;
    ngx_shm_zone_t *zones;
    ngx_uint_t n;

    for (; part != NULL; part = part->next) {
        zones = part->elts;
        for (n = 0; n < part->nelts; n++) {
            if (&zones[n] != shm_zone && module_of(&zones[n]) == module_of(shm_zone) && zones[n].shm.name.len == shm_zone->shm.name.len
                && ngx_strncmp(zones[n].shm.name.data, shm_zone->shm.name.data, shm_zone->shm.name.len) == 0)
            {
                return &zones[n];
            }
        }
    }
    return NULL;
}

ngx_tollbar_zone_t *ngx_tollbar_zone_next_file(ngx_cycle_t *cycle, ngx_list_part_t **part, ngx_uint_t *n)
{
    ngx_tollbar_zone_t *zone;
    ngx_shm_zone_t *zones;

    for (; *part != NULL; *part = (*part)->next, *n = 0) {
        zones = (*part)->elts;
        while (*n < (*part)->nelts) {
            zone = zones[*n].data;
            if (may_have_file(cycle, &zones[(*n)++]) && zone != NULL && zone->layout == sizeof(*zone)
                && zone->file.path.len != 0)
            {
                return zone;
            }
        }
    }
    return NULL;
}

/* Whether the zone is of a module whose zones may have a file. http and stream are modules of two
 * .so files, each with a copy of this code. */
static ngx_flag_t may_have_file(ngx_cycle_t *cycle, const ngx_shm_zone_t *shm_zone)
{
    ngx_uint_t n;

    for (n = 0; cycle->modules[n] != NULL; n++) {
        if (cycle->modules[n] == module_of(shm_zone)) {
            return ngx_strcmp(cycle->modules[n]->name, "ngx_http_tollbar_module") == 0
                   || ngx_strcmp(cycle->modules[n]->name, "ngx_stream_tollbar_module") == 0;
        }
    }
    return 0;
}

/* The module of a zone. A zone's tag is the address of the module's ngx_module_t, which is even, or
 * that address plus 1. */
static void *module_of(const ngx_shm_zone_t *shm_zone)
{
    return (void *) ((uintptr_t) shm_zone->tag & ~(uintptr_t) 1);
}

ngx_flag_t ngx_tollbar_zone_has_changed(const ngx_tollbar_zone_t *zone, uint32_t number,
                                        const tollbar_policy_spec *policy)
{
    tollbar_policy_spec now = TOLLBAR_POLICY_SPEC_INIT;

    return zone->room != 0 && tollbar_table_get_policy(zone->table, number, &now) == 0
           && !ngx_tollbar_zone_same_policy(&now, policy);
}

/* Equal policies have equal texts. */
ngx_flag_t ngx_tollbar_zone_same_policy(const tollbar_policy_spec *a, const tollbar_policy_spec *b)
{
    char one[TOLLBAR_POLICY_TEXT_MAX] = "", other[TOLLBAR_POLICY_TEXT_MAX] = "";

    return tollbar_policy_spec_print(a, one, sizeof(one), NULL) == 0
           && tollbar_policy_spec_print(b, other, sizeof(other), NULL) == 0
           && ngx_strcmp(one, other) == 0;
}

ngx_flag_t ngx_tollbar_zone_same_rates(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b)
{
    tollbar_policy_spec spec;
    ngx_uint_t n;

    for (n = 0; n < ngx_min(a->policies_n, b->policies_n); n++) {
        spec = a->policies[n];
        spec.burst = b->policies[n].burst;
        if (ngx_memcmp(&spec, &b->policies[n], sizeof(spec)) != 0) {
            return 0;
        }
    }
    return 1;
}

static ngx_flag_t same_keys(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b)
{
    return a->keys.len == b->keys.len && ngx_memcmp(a->keys.data, b->keys.data, a->keys.len) == 0;
}

/* Closes this process's view. nginx calls this when it frees the configuration, and may have
 * unmapped the zone's memory before. Closing a table's view touches only the process's own
 * memory. */
static void end_view(void *data)
{
    ngx_tollbar_zone_t *zone = data;

    tollbar_table_close(zone->table);
    zone->table = NULL;
}
