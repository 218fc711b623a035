#include "ngx_tollbar_file.h"

/* The bytes of a text that lists a table's policies. */
#define LIST_SIZE 512

static ngx_int_t read_file(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_zone_t *zone);
static ngx_int_t read_mode(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_zone_t *zone);
static tollbar_table_options options_of(const ngx_tollbar_zone_t *zone, const ngx_tollbar_zone_t *maker);
static const ngx_tollbar_zone_t *maker_of(const ngx_tollbar_zone_t *zone);
static ngx_uint_t policies_of(const ngx_tollbar_zone_t *zone, const tollbar_policy_spec **policies);
static ngx_flag_t same_file(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b);
static ngx_int_t missing(ngx_shm_zone_t *shm_zone, ngx_flag_t is_made);
static ngx_int_t refused(ngx_shm_zone_t *shm_zone, int32_t error, ngx_err_t system);
static ngx_int_t untrusted(ngx_shm_zone_t *shm_zone);
static ngx_int_t other_capacity(ngx_shm_zone_t *shm_zone);
static ngx_int_t other_options(ngx_shm_zone_t *shm_zone);
static ngx_int_t find_policy(ngx_shm_zone_t *shm_zone);
static ngx_int_t change_policy(ngx_shm_zone_t *shm_zone, const ngx_tollbar_zone_t *old);
static ngx_int_t wrong(ngx_shm_zone_t *shm_zone, ngx_err_t system, const char *format, ...);
static ngx_str_t directory_of(const ngx_str_t *path, u_char *to);
static ngx_uint_t octal(mode_t mode);

ngx_flag_t ngx_tollbar_file_given(ngx_conf_t *cf)
{
    ngx_str_t *value = cf->args->elts;
    ngx_uint_t n;

    for (n = 2; n < cf->args->nelts; n++) {
        if (ngx_strncmp(value[n].data, "file=", 5) == 0) {
            return 1;
        }
    }
    return 0;
}

char *ngx_tollbar_file_name(ngx_conf_t *cf, ngx_str_t *argument, ngx_str_t *name, size_t *size)
{
    u_char *end = argument->data + argument->len;

    if (argument->len == 5 || ngx_strlchr(argument->data, end, ':') != NULL) {
        return ngx_tollbar_conf_refuse(cf, "invalid zone \"%V\", beside \"file\" it must be "
                                       "zone=NAME, without a size", argument);
    }
    name->data = argument->data + 5;
    name->len = argument->len - 5;
    /* The smallest zone for which nginx's slab allocator has room. */
    *size = 8 * ngx_pagesize;
    return NGX_CONF_OK;
}

ngx_int_t ngx_tollbar_file_read(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_zone_t *zone)
{
    ngx_int_t capacity;

    if (ngx_strncmp(argument->data, "file=", 5) == 0) {
        return read_file(cf, argument, zone);
    }
    if (ngx_strncmp(argument->data, "capacity=", 9) == 0) {
        if (ngx_tollbar_conf_count(cf, argument, "capacity", &capacity) != NGX_CONF_OK) {
            return NGX_ERROR;
        }
        zone->file.capacity = (uint64_t) capacity;
        return NGX_OK;
    }
    if (ngx_strncmp(argument->data, "mode=", 5) == 0) {
        return read_mode(cf, argument, zone);
    }
    if (ngx_strcmp(argument->data, "trust_anyone") == 0) {
        zone->file.trust_anyone = 1;
        return NGX_OK;
    }
    return NGX_DECLINED;
}

static ngx_int_t read_file(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_zone_t *zone)
{
    zone->file.path.data = argument->data + 5;
    zone->file.path.len = argument->len - 5;
    if (zone->file.path.len == 0) {
        (void) ngx_tollbar_conf_refuse(cf, "invalid file value \"%V\", it must be the path of a "
                                       "table, such as file=/run/app/table", argument);
        return NGX_ERROR;
    }
    return ngx_conf_full_name(cf->cycle, &zone->file.path, 1);
}

static ngx_int_t read_mode(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_zone_t *zone)
{
    const u_char *digit = argument->data + 5;
    uint32_t mode = 0;

    for ( /* void */ ; *digit >= '0' && *digit <= '7' && mode <= 0777; digit++) {
        mode = mode * 8 + (uint32_t) (*digit - '0');
    }
    if (*digit != '\0' || mode > 0777 || (mode & 0600) != 0600) {
        (void) ngx_tollbar_conf_refuse(cf, "invalid mode value \"%V\", it must be permissions that "
                                       "let the owner read and write, such as 0600 or 0660",
                                       argument);
        return NGX_ERROR;
    }
    zone->file.mode = mode;
    return NGX_OK;
}

