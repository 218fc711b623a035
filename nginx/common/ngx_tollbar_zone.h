/* A zone of nginx's shared memory that holds one tollbar table. All modules keep their keys in such zones.
 *
 * The master makes the table before it forks, and the workers use the view that they inherit. From then on nobody takes the
 * zone's mutex: a worker that is killed or stopped, wherever it is, keeps nobody waiting.
 *
 * On a reload, with the keys the same,
 *   the same size and rates    mean the old memory: nothing happens to anybody's state;
 *   another size or rate       means new memory, into which the old table's entries are copied: of a key that had two requests
 *                              left, two are left;
 *   another burst              is set in the old memory, once the reload cannot fail any more.
 * Where the keys are made of something else, or a module of another build reads the configuration, the zone starts empty.
 *
 * A module's order of calls:
 *
 *     the directive      ngx_tollbar_zone_add, then, if `data` is NULL, ngx_tollbar_zone_bind
 *     postconfiguration  ngx_tollbar_zone_settle for each zone, when its policies are final
 *     init_module        ngx_tollbar_zones_start
 *     a request          tollbar_table_check(zone->table, ...)
 */

#ifndef NGX_TOLLBAR_ZONE_H
#define NGX_TOLLBAR_ZONE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar.h>
#include "ngx_tollbar_conf.h"

#define NGX_TOLLBAR_ZONE_ERRORS 8

/* Modules put this first in a struct of their own, which is their shm_zone->data. */
typedef struct {
    /* The directive that declares it. */
    ngx_tollbar_where_t where;
    /* For the module to fill in. `keys` is what keys are made of, as text; policies are known by their place. */
    ngx_str_t keys;
    ngx_uint_t on_full;
    /* For how many keys each worker may take permits in advance; 0: none. */
    uint32_t hot_keys;
    tollbar_policy_spec *policies;
    ngx_uint_t policies_n;

    /* This process's view: NULL until the master has made or found the table. */
    tollbar_table *table;

    /* What a table must have in common with one that takes over its entries. */
    uint64_t seed;

    /* That it could not be asked, for each error that has occurred. The last place is for all errors that found no place of their own. */
    struct {
        int32_t error;
        ngx_tollbar_seldom_t message;
    } failed[NGX_TOLLBAR_ZONE_ERRORS];
} ngx_tollbar_zone_t;

/* Adds a zone, or finds that of the same name and tag. `size` is raised to what the smallest table of these policies needs:
 * configurations that did with less before are still good. NULL where nginx has logged why not. */
ngx_shm_zone_t *ngx_tollbar_zone_add(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag, ngx_tollbar_zone_t *zone);

/* The bytes of a zone with the smallest table of these policies; 0 if no table can hold them. */
size_t ngx_tollbar_zone_least(ngx_tollbar_zone_t *zone);

/* The bytes of a zone that has so many to give in one piece. */
size_t ngx_tollbar_zone_size_for(uint64_t bytes);

/* The zone of that name and module in the configuration that is running now; NULL if there is none. */
ngx_shm_zone_t *ngx_tollbar_zone_former(ngx_shm_zone_t *shm_zone);

/* Makes `zone` the data of a zone that has none. */
ngx_int_t ngx_tollbar_zone_bind(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, ngx_tollbar_zone_t *zone);

/* Decides whether the memory of the running configuration is used again. */
void ngx_tollbar_zone_settle(ngx_shm_zone_t *shm_zone);

/* Has nginx use the memory of the running configuration again if the size is the same, or give the zone new memory.
 *
 * nginx uses memory again, and keeps the old one from being freed, if name, size and tag are the same. A module's zones have one of
 * two tags, its ngx_module_t and the byte after its first: the zone gets the tag of the running one, or the other. (There is a mark
 * for the same purpose, `noreuse`, but nginx looks at the new zone's before it makes memory and at the old zone's before it frees it.)
 * From then on the tag is not the one that ngx_shared_memory_add is asked with, so all directives must have been read. */
void ngx_tollbar_zone_keep(ngx_shm_zone_t *shm_zone);
void ngx_tollbar_zone_renew(ngx_shm_zone_t *shm_zone);

/* Logs, for each error at most once a second from this process, that a request could not be decided on. */
void ngx_tollbar_zone_failed(ngx_shm_zone_t *shm_zone, ngx_log_t *log, int32_t error);

/* Makes the configured policies of each zone those of its table. `zones` are of ngx_shm_zone_t *. */
void ngx_tollbar_zones_start(ngx_array_t *zones, ngx_log_t *log);

#endif
