/* A zone of nginx's shared memory that counts open requests or connections, for the modules of http and stream. The zone holds an in-flight table
 * of the library (tollbar.h, "In flight").
 *
 * The master makes the table before it forks, and no process takes the zone's mutex. Each worker
 * becomes an owner. On a reload a zone of the same size keeps its memory, and the requests of old
 * workers still count. If the zone's key has changed, old and new workers count separately in the
 * same memory, because the table's keys begin with the text of the zone's key. A zone of another
 * size or `adaptive` begins empty: requests of old workers do not count in it. After an upgrade of nginx's binary
 * the zone begins empty, too, because the new binary has its own memory.
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
#include "ngx_tollbar_adaptive.h"
#include "ngx_tollbar_conf.h"
#include "tollbar.h"

/* The highest limit. */
#define NGX_TOLLBAR_CONN_MOST 65535
/* The most processes of one table. */
#define NGX_TOLLBAR_CONN_OWNERS 1024

typedef struct {
    ngx_shm_zone_t *shm_zone;
    /* The compiled key: an ngx_http_complex_value_t or an ngx_stream_complex_value_t. */
    void *key;
    ngx_cycle_t *cycle;
    /* Where its directive stands. */
    ngx_tollbar_where_t where;
    /* The zone's key as the configuration has it, such as "$remote_addr". The table's keys begin
     * with it. */
    ngx_str_t keys;
    /* on_full=allow: a request without a slot is admitted and not counted. */
    ngx_flag_t allow_when_full;
    /* `adaptive`: the zone has one limit that all of its requests share, whatever their keys. */
    ngx_tollbar_adaptive_t adaptive;
    /* What the zone has learned. NULL without `adaptive`. */
    ngx_tollbar_learned_t *learned;
    /* Limits the log lines about a full zone, and the attempts to become an owner, to one a
     * second. */
    ngx_tollbar_seldom_t full;
    /* This process's view of the table. NULL after exit_process. */
    tollbar_in_flight *table;
    ngx_flag_t joined;
    /* Whether a later configuration of this process uses the same memory. */
    ngx_flag_t kept;
} ngx_tollbar_conn_zone_t;

/* The zone that counts a request, and the ticket of its permit. */
typedef struct {
    ngx_tollbar_conn_zone_t *zone;
    tollbar_ticket ticket;
} ngx_tollbar_conn_held_t;

/* Reads `KEY zone=NAME:SIZE [on_full=deny|allow]`, and appends the zone to `zones`, which holds
 * pointers. The module has compiled KEY. With `learns` it also reads `adaptive` and the parameters
 * beside it. */
char *ngx_tollbar_conn_zone_read(ngx_conf_t *cf, void *tag, void *key, ngx_array_t *zones, ngx_flag_t learns);

/* Called after all directives have been read. Decides whether the zone keeps the memory of the
 * running configuration. */
void ngx_tollbar_conn_zone_settle(ngx_tollbar_conn_zone_t *zone);

/* Makes this process an owner of the table. */
void ngx_tollbar_conn_zone_join(ngx_tollbar_conn_zone_t *zone, ngx_log_t *log);

/* Closes this process's view of the table. Its requests no longer count. */
void ngx_tollbar_conn_zone_part(ngx_tollbar_conn_zone_t *zone);

/* Counts a request of the key. NGX_OK: the table counts it, and `*held` has the ticket.
 * NGX_DECLINED: the zone is full, and the request is admitted without being counted. NGX_BUSY: the
 * limit refuses it. NGX_ERROR: the zone is full, and the request is refused. This process logs a
 * full zone at most once a second. */
ngx_int_t ngx_tollbar_conn_zone_enter(ngx_tollbar_conn_zone_t *zone, ngx_str_t *key, ngx_uint_t limit, ngx_log_t *log,
                                      ngx_tollbar_conn_held_t *held);

/* Ends the counting of a request. A zone with `adaptive` learns from the sample. */
void ngx_tollbar_conn_zone_leave(ngx_tollbar_conn_held_t *held, const ngx_tollbar_sample_t *sample);

/* What a zone with `adaptive` has learned, for a status page. */
void ngx_tollbar_conn_zone_state(const ngx_tollbar_conn_zone_t *zone, ngx_tollbar_learned_state_t *state);

#endif