char *ngx_tollbar_file_check(ngx_conf_t *cf, ngx_str_t *name, ngx_tollbar_zone_t *zone)
{
    const ngx_tollbar_file_t *file = &zone->file;
    const tollbar_policy_spec *policies[] = { zone->policies };
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(0);
    uint64_t bytes;
    int32_t error;

    if (file->path.len == 0 && (file->capacity != 0 || file->mode != 0 || file->trust_anyone)) {
        return ngx_tollbar_conf_refuse(cf, "\"capacity\", \"mode\" and \"trust_anyone\" must have "
                                       "\"file\" beside them, such as file=/run/app/table, in zone "
                                       "\"%V\"", name);
    }
    if (file->path.len != 0 && file->capacity == 0 && (zone->on_full != NGX_CONF_UNSET_UINT || zone->room != 0)) {
        return ngx_tollbar_conf_refuse(cf, "\"on_full\" and \"room\" must have \"capacity\" beside "
                                       "them, without which the file of zone \"%V\" has its own", name);
    }
    ngx_conf_init_uint_value(zone->on_full, TOLLBAR_ON_FULL_EVICT_NEAREST);
    if (file->capacity != 0) {
        options.capacity = file->capacity;
        options.room = zone->room;
        options.clock = ngx_tollbar_zone_clock(policies, 1);
        error = tollbar_table_bytes(policies, 1, &options, &bytes);
        if (error != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "zone \"%V\" cannot have a table for %uL keys: %s", name,
                               file->capacity, tollbar_strerror(error));
            return NGX_CONF_ERROR;
        }
    }
    return NGX_CONF_OK;
}

/* `maker`: a zone that says how nginx makes the file. NULL: the options with which the library opens
 * any table. */
static tollbar_table_options options_of(const ngx_tollbar_zone_t *zone, const ngx_tollbar_zone_t *maker)
{
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(0);
    const tollbar_policy_spec *policies[NGX_TOLLBAR_POLICIES_MOST];

    options.mode = zone->file.mode;
    options.hot_keys = zone->hot_keys;
    options.flags = zone->file.trust_anyone ? TOLLBAR_TABLE_TRUST_ANYONE : 0;
    if (maker != NULL) {
        options.capacity = maker->file.capacity;
        options.mode = options.mode != 0 ? options.mode : maker->file.mode;
        options.on_full = (uint32_t) maker->on_full;
        options.room = maker->room;
        options.clock = ngx_tollbar_zone_clock(policies, policies_of(zone, policies));
    }
    return options;
}

/* The zone itself if it has a capacity, and otherwise the first zone of the same file that has one.
 * NULL: nginx makes no file. */
static const ngx_tollbar_zone_t *maker_of(const ngx_tollbar_zone_t *zone)
{
    ngx_list_part_t *part = &zone->cycle->shared_memory.part;
    const ngx_tollbar_zone_t *other = zone;
    ngx_uint_t at = 0;

    while (other != NULL && (other->file.capacity == 0 || !same_file(other, zone))) {
        other = ngx_tollbar_zone_next_file(zone->cycle, &part, &at);
    }
    return other;
}

/* Lists the policies of all zones with the zone's file, each once. */
static ngx_uint_t policies_of(const ngx_tollbar_zone_t *zone, const tollbar_policy_spec **policies)
{
    ngx_list_part_t *part = &zone->cycle->shared_memory.part;
    const ngx_tollbar_zone_t *other;
    ngx_uint_t at = 0, count = 0, n;

    while ((other = ngx_tollbar_zone_next_file(zone->cycle, &part, &at)) != NULL) {
        for (n = 0; n < count && !ngx_tollbar_zone_same_policy(policies[n], other->policies); n++) {
            /* void */
        }
        if (n == count && count < NGX_TOLLBAR_POLICIES_MOST && same_file(other, zone)) {
            policies[count++] = other->policies;
        }
    }
    return count;
}

static ngx_flag_t same_file(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b)
{
    return a->file.path.len == b->file.path.len && ngx_strcmp(a->file.path.data, b->file.path.data) == 0;
}

