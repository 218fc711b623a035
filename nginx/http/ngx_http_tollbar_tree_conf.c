/* Reads the directives tollbar_tree and tollbar_tree_class, and checks the limits of a tree. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_class_t class_t;
typedef ngx_http_tollbar_tree_t tree_t;
typedef ngx_http_tollbar_zone_t zone_t;
typedef ngx_http_tollbar_limit_t limit_t;
typedef ngx_http_tollbar_main_conf_t main_conf_t;

/* The most classes of a tree, the root included. */
#define CLASSES_MOST 1024
/* The least burst that a tree has unless it asks for one, and the most that the library accepts. */
#define BURST_LEAST 100000000
#define BURST_MOST 10000000000

/* The parameters of tollbar_tree_class. */
typedef struct {
    zone_t *zone;
    ngx_str_t zone_name;
    class_t *parent;
    ngx_str_t parent_name;
    const char *guaranteed;
    const char *ceiling;
    ngx_int_t keys;
} asked_t;

static char *read_tree_parameter(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone, ngx_str_t *name,
                                 size_t *size);
static char *read_burst(ngx_conf_t *cf, ngx_str_t *argument, tree_t *tree);
static char *make_tree(ngx_conf_t *cf, ngx_str_t *name, tree_t *tree);
static uint64_t usual_burst(const tree_t *tree);
static void free_tree(void *data);
static char *read_class_parameter(ngx_conf_t *cf, ngx_str_t *argument, main_conf_t *main,
                                  asked_t *asked);
static char *add_class(ngx_conf_t *cf, ngx_str_t *name, asked_t *asked);
static void set_ceiling(const tree_t *tree, tollbar_policy_spec *ceiling, const char *text);
static ngx_int_t wrong(ngx_conf_t *cf, const limit_t *limit, const char *message);

static ngx_flag_t begins(const ngx_str_t *argument, const char *word)
{
    return ngx_strncmp(argument->data, word, ngx_strlen(word)) == 0;
}

