/* Trees: zones whose rate is divided among classes with guaranteed rates and ceilings
 * (docs/hierarchy.md). A class is a line of the configuration. The nodes are keys of the zone's
 * table, so workers share them; the tree itself is plain data that workers inherit. */

#ifndef NGX_HTTP_TOLLBAR_TREE_H
#define NGX_HTTP_TOLLBAR_TREE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <tollbar.h>

typedef struct {
    ngx_str_t name;
    /* Its number in the hierarchy. */
    uint32_t number;
    /* Each key of the zone has a node of its own. */
    unsigned keyed:1;
    /* It is the parent of another class, so no request is of this class. */
    unsigned is_parent:1;
    /* The ceiling, and as the burst what a fresh node admits at once. */
    tollbar_policy_spec ceiling;
} ngx_http_tollbar_class_t;

typedef struct {
    /* The text of the root's rate. */
    ngx_str_t rate;
    uint64_t burst_ns;
    tollbar_policy_spec ceiling;
    tollbar_hierarchy *hierarchy;
    ngx_array_t classes; /* of ngx_http_tollbar_class_t */
} ngx_http_tollbar_tree_t;

#endif
