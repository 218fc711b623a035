/* tollbar_rules: a rules file (docs/rules.md) decides requests.
 *
 * The first tollbar_rules directive loads libtollbar-rules, so nginx without such a directive needs
 * no parser. The master opens the rules in shared memory before it forks. A reload of nginx first
 * reads the file without putting it in force, so that a fault refuses the whole configuration. Once
 * the configuration cannot fail any more, the master reloads the rules that are open, and these
 * keep the states of all keys. Old workers go on with the former rules, in the same memory.
 *
 *     the directive   ngx_http_tollbar_read_rules: opens the file, or checks it if it is open
 *     init_module     ngx_http_tollbar_rules_start: reloads what was open
 *     a request       ngx_http_tollbar_rules_handler
 *     its answer      ngx_http_tollbar_rules_log_handler
 */

#ifndef NGX_HTTP_TOLLBAR_RULES_H
#define NGX_HTTP_TOLLBAR_RULES_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <tollbar_rules.h>
#include "ngx_tollbar_conf.h"

/* The calls of libtollbar-rules, which ngx_http_tollbar_rules_load finds. */
typedef struct {
    __typeof__(tollbar_rules_open) *open;
    __typeof__(tollbar_rules_check) *check;
    __typeof__(tollbar_rules_settle) *settle;
    __typeof__(tollbar_rules_word_of_answers) *word_of_answers;
    __typeof__(tollbar_rules_reload) *reload;
    __typeof__(tollbar_rules_adopt) *adopt;
    __typeof__(tollbar_rules_metrics) *metrics;
    __typeof__(tollbar_rules_close) *close;
} ngx_http_tollbar_rules_calls_t;

extern ngx_http_tollbar_rules_calls_t ngx_http_tollbar_rules_calls;

/* Rules that are open. A configuration and its successor share them. */
typedef struct {
    tollbar_rules *rules;
    /* The number of configurations that use the rules. */
    ngx_uint_t uses;
} ngx_http_tollbar_opened_t;

/* A rules file in one configuration. */
typedef struct {
    ngx_tollbar_where_t where;
    ngx_str_t path;
    uint64_t keys;
    /* The segments or permits for which each key has room, or 0. */
    uint32_t room;
    ngx_http_tollbar_opened_t *opened;
    /* The words of answers that tell costs: of ngx_str_t. */
    ngx_array_t words;
    /* Limits the log lines about requests that the rules cannot decide. */
    ngx_tollbar_seldom_t failed;
    /* A former configuration has opened the rules, so they must be reloaded. */
    unsigned reloads:1;
} ngx_http_tollbar_rules_t;

/* A word of the server for `key = "field NAME"`, or of the answer for `cost = "answer NAME"`. */
typedef struct {
    /* The name with a colon before it, as libtollbar-rules wants it. */
    ngx_str_t name;
    ngx_http_complex_value_t value;
} ngx_http_tollbar_rules_field_t;

/* Loads libtollbar-rules once. It stays loaded, because its threads' memory belongs to it. Logs why
 * it cannot be loaded. */
ngx_int_t ngx_http_tollbar_rules_load(ngx_conf_t *cf);

/* Read directives. */
char *ngx_http_tollbar_read_rules(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_tollbar_read_rules_field(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Reloads the rules that a former configuration has opened. If one of these files has got a fault
 * since nginx checked it, its former rules stay in force, and the log says why. */
void ngx_http_tollbar_rules_start(ngx_array_t *all, ngx_log_t *log);

/* The handler of the preaccess phase. */
ngx_int_t ngx_http_tollbar_rules_handler(ngx_http_request_t *r);

/* Finds the words of answers that the rules of a level have. Refuses a level that has no
 * tollbar_rules_answer for one of them: each request would cost its estimate for ever. */
ngx_int_t ngx_http_tollbar_rules_find_words(ngx_conf_t *cf, ngx_http_tollbar_rules_t *rules, const tollbar_rules *opened);
ngx_int_t ngx_http_tollbar_rules_answers_check(ngx_conf_t *cf, const ngx_http_tollbar_rules_t *rules, const ngx_array_t *answers);

/* Keeps what an admitted request has taken, for the handler of the log phase, which settles it when
 * the answer is known. `fields` may be on the stack. */
ngx_int_t ngx_http_tollbar_rules_keep(ngx_http_request_t *r, ngx_http_tollbar_rules_t *rules, const ngx_array_t *answers,
                                      const tollbar_rules_field *fields, ngx_uint_t count, const tollbar_rules_answer *answer);
ngx_int_t ngx_http_tollbar_rules_log_handler(ngx_http_request_t *r);

#endif