/* nginx calls this at each start and reload, also if it keeps the placeholder. */
ngx_int_t ngx_tollbar_file_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    ngx_tollbar_file_t *file = &zone->file;
    const tollbar_policy_spec *policies[NGX_TOLLBAR_POLICIES_MOST];
    const char *path = (const char *) file->path.data;
    const ngx_tollbar_zone_t *maker = maker_of(zone);
    tollbar_table_options options;
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    int32_t error = TOLLBAR_E_OTHER_POLICIES;
    ngx_file_info_t info;

    /* Not of the file that a link leads to, because the library opens no link. */
    if ((maker == NULL || ngx_test_config)
        && ngx_link_info(file->path.data, &info) == NGX_FILE_ERROR && ngx_errno == NGX_ENOENT)
    {
        return missing(shm_zone, maker != NULL);
    }
    if (maker != NULL) {
        options = options_of(zone, maker);
        error = tollbar_table_open(path, policies, policies_of(zone, policies), &options, &zone->table);
    }
    /* The library has compared the capacity and the options before the policies. */
    if (error == TOLLBAR_E_OTHER_POLICIES) {
        options = options_of(zone, NULL);
        error = tollbar_table_open(path, NULL, 0, &options, &zone->table);
    }
    if (error != 0) {
        return refused(shm_zone, error, ngx_errno);
    }
    if (ngx_link_info(file->path.data, &info) == NGX_FILE_ERROR) {
        return wrong(shm_zone, ngx_errno, "zone \"%V\" has lost its file \"%V\", which another "
                     "program must not remove", &shm_zone->shm.name, &file->path);
    }
    file->device = info.st_dev;
    file->inode = info.st_ino;
    (void) tollbar_table_get_stats(zone->table, &stats);
    zone->room = (uint32_t) stats.room;
    return find_policy(shm_zone);
}

/* There is no file. nginx -t makes none, because it only tests. */
static ngx_int_t missing(ngx_shm_zone_t *shm_zone, ngx_flag_t is_made)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    u_char text[NGX_MAX_PATH];
    ngx_str_t directory = directory_of(&zone->file.path, text);
    ngx_file_info_t info;

    if (ngx_file_info(text, &info) == NGX_FILE_ERROR) {
        return wrong(shm_zone, ngx_errno, "zone \"%V\" has its file in \"%V\", which must be a "
                     "directory", &shm_zone->shm.name, &directory);
    }
    if (is_made) {
        return NGX_OK;
    }
    return wrong(shm_zone, 0, "zone \"%V\" has no file \"%V\", which another program must make "
                 "first, unless \"capacity\" says for how many keys nginx makes it",
                 &shm_zone->shm.name, &zone->file.path);
}

static ngx_int_t refused(ngx_shm_zone_t *shm_zone, int32_t error, ngx_err_t system)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;

    switch (error) {
    case TOLLBAR_E_OWNER:
        return untrusted(shm_zone);
    case TOLLBAR_E_OTHER_CAPACITY:
        return other_capacity(shm_zone);
    case TOLLBAR_E_OTHER_OPTIONS:
        return other_options(shm_zone);
    case TOLLBAR_E_MIXED_POLICIES:
    case TOLLBAR_E_SLOT_ROOM:
        return wrong(shm_zone, 0, "zone \"%V\" and others cannot have their policies in one file "
                     "\"%V\": %s, they must have \"room\" for each sliding window and log, or a "
                     "file each", &shm_zone->shm.name, &zone->file.path, tollbar_strerror(error));
    case TOLLBAR_E_NOT_A_TABLE:
    case TOLLBAR_E_TABLE_VERSION:
    case TOLLBAR_E_TRUNCATED:
    case TOLLBAR_E_CORRUPT:
        return wrong(shm_zone, 0, "zone \"%V\" cannot use \"%V\": %s, it must be a table of this "
                     "version of tollbar", &shm_zone->shm.name, &zone->file.path,
                     tollbar_strerror(error));
    default:
        /* errno belongs to these errors only (tollbar.h). */
        system = error <= TOLLBAR_E_OPEN && error >= TOLLBAR_E_SYNC ? system : 0;
        return wrong(shm_zone, system, "zone \"%V\" cannot open \"%V\": %s, nginx must be able to "
                     "read and write it as user %ui", &shm_zone->shm.name, &zone->file.path,
                     tollbar_strerror(error), (ngx_uint_t) geteuid());
    }
}

