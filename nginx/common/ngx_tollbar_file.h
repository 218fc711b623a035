/* A zone whose table is in a file, which other programs use at the same time.
 *
 * The master opens the file when nginx has read the configuration, and the workers inherit its
 * view. nginx's own shared memory for such a zone is a placeholder, because nginx finds a zone by
 * that memory. It holds nothing.
 *
 * The table's states belong to the file, so they outlive reloads, new binaries and nginx itself.
 *
 * If nginx makes the file, it gives it the policies of all zones that name it, of http and stream.
 *
 *     a start     uses the policy of the table that equals the zone's. Without one nginx refuses
 *                 the configuration: another program's limit must not change because nginx starts.
 *     a reload    with another policy than the running configuration's changes the table's policy,
 *                 once the reload cannot fail any more.
 *     nginx -t    opens an existing file, makes none, and changes nothing.
 */

#ifndef NGX_TOLLBAR_FILE_H
#define NGX_TOLLBAR_FILE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include "ngx_tollbar_zone.h"

/* Whether the directive that nginx is reading has the parameter `file`. */
ngx_flag_t ngx_tollbar_file_given(ngx_conf_t *cf);

/* Reads zone=NAME of such a directive, and sets `size` to that of the placeholder. */
char *ngx_tollbar_file_name(ngx_conf_t *cf, ngx_str_t *argument, ngx_str_t *name, size_t *size);

/* Reads file=PATH, capacity=N, mode=OCTAL or trust_anyone. NGX_DECLINED: it is none of these. */
ngx_int_t ngx_tollbar_file_read(ngx_conf_t *cf, ngx_str_t *argument, ngx_tollbar_zone_t *zone);

/* Checks the parameters against each other, and gives `on_full` its default. */
char *ngx_tollbar_file_check(ngx_conf_t *cf, ngx_str_t *name, ngx_tollbar_zone_t *zone);

/* The zone's `init`: opens the file. */
ngx_int_t ngx_tollbar_file_init(ngx_shm_zone_t *shm_zone, void *data);

/* Changes the table's policy if ngx_tollbar_file_init has found that the reload changes it. */
void ngx_tollbar_file_start(ngx_shm_zone_t *shm_zone, ngx_log_t *log);

#endif
