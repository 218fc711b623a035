/* A zone of nginx's shared memory that counts open requests or connections, for the modules of http and stream. ngx_tollbar_conn.h
 * has the protocol.
 *
 * The master makes the table before it forks, and no process takes the zone's mutex. After a reload with the same size the zone goes on,
 * and requests of old workers still count. With another KEY old and new requests are counted separately in the
 * same memory. A zone of another size begins empty, and does not count requests of old workers. Another binary has memory of its
 * own.
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
    /* Where its directive stands. */
    ngx_tollbar_where_t where;
    /* The text of the directive's KEY, and its hash. */
    ngx_str_t keys;
    uint64_t keys_hash;
    /* on_full=allow: a request without a slot is admitted and not counted. */
    ngx_flag_t allow_when_full;
    /* Limits the log lines about a full zone, and the clean-ups before them. */
    ngx_tollbar_seldom_t full;
    ngx_tollbar_conn_t view;
} ngx_tollbar_conn_zone_t;

/* The zone and slot that count a request. */
typedef struct {
    ngx_tollbar_conn_zone_t *zone;
    ngx_tollbar_conn_slot_t slot;
} ngx_tollbar_conn_held_t;

/* Reads `KEY zone=NAME:SIZE [on_full=deny|allow]`. The module compiles KEY. */
char *ngx_tollbar_conn_zone_read(ngx_conf_t *cf, void *tag, ngx_tollbar_conn_zone_t *zone);

/* Reads `NAME NUMBER`. */
char *ngx_tollbar_conn_limit_read(ngx_conf_t *cf, void *tag, ngx_shm_zone_t **shm_zone, ngx_uint_t *limit);

void ngx_tollbar_conn_zone_join(ngx_tollbar_conn_zone_t *zone, ngx_log_t *log);
void ngx_tollbar_conn_zone_part(ngx_tollbar_conn_zone_t *zone);

/* NGX_OK: counted, and `*held` says where. NGX_DECLINED: admitted without a count. NGX_BUSY: refused by the limit. NGX_ERROR: refused
 * because the zone is full, which is logged at most once a second. */
ngx_int_t ngx_tollbar_conn_zone_enter(ngx_tollbar_conn_zone_t *zone, ngx_str_t *key, ngx_uint_t limit, ngx_log_t *log,
                                      ngx_tollbar_conn_held_t *held);
void ngx_tollbar_conn_zone_leave(ngx_tollbar_conn_held_t *held);

#endif