/* tollbar_tree KEY zone=NAME:SIZE rate=RATE [burst=TIME] [top_refused=N] */
char *ngx_http_tollbar_read_tree(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    main_conf_t *main = conf;
    ngx_str_t *value = cf->args->elts;
    ngx_str_t name = ngx_null_string;
    zone_t *zone = ngx_pcalloc(cf->pool, sizeof(zone_t));
    tree_t *tree = ngx_pcalloc(cf->pool, sizeof(tree_t));
    ngx_shm_zone_t *shm_zone;
    size_t size = 0;
    ngx_uint_t n;
    char *error;

    if (zone == NULL || tree == NULL
        || ngx_http_tollbar_key_compile(cf, &value[1], &zone->key) != NGX_OK
        || ngx_array_init(&tree->classes, cf->pool, 8, sizeof(class_t)) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }
    zone->tree = tree;
    zone->burst.number = NGX_CONF_UNSET;
    for (n = 2; n < cf->args->nelts; n++) {
        error = read_tree_parameter(cf, &value[n], zone, &name, &size);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (name.len == 0) {
        return ngx_tollbar_conf_refuse(cf,
                                       "\"%V\" must have \"zone\" parameter, such as zone=one:10m",
                                       &cmd->name);
    }
    if (tree->rate.len == 0) {
        return ngx_tollbar_conf_refuse(cf,
                                       "\"%V\" must have \"rate\" parameter, such as rate=1000/s",
                                       &cmd->name);
    }
    error = make_tree(cf, &name, tree);
    if (error != NGX_CONF_OK) {
        return error;
    }
    zone->policy = (tollbar_policy_spec) TOLLBAR_POLICY_SPEC_INIT;
    (void) tollbar_policy_spec_parse(TOLLBAR_HIERARCHY_POLICY, sizeof(TOLLBAR_HIERARCHY_POLICY) - 1,
                                     &zone->policy, NULL);
    zone->zone.policies = &zone->policy;
    zone->zone.policies_n = 1;
    /* A table that evicts a node forgets its debt. */
    zone->zone.on_full = TOLLBAR_ON_FULL_DENY;
    error = ngx_http_tollbar_check_size(cf, &name, size, zone);
    if (error != NGX_CONF_OK) {
        return error;
    }
    shm_zone = ngx_tollbar_zone_add(cf, &name, size, &ngx_http_tollbar_module, &zone->zone,
                                    &main->zones);
    if (shm_zone == NULL || ngx_tollbar_zone_bind(cf, shm_zone, &zone->zone) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static char *read_tree_parameter(ngx_conf_t *cf, ngx_str_t *argument, zone_t *zone, ngx_str_t *name,
                                 size_t *size)
{
    if (begins(argument, "zone=")) {
        return ngx_tollbar_conf_zone(cf, argument, name, size);
    }
    if (begins(argument, "rate=")) {
        zone->tree->rate.data = argument->data + 5;
        zone->tree->rate.len = argument->len - 5;
        return NGX_CONF_OK;
    }
    if (begins(argument, "burst=")) {
        return read_burst(cf, argument, zone->tree);
    }
    if (begins(argument, "top_refused=")) {
        return ngx_http_tollbar_read_top_refused(cf, argument, zone);
    }
    return ngx_tollbar_conf_refuse(cf,
                                   "invalid parameter \"%V\", it must be zone=NAME:SIZE, "
                                   "rate=RATE, burst=TIME or top_refused=NUMBER", argument);
}

static char *read_burst(ngx_conf_t *cf, ngx_str_t *argument, tree_t *tree)
{
    ngx_str_t text = { argument->len - 6, argument->data + 6 };
    ngx_int_t milliseconds = ngx_parse_time(&text, 0);

    if (milliseconds == NGX_ERROR || milliseconds < 1 || milliseconds > 10000) {
        return ngx_tollbar_conf_refuse(cf,
                                       "invalid burst value \"%V\", it must be a time from 1ms to "
                                       "10s", argument);
    }
    tree->burst_ns = (uint64_t) milliseconds * 1000000;
    return NGX_CONF_OK;
}

static char *make_tree(ngx_conf_t *cf, ngx_str_t *name, tree_t *tree)
{
    ngx_pool_cleanup_t *cleanup = ngx_pool_cleanup_add(cf->pool, 0);
    int32_t error;

    if (cleanup == NULL) {
        return NGX_CONF_ERROR;
    }
    if (tree->burst_ns == 0) {
        tree->burst_ns = usual_burst(tree);
    }
    error = tollbar_hierarchy_new((const char *) tree->rate.data, tree->burst_ns, CLASSES_MOST, 0,
                                  &tree->hierarchy);
    if (error == TOLLBAR_E_OUT_OF_RANGE) {
        return ngx_tollbar_conf_refuse(cf,
                                       "\"burst\" must be the time of at least 20 requests of the "
                                       "rate of tree \"%V\"", name);
    }
    if (error == TOLLBAR_E_CLASS_RATE) {
        return ngx_tollbar_conf_refuse(cf,
                                       "invalid rate \"%V\" in \"tollbar_tree\" directive, it "
                                       "must be like 1000/s or 300/min, up to 1000000/s",
                                       &tree->rate);
    }
    if (error != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "tree \"%V\" cannot be made: %s", name,
                           tollbar_strerror(error));
        return NGX_CONF_ERROR;
    }
    cleanup->handler = free_tree;
    cleanup->data = tree->hierarchy;
    set_ceiling(tree, &tree->ceiling, (const char *) tree->rate.data);
    return NGX_CONF_OK;
}

/* The burst of a tree that asks for none: the least for which the library accepts the rate. */
static uint64_t usual_burst(const tree_t *tree)
{
    tollbar_policy_spec rate = TOLLBAR_POLICY_SPEC_INIT;
    uint64_t burst = 0;

    if (tollbar_policy_spec_parse((const char *) tree->rate.data, tree->rate.len, &rate, NULL) == 0
        && rate.limit != 0) {
        burst = rate.period_ns / rate.limit * 20 + 20;
    }
    return ngx_min(ngx_max(burst, BURST_LEAST), BURST_MOST);
}

static void free_tree(void *data)
{
    tollbar_hierarchy_free(data);
}

/* Sets the policy of header fields: the ceiling's rate, and what a fresh node admits at once. The
 * library has accepted the rate. */
static void set_ceiling(const tree_t *tree, tollbar_policy_spec *ceiling, const char *text)
{
    uint64_t at_once;

    *ceiling = (tollbar_policy_spec) TOLLBAR_POLICY_SPEC_INIT;
    (void) tollbar_policy_spec_parse(text, ngx_strlen(text), ceiling, NULL);
    at_once = (uint64_t) ((double) ceiling->limit * tree->burst_ns / ceiling->period_ns);
    ceiling->burst = ngx_max(at_once, 1);
}

/* tollbar_tree_class NAME zone=NAME [parent=NAME] [guaranteed=RATE] [ceiling=RATE] [keys=NUMBER] */
char *ngx_http_tollbar_read_tree_class(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t *value = cf->args->elts;
    asked_t asked;
    ngx_uint_t n;
    char *error;

    ngx_memzero(&asked, sizeof(asked));
    asked.guaranteed = asked.ceiling = "";
    asked.keys = 1;
    for (n = 2; n < cf->args->nelts; n++) {
        error = read_class_parameter(cf, &value[n], conf, &asked);
        if (error != NGX_CONF_OK) {
            return error;
        }
    }
    if (asked.zone == NULL) {
        return ngx_tollbar_conf_refuse(cf, "\"%V\" must have \"zone\" parameter, such as zone=one",
                                       &cmd->name);
    }
    if (asked.parent_name.data != NULL) {
        asked.parent = ngx_http_tollbar_find_class(asked.zone->tree, &asked.parent_name);
        if (asked.parent == NULL) {
            return ngx_tollbar_conf_refuse(cf,
                                           "unknown parent \"%V\", a \"tollbar_tree_class\" "
                                           "before must declare it", &asked.parent_name);
        }
    }
    if (ngx_http_tollbar_find_class(asked.zone->tree, &value[1]) != NULL) {
        return ngx_tollbar_conf_refuse(cf,
                                       "class \"%V\" is already declared, each class of a tree "
                                       "must have its own name", &value[1]);
    }
    return add_class(cf, &value[1], &asked);
}

static char *read_class_parameter(ngx_conf_t *cf, ngx_str_t *argument, main_conf_t *main,
                                  asked_t *asked)
{
    ngx_shm_zone_t **zones = main->zones.elts;
    ngx_uint_t n;

    if (begins(argument, "zone=")) {
        asked->zone_name.data = argument->data + 5;
        asked->zone_name.len = argument->len - 5;
        for (n = 0; n < main->zones.nelts; n++) {
            zone_t *zone = zones[n]->data;

            if (zone->tree != NULL && zones[n]->shm.name.len == asked->zone_name.len
                && ngx_memcmp(zones[n]->shm.name.data, asked->zone_name.data,
                              asked->zone_name.len) == 0)
            {
                asked->zone = zone;
                return NGX_CONF_OK;
            }
        }
        return ngx_tollbar_conf_refuse(cf,
                                       "unknown tree \"%V\", a \"tollbar_tree\" before must "
                                       "declare it", &asked->zone_name);
    }
    if (begins(argument, "parent=")) {
        asked->parent_name.data = argument->data + 7;
        asked->parent_name.len = argument->len - 7;
        return NGX_CONF_OK;
    }
    if (begins(argument, "guaranteed=")) {
        asked->guaranteed = (const char *) argument->data + 11;
        return NGX_CONF_OK;
    }
    if (begins(argument, "ceiling=")) {
        asked->ceiling = (const char *) argument->data + 8;
        return NGX_CONF_OK;
    }
    if (begins(argument, "keys=")) {
        return ngx_tollbar_conf_count(cf, argument, "keys", &asked->keys);
    }
    return ngx_tollbar_conf_refuse(cf,
                                   "invalid parameter \"%V\", it must be zone=NAME, parent=NAME, "
                                   "guaranteed=RATE, ceiling=RATE or keys=NUMBER",
                                   argument);
}

static char *add_class(ngx_conf_t *cf, ngx_str_t *name, asked_t *asked)
{
    tree_t *tree = asked->zone->tree;
    class_t *class;
    uint32_t number, keys = asked->keys < UINT32_MAX ? (uint32_t) asked->keys : UINT32_MAX;
    uint32_t parent = asked->parent != NULL ? asked->parent->number : TOLLBAR_HIERARCHY_ROOT;
    int32_t error = tollbar_hierarchy_add(tree->hierarchy, parent, (const char *) name->data,
                                          asked->guaranteed, asked->ceiling, keys, &number);

    if (error != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "class \"%V\" cannot be in tree \"%V\": %s", name,
                           &asked->zone_name, tollbar_strerror(error));
        return NGX_CONF_ERROR;
    }
    if (asked->parent != NULL) {
        asked->parent->is_parent = 1;
    }
    class = ngx_array_push(&tree->classes);
    if (class == NULL) {
        return NGX_CONF_ERROR;
    }
    /* The parent may have moved with the array. */
    if (asked->parent != NULL) {
        asked->parent = ngx_http_tollbar_find_class(tree, &asked->parent_name);
    }
    class->name = *name;
    class->number = number;
    class->keyed = keys > 1;
    class->is_parent = 0;
    if (*asked->ceiling != '\0') {
        set_ceiling(tree, &class->ceiling, asked->ceiling);
    } else {
        class->ceiling = asked->parent != NULL ? asked->parent->ceiling : tree->ceiling;
    }
    return NGX_CONF_OK;
}

ngx_int_t ngx_http_tollbar_tree_check(ngx_conf_t *cf, limit_t *limit)
{
    const class_t *class;

    if (limit->class_name == NULL) {
        return wrong(cf, limit, "\"class\" must be in a limit of tree");
    }
    if (limit->burst.number != NGX_CONF_UNSET || limit->burst.text != NULL) {
        return wrong(cf, limit, "\"burst\" must be in the \"tollbar_tree\" of tree");
    }
    if (limit->delay != 0 && limit->delay != NGX_MAX_INT_T_VALUE) {
        return wrong(cf, limit,
                     "\"delay\" must be for a \"rate\" of \"tollbar_zone\", not for tree");
    }
    if (limit->afterwards) {
        return wrong(cf, limit,
                     "\"count\" and \"when\" must be for a \"tollbar_zone\", not for tree");
    }
    limit->class_varies = limit->class_name->lengths != NULL;
    if (limit->class_varies) {
        return NGX_OK;
    }
    class = ngx_http_tollbar_find_class(limit->zone->tree, &limit->class_name->value);
    if (class == NULL || class->is_parent) {
        ngx_tollbar_conf_late(cf, &limit->base.where,
                              "unknown class \"%V\" in \"tollbar\" directive, it must be a class "
                              "of tree \"%V\" without children",
                              &limit->class_name->value, &limit->base.shm_zone->shm.name);
        return NGX_ERROR;
    }
    return NGX_OK;
}

/* A tree takes no permits back, so a second one would leave the charges of the first. */
ngx_int_t ngx_http_tollbar_tree_check_level(ngx_conf_t *cf, const ngx_http_tollbar_conf_t *conf)
{
    limit_t **limits = conf->limits.elts;
    ngx_uint_t n, trees = 0;

    for (n = 0; n < conf->enforced; n++) {
        if (limits[n]->zone->tree != NULL && trees++ != 0) {
            return wrong(cf, limits[n],
                         "a location must have the limit of one tree, and has a second one of "
                         "tree");
        }
    }
    return NGX_OK;
}

/* Logs `message`, which ends with the tree's name, for the limit's directive. */
static ngx_int_t wrong(ngx_conf_t *cf, const limit_t *limit, const char *message)
{
    ngx_tollbar_conf_late(cf, &limit->base.where, "%s \"%V\"", message,
                          &limit->base.shm_zone->shm.name);
    return NGX_ERROR;
}
