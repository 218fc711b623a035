/* Limits on the rate of requests or connections: the directives of limit_req and of the module for
 * stream, and the decision. This code uses neither http nor stream. Its comments say request for
 * both.
 *
 * A zone's table has one policy: gcra with the zone's rate and with the largest burst that any
 * limit has for the zone, plus one permit, because a burst of N is N requests beyond the one that
 * the rate always allows. A key's state is the time at which its debt ends, and does not depend on
 * the burst. So limits with a smaller burst use the same state: they compare the debt with their
 * own burst. */

#ifndef NGX_TOLLBAR_RATE_LIMIT_H
#define NGX_TOLLBAR_RATE_LIMIT_H

#include <ngx_config.h>
#include <ngx_core.h>
#include "ngx_tollbar_conf.h"
#include "ngx_tollbar_several.h"
#include "ngx_tollbar_variables.h"
#include "ngx_tollbar_zone.h"

/* A module puts this first in a struct that also has the zone's compiled key. */
typedef struct {
    ngx_tollbar_zone_t zone;
    tollbar_policy_spec policy;
} ngx_tollbar_rate_zone_t;

typedef struct {
    ngx_tollbar_limit_t base;
    /* The number of requests above the rate that are admitted. */
    ngx_int_t burst;
    /* The number of requests above the rate that are not delayed. With `nodelay`
     * NGX_MAX_INT_T_VALUE. */
    ngx_int_t delay;

    /* The module computes the following fields after all directives have been read. */
    ngx_tollbar_rate_zone_t *zone;
    /* Nanoseconds: the largest debt that a key may have before the charge, if the limit admits the
     * request. */
    uint64_t debt_most;
    /* Nanoseconds: the largest debt that a key may have after the limit has admitted and charged a
     * request. */
    uint64_t debt_after;
    /* Nanoseconds: the largest debt that a key may have after the charge, if the module does not
     * delay the request. */
    uint64_t debt_undelayed;
    /* Another limit of the zone has a larger burst, so the table admits more than this limit
     * does. */
    unsigned narrow:1;
    /* The limit may admit a request and delay it. */
    unsigned delays:1;
} ngx_tollbar_rate_limit_t;

/* A level of the configuration. */
typedef struct {
    ngx_array_t limits; /* of ngx_tollbar_rate_limit_t * */
    /* The limits' indices in the order in which they are charged. */
    ngx_uint_t *order;
    ngx_uint_t status_code;
    ngx_uint_t limit_log_level;
    ngx_uint_t delay_log_level;
    ngx_flag_t dry_run;
} ngx_tollbar_rate_conf_t;

/* Every limit and zone of the configuration, from all levels. */
typedef struct {
    ngx_array_t limits; /* of ngx_tollbar_rate_limit_t * */
    ngx_array_t zones;  /* of ngx_shm_zone_t * */
    ngx_array_t confs;  /* of ngx_tollbar_rate_conf_t *, of levels with limits */
} ngx_tollbar_rate_main_conf_t;

/* One limit's part in one request. A request has an array of them, in the order of the level's
 * limits. */
typedef struct {
    ngx_tollbar_rate_limit_t *limit;
    /* Empty: the limit does not apply to the request. */
    ngx_str_t key;
    /* The time of the peek and of the charge, by the table's clock. */
    uint64_t now;
    /* Nanoseconds: the key's debt. It includes the request if the limit admits it. 0 after a
     * charge: no delay. */
    uint64_t debt;
} ngx_tollbar_rate_charge_t;

/* Create and merge configurations. `status` is the status of a refusal that no directive sets. */
void *ngx_tollbar_rate_create_main_conf(ngx_conf_t *cf);
void *ngx_tollbar_rate_create_conf(ngx_conf_t *cf);
char *ngx_tollbar_rate_merge_conf(ngx_conf_t *cf, ngx_tollbar_rate_main_conf_t *main,
                                  ngx_tollbar_rate_conf_t *from, ngx_tollbar_rate_conf_t *conf,
                                  ngx_uint_t status);

/* Adds a zone with the policy that the module has read. If `size` is too small for a table, the
 * zone gets the smallest size that is not, so that configurations of nginx's own module stay
 * valid. */
char *ngx_tollbar_rate_add_zone(ngx_conf_t *cf, ngx_str_t *name, size_t size, void *tag,
                                ngx_tollbar_rate_zone_t *zone, ngx_tollbar_rate_main_conf_t *main);

/* Reads `zone=NAME [burst=N] [nodelay|delay=N]`. */
char *ngx_tollbar_rate_read_limit(ngx_conf_t *cf, void *tag, ngx_tollbar_rate_conf_t *conf,
                                  ngx_tollbar_rate_main_conf_t *main);

/* Called after all directives have been read, so each zone's largest burst is known. */
ngx_int_t ngx_tollbar_rate_complete(ngx_conf_t *cf, ngx_tollbar_rate_main_conf_t *main,
                                    const char *directive);

/* The functions below return a result of ngx_tollbar_several.h, except the last two. */

/* Logs that the limit's zone returned an error. */
ngx_int_t ngx_tollbar_rate_failed(const ngx_tollbar_rate_charge_t *charge, int32_t error,
                                  ngx_log_t *log);

/* Reads the time of the peek and of the charge. */
static ngx_inline ngx_int_t ngx_tollbar_rate_read_clock(ngx_tollbar_rate_charge_t *charge,
                                                        ngx_log_t *log)
{
    int32_t error = tollbar_table_now(charge->limit->zone->zone.table, &charge->now);

    return error == 0 ? NGX_OK : ngx_tollbar_rate_failed(charge, error, log);
}

/* Peeks whether the limit would admit the request, and charges nothing. */
ngx_int_t ngx_tollbar_rate_peek(ngx_tollbar_rate_charge_t *charge, ngx_log_t *log);

/* Charges a limit that needs the key's debt: one that may delay, or one with a smaller burst than
 * the table's. */
ngx_int_t ngx_tollbar_rate_take_in_full(ngx_tollbar_rate_charge_t *charge, ngx_log_t *log);

/* Charges all limits of the level that apply, or none. `*refused` is the limit that does not admit
 * the request. */
ngx_int_t ngx_tollbar_rate_take_all(const ngx_tollbar_rate_conf_t *conf,
                                    ngx_tollbar_rate_charge_t *charges, ngx_log_t *log,
                                    ngx_tollbar_rate_charge_t **refused);

/* Finds the debt of a request that the table refused, for the log line. */
ngx_int_t ngx_tollbar_rate_refused(ngx_tollbar_rate_charge_t *charge, int32_t verdict,
                                   ngx_log_t *log);

/* The delay of a request that was charged. */
static ngx_inline ngx_msec_t ngx_tollbar_rate_wait(const ngx_tollbar_rate_charge_t *charge)
{
    return ngx_tollbar_wait(charge->debt, charge->limit->debt_undelayed);
}

/* The status of a request with the result `rc`, one of ngx_tollbar_variables.h, with a line in the
 * log if the request is delayed or refused. `charge` is the limit that delays or refuses it. `one`
 * and `many` name what the module limits in the lines about a delay and about a refusal. */
ngx_uint_t ngx_tollbar_rate_status(const ngx_tollbar_rate_conf_t *conf, ngx_int_t rc,
                                   const ngx_tollbar_rate_charge_t *charge, const char *one,
                                   const char *many, ngx_log_t *log);

#endif
