/* What directives of all modules have in common. */

#ifndef NGX_TOLLBAR_CONF_H
#define NGX_TOLLBAR_CONF_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <tollbar.h>

/* The words of a directive that says how loudly refusals are logged, and the status codes that they may have. */
extern ngx_conf_enum_t ngx_tollbar_conf_log_levels[];
extern ngx_conf_num_bounds_t ngx_tollbar_conf_status_bounds;

/* Tells what is wrong with the configuration, in a message with one "%V". */
char *ngx_tollbar_conf_refuse(ngx_conf_t *cf, const char *message, ngx_str_t *argument);

/* Reads zone=NAME:SIZE. */
char *ngx_tollbar_conf_zone(ngx_conf_t *cf, ngx_str_t *argument, ngx_str_t *name, size_t *size);

/* Reads N[.N] ["r/" [N] UNIT], where the unit is ms, s, m, min, h or d; without it, a second. NGX_ERROR: it is no rate, or
 * one that no table can count. */
ngx_int_t ngx_tollbar_rate_parse(ngx_str_t *text, tollbar_policy_spec *policy);

/* Nanoseconds in which so many permits are paid for, cut to what a timer could ever be told. */
uint64_t ngx_tollbar_time_of(const tollbar_policy_spec *policy, uint64_t permits);

#endif
