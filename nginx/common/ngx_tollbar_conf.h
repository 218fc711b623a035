/* Parsing and messages of all modules' directives.
 *
 * A message about the configuration has the file, the line, what was found and what is expected.
 * ngx_conf_log_error appends the line that nginx reads at that moment. For faults that show only
 * after the whole configuration has been
 * read, a module stores the directive's line (ngx_tollbar_where_t). */

#ifndef NGX_TOLLBAR_CONF_H
#define NGX_TOLLBAR_CONF_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar.h>

/* The expectation in messages about numbers that ngx_atoi reads. */
#define NGX_TOLLBAR_CONF_COUNT "it must be a whole number from 1 to 9223372036854775807"

/* Where a directive stands. */
typedef struct {
    ngx_str_t file;
    ngx_uint_t line;
} ngx_tollbar_where_t;

/* The beginning of each module's struct for a limit: a directive such as `tollbar zone=one`. */
typedef struct {
    ngx_shm_zone_t *shm_zone;
    ngx_tollbar_where_t where;
} ngx_tollbar_limit_t;

/* The line that nginx is reading. */
ngx_tollbar_where_t ngx_tollbar_conf_here(ngx_conf_t *cf);

/* Logs a message about the directive at `where`, after nginx has read past it. */
void ngx_tollbar_conf_late(ngx_conf_t *cf, const ngx_tollbar_where_t *where, const char *format, ...);

/* Logs a message about `argument`, which replaces the "%V" in `message`, and refuses the
 * configuration. */
char *ngx_tollbar_conf_refuse(ngx_conf_t *cf, const char *message, ngx_str_t *argument);

/* Setters for ngx_command_t. The first sets a field to one of the words of `post`, an array of
 * ngx_conf_enum_t. The second sets the status of a refusal. Their messages list the valid
 * values. */
char *ngx_tollbar_conf_set_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_tollbar_conf_set_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* The words of the directives for log levels. */
extern ngx_conf_enum_t ngx_tollbar_conf_log_levels[];

/* Parses the status of a refusal. NGX_ERROR: it is not a number from 400 to 599. */
ngx_int_t ngx_tollbar_conf_status(ngx_str_t *text);

/* Finds the limit's zone, declared or not. Its name is `argument` without its first `prefix`
 * bytes. */
char *ngx_tollbar_conf_find_zone(ngx_conf_t *cf, ngx_str_t *argument, size_t prefix, void *tag,
                                 ngx_tollbar_limit_t *limit);

/* Appends a pointer to an array of pointers. An array that is all zero bytes is initialised. */
char *ngx_tollbar_conf_push(ngx_conf_t *cf, ngx_array_t *array, void *pointer);

/* Appends the limit to `level`, the limits of its level, and to `all`, the limits of the
 * configuration. Both hold pointers. Refuses a limit without a zone, and a second limit of a zone
 * on a level. */
char *ngx_tollbar_conf_add_limit(ngx_conf_t *cf, ngx_tollbar_limit_t *limit, ngx_array_t *level,
                                 ngx_array_t *all);

/* Called after all directives have been read. Checks that the zone of the limit is declared. */
ngx_int_t ngx_tollbar_conf_declared(ngx_conf_t *cf, const ngx_tollbar_limit_t *limit,
                                    const char *directive);

/* Refuses a zone that another directive, at `where`, has bound to the key `keys`. */
char *ngx_tollbar_conf_bound(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *keys,
                             const ngx_tollbar_where_t *where);

/* Reads zone=NAME:SIZE. */
char *ngx_tollbar_conf_zone(ngx_conf_t *cf, ngx_str_t *argument, ngx_str_t *name, size_t *size);

/* Reads hot_keys=N. */
char *ngx_tollbar_conf_hot_keys(ngx_conf_t *cf, ngx_str_t *argument, uint32_t *keys);

/* Reads room=N. */
char *ngx_tollbar_conf_room(ngx_conf_t *cf, ngx_str_t *argument, uint32_t *room);

/* Reads on_full=WORD. */
char *ngx_tollbar_conf_on_full(ngx_conf_t *cf, ngx_str_t *argument, ngx_uint_t *on_full);

/* Reads a parameter `name`=N, where N is at least 1. */
char *ngx_tollbar_conf_count(ngx_conf_t *cf, ngx_str_t *argument, const char *name,
                             ngx_int_t *number);

/* Reads rate=RATE. */
char *ngx_tollbar_conf_rate(ngx_conf_t *cf, ngx_str_t *argument, tollbar_policy_spec *policy);

/* Parses N[.N] ["r/" [N] UNIT], where UNIT is ms, s, m, min, h or d. Without UNIT it is a second.
 * Returns NULL, or for a message what is expected. */
const char *ngx_tollbar_rate_parse(ngx_str_t *text, tollbar_policy_spec *policy);

/* Raises the policy's burst to that of the limit. If no table can hold the policy then, logs the
 * largest burst that one can hold. */
ngx_int_t ngx_tollbar_conf_raise_burst(ngx_conf_t *cf, const ngx_tollbar_limit_t *limit,
                                       const char *directive, tollbar_policy_spec *policy,
                                       uint64_t burst);

/* Nanoseconds in which the policy refills so many permits, at most INT64_MAX. */
uint64_t ngx_tollbar_time_of(const tollbar_policy_spec *policy, uint64_t permits);

/* A key's debt without `own` permits, in thousandths of a permit. nginx's documentation calls it
 * `excess`. */
ngx_uint_t ngx_tollbar_excess(const tollbar_policy_spec *policy, uint64_t debt_ns, uint64_t own);

/* The delay of a request whose key has this debt, rounded to the nearest millisecond, which nginx's
 * timers count. `undelayed` is the largest debt without a delay. */
static ngx_inline ngx_msec_t ngx_tollbar_wait(uint64_t debt_ns, uint64_t undelayed_ns)
{
    return debt_ns > undelayed_ns ? (ngx_msec_t) ((debt_ns - undelayed_ns + 500000) / 1000000) : 0;
}

/* Limits the log lines of one kind of fault that could log a line with every request. Each kind has
 * a record of its own, so that a fault that clients can cause does not keep another one out of the
 * log. */
typedef struct {
    time_t second;
    ngx_uint_t left_out;
    u_char text[48];
} ngx_tollbar_seldom_t;

/* Whether to log the message now. A process logs at most one line of the kind a second, and counts
 * the others. The caller appends `text` to the line. If lines were left out since the last one,
 * `text` has their number, and otherwise it is empty. */
ngx_flag_t ngx_tollbar_seldom(ngx_tollbar_seldom_t *message);

#endif
