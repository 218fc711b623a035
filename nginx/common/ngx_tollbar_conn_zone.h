/* A zone of nginx's shared memory in which requests or connections are counted: what the modules for http and for stream have
 * in common. ngx_tollbar_conn.h says how they are counted.
 *
 * The master makes the table before it forks, and nobody ever takes the zone's mutex. On a reload a zone of the same size goes on,
 * and what old workers have still counts. Where the key is made of something else, they and the new ones count apart in the
 * same memory. A zone of another size begins anew: what old workers have does not count in it. Nor does it for another
 * binary, which has memory of its own.
 *
 * A module's order of calls:
 *
 *     the directive of a zone    ngx_tollbar_conn_zone_read
 *     init_process               ngx_tollbar_conn_zone_join for each zone
 *     a request                  ngx_tollbar_conn_zone_enter, and when it ends ngx_tollbar_conn_zone_leave
 *     exit_process               ngx_tollbar_conn_zone_part for each zone
 */

#ifndef NGX_TOLLBAR_CONN_ZONE_H
#define NGX_TOLLBAR_CONN_ZONE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include "ngx_tollbar_conf.h"
#include "ngx_tollbar_conn.h"

/* Modules put this first in a struct of their own, which is their shm_zone->data. */
typedef struct {
    ngx_shm_zone_t *shm_zone;
    ngx_cycle_t *cycle;
    /* The directive that declares it. */
    ngx_tollbar_where_t where;
    /* What keys are made of, as text, and a hash of it. */
    ngx_str_t keys;
    uint64_t keys_hash;
    /* Who finds no place passes, and is not counted. */
    ngx_flag_t allow_when_full;
    /* That it is full, which is said after it has been cleaned. */
    ngx_tollbar_seldom_t full;
    ngx_tollbar_conn_t view;
} ngx_tollbar_conn_zone_t;

/* Where something is counted. */
typedef struct {
    ngx_tollbar_conn_zone_t *zone;
    ngx_tollbar_conn_slot_t slot;
} ngx_tollbar_conn_held_t;

/* Reads `KEY zone=NAME:SIZE [on_full=deny|allow]`; the key itself is the module's to compile. */
char *ngx_tollbar_conn_zone_read(ngx_conf_t *cf, void *tag, ngx_tollbar_conn_zone_t *zone);

/* Reads `NAME NUMBER`. */
char *ngx_tollbar_conn_limit_read(ngx_conf_t *cf, void *tag, ngx_shm_zone_t **shm_zone, ngx_uint_t *limit);

void ngx_tollbar_conn_zone_join(ngx_tollbar_conn_zone_t *zone, ngx_log_t *log);
void ngx_tollbar_conn_zone_part(ngx_tollbar_conn_zone_t *zone);

/* NGX_OK: counted, in `*held`. NGX_DECLINED: passes without being counted. NGX_BUSY: refused by the limit. NGX_ERROR: refused
 * because the zone is full, of which the log tells once a second. */
ngx_int_t ngx_tollbar_conn_zone_enter(ngx_tollbar_conn_zone_t *zone, ngx_str_t *key, ngx_uint_t limit, ngx_log_t *log,
                                      ngx_tollbar_conn_held_t *held);
void ngx_tollbar_conn_zone_leave(ngx_tollbar_conn_held_t *held);

#endif