static ngx_int_t untrusted(ngx_shm_zone_t *shm_zone)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    u_char text[NGX_MAX_PATH];
    ngx_file_info_t file, directory;

    ngx_memzero(&file, sizeof(file));
    ngx_memzero(&directory, sizeof(directory));
    (void) directory_of(&zone->file.path, text);
    (void) ngx_file_info(zone->file.path.data, &file);
    (void) ngx_file_info(text, &directory);
    return wrong(shm_zone, 0, "zone \"%V\" cannot trust \"%V\": user %ui owns the file, of mode "
                 "%04ui, and user %ui its directory, of mode %04ui; both must belong to user %ui "
                 "or root, other users must not write the file unless \"mode\" lets them, nor "
                 "replace it; or the zone must have trust_anyone",
                 &shm_zone->shm.name, &zone->file.path,
                 (ngx_uint_t) file.st_uid, octal(file.st_mode), (ngx_uint_t) directory.st_uid,
                 octal(directory.st_mode), (ngx_uint_t) geteuid());
}

static ngx_int_t other_capacity(ngx_shm_zone_t *shm_zone)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    tollbar_table_options any = options_of(zone, NULL);
    tollbar_table_stats stats = TOLLBAR_TABLE_STATS_INIT;
    tollbar_table *table = NULL;

    if (tollbar_table_open((const char *) zone->file.path.data, NULL, 0, &any, &table) == 0) {
        (void) tollbar_table_get_stats(table, &stats);
        tollbar_table_close(table);
    }
    return wrong(shm_zone, 0, "zone \"%V\" found a table for %uL keys in \"%V\", and has "
                 "capacity=%uL, the numbers must be equal", &shm_zone->shm.name, stats.capacity,
                 &zone->file.path, maker_of(zone)->file.capacity);
}

static ngx_int_t other_options(ngx_shm_zone_t *shm_zone)
{
    /* A word's index is its TOLLBAR_ON_FULL_ number. */
    static const char *full[] = { "evict-nearest", "inherit", "allow", "deny" };
    ngx_tollbar_zone_t *zone = shm_zone->data;
    tollbar_table_options options = options_of(zone, maker_of(zone));

    return wrong(shm_zone, 0, "zone \"%V\" found a table with other options in \"%V\", it must be "
                 "one of on_full %s, missing_key deny, clock %s, 1024 overrides and room %uD, or "
                 "\"capacity\" must be left out", &shm_zone->shm.name, &zone->file.path,
                 full[options.on_full],
                 options.clock == TOLLBAR_CLOCK_WALL ? "wall" : "tsc", options.room);
}

/* Finds the number of the zone's policy in the table. */
static ngx_int_t find_policy(ngx_shm_zone_t *shm_zone)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    ngx_tollbar_zone_t *old = ngx_tollbar_zone_former_table(shm_zone);
    tollbar_policy_spec policy = TOLLBAR_POLICY_SPEC_INIT;
    char wanted[TOLLBAR_POLICY_TEXT_MAX] = "", found[TOLLBAR_POLICY_TEXT_MAX] = "";
    u_char list[LIST_SIZE], *to = list;
    uint32_t number;

    for (number = 0; tollbar_table_get_policy(zone->table, number, &policy) == 0; number++) {
        if (ngx_tollbar_zone_same_policy(&policy, zone->policies)) {
            zone->number = number;
            return NGX_OK;
        }
        (void) tollbar_policy_spec_print(&policy, found, sizeof(found), NULL);
        to = ngx_slprintf(to, list + sizeof(list), "%s\"%s\"", number != 0 ? ", " : "", found);
    }
    if (old != NULL && old->table != NULL && old->file.device == zone->file.device
        && old->file.inode == zone->file.inode)
    {
        return change_policy(shm_zone, old);
    }
    (void) tollbar_policy_spec_print(zone->policies, wanted, sizeof(wanted), NULL);
    if (ngx_test_config) {
        /* The level of `error_log` is usually above a warning's. */
        ngx_log_stderr(0, "[warn] zone \"%V\" has the policy \"%s\", and the table in \"%V\" has "
                       "%*s: a reload that changes the zone's policy changes the table's, and a "
                       "start is refused, in %V:%ui", &shm_zone->shm.name, wanted, &zone->file.path,
                       (size_t) (to - list), list, &zone->where.file, zone->where.line);
        return NGX_OK;
    }
    return wrong(shm_zone, 0, "zone \"%V\" has the policy \"%s\", and the table in \"%V\" has %*s, "
                 "one must be equal; a reload or the command \"tollbar table set-policy\" changes "
                 "a table's policy", &shm_zone->shm.name, wanted, &zone->file.path,
                 (size_t) (to - list), list);
}

