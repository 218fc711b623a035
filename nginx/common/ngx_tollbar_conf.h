/* What directives of all modules have in common.
 *
 * A message about the configuration says what was found, what is expected, and in which line of which file. nginx adds the line that
 * it reads to what ngx_conf_log_error is told; for faults that show only when all of the configuration is known, a module keeps the
 * directive's line (ngx_tollbar_where_t). */

#ifndef NGX_TOLLBAR_CONF_H
#define NGX_TOLLBAR_CONF_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar.h>

/* What messages say of numbers that ngx_atoi reads. */
#define NGX_TOLLBAR_CONF_COUNT "it must be a whole number from 1 to 9223372036854775807"
#define NGX_TOLLBAR_CONF_ON_FULL "it must be evict-nearest, inherit, allow or deny"

/* Where a directive stands. */
typedef struct {
    ngx_str_t file;
    ngx_uint_t line;
} ngx_tollbar_where_t;

/* The line that nginx reads. */
ngx_tollbar_where_t ngx_tollbar_conf_here(ngx_conf_t *cf);

/* Logs what is wrong with the directive at `where`, found after its line was read. */
void ngx_tollbar_conf_late(ngx_conf_t *cf, const ngx_tollbar_where_t *where, const char *format, ...);

/* Logs a message with one "%V", and refuses the configuration. */
char *ngx_tollbar_conf_refuse(ngx_conf_t *cf, const char *message, ngx_str_t *argument);

/* For ngx_command_t: a field that has one of the words of `post`, an array of ngx_conf_enum_t; of the words of a log level; and a
 * status code of a refusal. Their messages list what may stand there. */
char *ngx_tollbar_conf_set_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_tollbar_conf_set_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* The words of a directive that says how loudly refusals are logged. */
extern ngx_conf_enum_t ngx_tollbar_conf_log_levels[];

/* NGX_ERROR: it is no status code that a refusal may have. */
ngx_int_t ngx_tollbar_conf_status(ngx_str_t *text);

/* Logs that a level limits the zone already, at `where`. */
char *ngx_tollbar_conf_duplicate(ngx_conf_t *cf, const ngx_tollbar_where_t *where, ngx_str_t *zone);

/* The zone whose name begins at that byte of `argument`, declared or not. NULL where it has been logged why not. */
ngx_shm_zone_t *ngx_tollbar_conf_find_zone(ngx_conf_t *cf, ngx_str_t *argument, size_t prefix, void *tag);

/* Reads zone=NAME:SIZE. */
char *ngx_tollbar_conf_zone(ngx_conf_t *cf, ngx_str_t *argument, ngx_str_t *name, size_t *size);

/* Reads hot_keys=N. */
char *ngx_tollbar_conf_hot_keys(ngx_conf_t *cf, ngx_str_t *argument, uint32_t *keys);

/* Reads the value of on_full. NGX_ERROR: it is no word that may stand there. */
ngx_int_t ngx_tollbar_conf_on_full(const u_char *word);

/* Reads N[.N] ["r/" [N] UNIT], where the unit is ms, s, m, min, h or d; without it, a second. NULL, or what is expected. */
const char *ngx_tollbar_rate_parse(ngx_str_t *text, tollbar_policy_spec *policy);

/* Whether a table can hold the policy with this burst. If not, logs the largest burst that it can hold. */
ngx_int_t ngx_tollbar_conf_check_burst(ngx_conf_t *cf, const ngx_tollbar_where_t *where, const char *directive,
                                       const tollbar_policy_spec *policy, uint64_t burst, ngx_str_t *zone);

/* Nanoseconds in which so many permits are paid for, cut to what a timer could ever be told. */
uint64_t ngx_tollbar_time_of(const tollbar_policy_spec *policy, uint64_t permits);

/* One kind of message that a fault could bring with every request. Each kind has a record of its own: one that clients can bring about at
 * will must not keep others out of the log. */
typedef struct {
    time_t second;
    ngx_uint_t left_out;
    u_char text[48];
} ngx_tollbar_seldom_t;

/* Whether the message may be logged now: this process logs one in a second, and counts the others. Then `text` is what is to stand at
 * its end: empty, or how many were left out since the last one. */
ngx_flag_t ngx_tollbar_seldom(ngx_tollbar_seldom_t *message);

#endif
