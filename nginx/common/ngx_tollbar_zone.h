/* A zone of nginx's shared memory that holds one tollbar table. All modules keep their keys in such
 * zones. A zone with `file` has its table there instead (ngx_tollbar_file.h).
 *
 * The master makes the table before it forks, and the workers inherit its view. From then on no
 * process takes the zone's mutex, so a killed or stopped worker makes no other worker wait.
 *
 * On a reload with the same keys
 *
 *     the same size and rates    keep the old memory and all states;
 *     another burst              is set in the old memory, once the reload cannot fail any more;
 *     another size or rate       takes new memory and copies the old table's keys into it: a key
 *                                that had two requests left still has two;
 *     another rate or algorithm  of a zone with `room` is set in the old memory, too. Keys keep the
 *                                permits that they have left, and no charge of an old worker is
 *                                lost. A calendar needs another clock, and so new memory.
 *
 * With other keys, or after a reload with a module of another build, the zone begins empty.
 *
 * A module's order of calls:
 *
 *     the directive      ngx_tollbar_zone_add, then ngx_tollbar_zone_bind
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

/* The most policies of a table. */
#define NGX_TOLLBAR_POLICIES_MOST 128

/* The parameter `file` and those beside it (ngx_tollbar_file.h). */
typedef struct {
    /* The absolute path. Its length is 0 if the zone has no file. */
    ngx_str_t path;
    /* The keys for which nginx makes the file. 0: nginx makes none. */
    uint64_t capacity;
    /* The permissions of a new file. 0: 0600. */
    uint32_t mode;
    /* The file, to know it again after a reload. */
    dev_t device;
    ino_t inode;
    /* A TOLLBAR_KEEP_ number, if `changes`. */
    uint32_t keep;
    /* The file may belong to any user. */
    unsigned trust_anyone:1;
    /* The reload changes the table's policy. */
    unsigned changes:1;
} ngx_tollbar_file_t;

/* Modules put this first in a struct of their own, which is their shm_zone->data. */
typedef struct {
    /* The size of this struct. Another module of another build has another layout, most likely. */
    size_t layout;
    /* The configuration of the zone. */
    ngx_cycle_t *cycle;
    /* Where its directive stands, and the text of the directive's KEY. */
    ngx_tollbar_where_t where;
    ngx_str_t keys;
    ngx_tollbar_file_t file;
    /* The module sets the following fields. A policy's number is its index. */
    ngx_uint_t on_full;
    /* The number of keys for which each worker may take permits in advance. */
    uint32_t hot_keys;
    /* The segments or permits for which each slot has room. 0: the algorithm stays in its memory. */
    uint32_t room;
    /* The number of refused keys that a page shows. 0: the table records none. */
    uint32_t top_refused;
    tollbar_policy_spec *policies;
    ngx_uint_t policies_n;

    /* This process's view. NULL until the master has made or found the table. */
    tollbar_table *table;
    /* The number of the zone's first policy in the table. Only the table of a file may have other
     * policies before it. */
    uint32_t number;

    /* The seed of the hashes. A table that takes over another one's keys has the same seed. */
    uint64_t seed;

    /* Limits the log lines of each error that has occurred. Errors beyond NGX_TOLLBAR_ZONE_ERRORS
     * share the last entry. */
    struct {
        int32_t error;
        ngx_tollbar_seldom_t message;
    } failed[NGX_TOLLBAR_ZONE_ERRORS];
} ngx_tollbar_zone_t;

/* Adds a zone with the key of the directive to nginx's shared memory, and to `zones`, which holds
 * pointers to ngx_shm_zone_t. The caller binds it. NULL after an error, which nginx has logged. */
ngx_shm_zone_t *ngx_tollbar_zone_add(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag,
                                     ngx_tollbar_zone_t *zone, ngx_array_t *zones);

/* The size of a zone with the smallest table for the zone's policies. 0 if no table can hold
 * them. */
size_t ngx_tollbar_zone_least(ngx_tollbar_zone_t *zone);

/* The clock of a table with these policies. Days and months are those of the wall clock. No other
 * policy needs it, and a step of the system's clock moves it. */
uint32_t ngx_tollbar_zone_clock(const tollbar_policy_spec *const *policies, ngx_uint_t count);

/* The size of a zone from which `bytes` can be allocated in one piece. */
size_t ngx_tollbar_zone_size_for(uint64_t bytes);

/* The next zone with a file, of http or stream, in a walk over the configuration. `part` and `n` are
 * the place in the walk, at first the list's first part and 0. NULL at the end. */
ngx_tollbar_zone_t *ngx_tollbar_zone_next_file(ngx_cycle_t *cycle, ngx_list_part_t **part, ngx_uint_t *n);

/* The zone of the same name and module in the running configuration. NULL if there is none. */
ngx_shm_zone_t *ngx_tollbar_zone_former(ngx_shm_zone_t *shm_zone);

/* The data of that zone. NULL if there is none, or if it holds something else than this zone: no
 * table, or a table elsewhere. */
ngx_tollbar_zone_t *ngx_tollbar_zone_former_table(ngx_shm_zone_t *shm_zone);

/* Whether two policies are one: whether their texts are equal. */
ngx_flag_t ngx_tollbar_zone_same_policy(const tollbar_policy_spec *a, const tollbar_policy_spec *b);

/* Whether the table of a zone with `room` has another policy of that number than this process's
 * configuration. For some milliseconds of a reload the old workers have another one. What a
 * decision says about time and permits then has another meaning than the old configuration
 * expects, so such a worker takes the table's verdict, and neither delays nor compares. */
ngx_flag_t ngx_tollbar_zone_has_changed(const ngx_tollbar_zone_t *zone, uint32_t number,
                                        const tollbar_policy_spec *policy);

/* Whether the policies differ at most in their bursts. */
ngx_flag_t ngx_tollbar_zone_same_rates(const ngx_tollbar_zone_t *a, const ngx_tollbar_zone_t *b);

/* Sets `zone` as the data of a new shared memory zone. */
ngx_int_t ngx_tollbar_zone_bind(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone, ngx_tollbar_zone_t *zone);

/* Decides whether the zone keeps the memory of the running configuration. */
void ngx_tollbar_zone_settle(ngx_shm_zone_t *shm_zone);

/* _keep makes nginx keep the memory of the running configuration if the size is the same. _renew
 * makes nginx give the zone new memory. * nginx keeps memory if name, size and tag are the same. A
 * zone of a module has one of two tags: the address of its ngx_module_t, or that address plus 1.
 * _keep sets the tag of the running zone, and _renew the other one. (nginx's own mark `noreuse`
 * does not serve, because nginx reads the new zone's mark before it maps memory, but the old zone's
 * mark before it frees memory.) Call these after all directives have been read, because
 * ngx_shared_memory_add finds a zone by its tag. */
void ngx_tollbar_zone_keep(ngx_shm_zone_t *shm_zone);
void ngx_tollbar_zone_renew(ngx_shm_zone_t *shm_zone);

/* Logs that the zone's table returned an error. This process logs each error at most once a
 * second. */
void ngx_tollbar_zone_failed(ngx_shm_zone_t *shm_zone, ngx_log_t *log, int32_t error);

/* Sets the configured policies in each zone's table. `zones` has elements ngx_shm_zone_t *. */
void ngx_tollbar_zones_start(ngx_array_t *zones, ngx_log_t *log);

#endif
