/* Limits that learn from latencies how many requests a server sustains: `adaptive` of a zone of
 * tollbar_conn. This code uses neither http nor stream.
 *
 * A zone learns one limit. The limit is in the zone's memory, behind the in-flight table, so all
 * workers learn it together. The table counts the requests, so those of a killed worker stop
 * counting. */

#ifndef NGX_TOLLBAR_ADAPTIVE_H
#define NGX_TOLLBAR_ADAPTIVE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar.h>
#include "ngx_tollbar_conf.h"

/* The parameters of a zone. A field of 0 has not been given. */
typedef struct {
    /* Whether the zone learns. */
    ngx_flag_t on;
    /* A TOLLBAR_ADAPTIVE_ number. */
    uint32_t algorithm;
    uint32_t initial;
    uint32_t least;
    uint32_t most;
    uint64_t timeout_ns;
} ngx_tollbar_adaptive_t;

/* What a zone has learned, in shared memory. */
typedef struct ngx_tollbar_learned_s ngx_tollbar_learned_t;

/* The numbers of TOLLBAR_OUTCOME_. */
#define NGX_TOLLBAR_ANSWERED 0
#define NGX_TOLLBAR_DROPPED 1
#define NGX_TOLLBAR_IGNORED 2

/* What a request says about the server. */
typedef struct {
    uint32_t outcome;
    uint64_t latency_ns;
} ngx_tollbar_sample_t;

/* The numbers of a status page. */
typedef struct {
    uint64_t limit;
    uint64_t in_flight;
    uint64_t latency_ns;
    uint64_t allowed;
    uint64_t denied;
} ngx_tollbar_learned_state_t;

/* The table and the key that count the requests of a zone. */
typedef struct {
    const tollbar_in_flight *table;
    const u_char *key;
    size_t length;
} ngx_tollbar_counted_t;

/* Reads adaptive, adaptive=WORD, initial=N, least=N, most=N or timeout=TIME. NGX_DECLINED: the
 * argument is none of these. */
ngx_int_t ngx_tollbar_adaptive_read(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_adaptive_t *adaptive);

/* Gives the parameters their defaults, and checks them against each other. */
char *ngx_tollbar_adaptive_check(ngx_conf_t *cf, ngx_str_t *name, ngx_tollbar_adaptive_t *adaptive);

/* The bytes that a zone needs behind its table. 0: the zone does not learn. */
size_t ngx_tollbar_adaptive_bytes(const ngx_tollbar_adaptive_t *adaptive);

/* Begins to learn in the memory of a new zone. */
void ngx_tollbar_adaptive_make(ngx_tollbar_learned_t *learned, const ngx_tollbar_adaptive_t *adaptive);

/* tollbar_in_flight_acquire with the limit that the zone has learned. Counts admissions and
 * refusals. */
int32_t ngx_tollbar_adaptive_acquire(ngx_tollbar_learned_t *learned, const ngx_tollbar_counted_t *counted,
                                     tollbar_ticket *ticket);

/* tollbar_in_flight_release. The zone learns from the sample. */
void ngx_tollbar_adaptive_release(ngx_tollbar_learned_t *learned, const ngx_tollbar_counted_t *counted,
                                  tollbar_ticket ticket, const ngx_tollbar_sample_t *sample);

void ngx_tollbar_adaptive_state(const ngx_tollbar_learned_t *learned, const ngx_tollbar_counted_t *counted,
                                ngx_tollbar_learned_state_t *state);

#endif