/* The table lacks the zone's policy, and the running configuration uses the same file. */
static ngx_int_t change_policy(ngx_shm_zone_t *shm_zone, const ngx_tollbar_zone_t *old)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    const tollbar_policy_spec *policies[] = { zone->policies, old->policies };
    tollbar_table_options options = TOLLBAR_TABLE_OPTIONS_INIT(1);
    uint64_t bytes;
    int32_t error;

    zone->number = old->number;
    if (ngx_tollbar_zone_same_policy(old->policies, zone->policies)) {
        ngx_log_error(NGX_LOG_WARN, shm_zone->shm.log, 0,
                      "zone \"%V\" keeps to the table in \"%V\", whose policy %uD another program "
                      "has changed, in %V:%ui", &shm_zone->shm.name, &zone->file.path, zone->number,
                      &zone->where.file, zone->where.line);
        return NGX_OK;
    }
    /* Without room a table with a sliding window or a sliding log has one policy for good. */
    options.clock = TOLLBAR_CLOCK_WALL;
    options.room = zone->room;
    error = tollbar_table_bytes(policies, 2, &options, &bytes);
    if (error == TOLLBAR_E_MIXED_POLICIES || error == TOLLBAR_E_SLOT_ROOM) {
        return wrong(shm_zone, 0, "zone \"%V\" cannot change the policy of the table in \"%V\", "
                     "which was made with room %uD: %s, so the zone must have another file",
                     &shm_zone->shm.name, &zone->file.path, zone->room, tollbar_strerror(error));
    }
    zone->file.changes = 1;
    zone->file.keep = ngx_tollbar_zone_same_rates(old, zone) ? TOLLBAR_KEEP_TIME
                                                             : TOLLBAR_KEEP_COUNT;
    return NGX_OK;
}

void ngx_tollbar_file_start(ngx_shm_zone_t *shm_zone, ngx_log_t *log)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    char text[TOLLBAR_POLICY_TEXT_MAX] = "";
    int32_t error;

    if (!zone->file.changes) {
        return;
    }
    zone->file.changes = 0;
    error = tollbar_table_set_policy(zone->table, zone->number, zone->policies, zone->file.keep);
    if (error != 0) {
        /* It is too late to refuse the configuration, so the former policy stays in force. */
        ngx_log_error(NGX_LOG_ALERT, log, 0, "zone \"%V\" keeps its former limits: %s",
                      &shm_zone->shm.name, tollbar_strerror(error));
        return;
    }
    (void) tollbar_policy_spec_print(zone->policies, text, sizeof(text), NULL);
    ngx_log_error(NGX_LOG_NOTICE, log, 0,
                  "zone \"%V\" has changed policy %uD of the table in \"%V\" to \"%s\"",
                  &shm_zone->shm.name, zone->number, &zone->file.path, text);
}

/* Logs a message about the zone's directive, and refuses the configuration. */
static ngx_int_t wrong(ngx_shm_zone_t *shm_zone, ngx_err_t system, const char *format, ...)
{
    ngx_tollbar_zone_t *zone = shm_zone->data;
    u_char text[NGX_MAX_ERROR_STR], *end;
    va_list arguments;

    va_start(arguments, format);
    end = ngx_vslprintf(text, text + sizeof(text), format, arguments);
    va_end(arguments);
    ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, system, "%*s in %V:%ui",
                  (size_t) (end - text), text, &zone->where.file, zone->where.line);
    return NGX_ERROR;
}

/* Writes the path of the file's directory to `to`, of NGX_MAX_PATH bytes, and returns it. */
static ngx_str_t directory_of(const ngx_str_t *path, u_char *to)
{
    ngx_str_t directory = { path->len, to };

    while (directory.len > 1 && path->data[directory.len - 1] != '/') {
        directory.len--;
    }
    directory.len = ngx_min(directory.len, NGX_MAX_PATH - 1);
    *ngx_cpymem(to, path->data, directory.len) = '\0';
    return directory;
}

/* The permissions as a number whose decimal digits are the octal ones. */
static ngx_uint_t octal(mode_t mode)
{
    return (mode >> 9 & 7) * 1000 + (mode >> 6 & 7) * 100 + (mode >> 3 & 7) * 10 + (mode & 7);
}
