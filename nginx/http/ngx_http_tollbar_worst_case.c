/* What the policy of a zone admits in the worst case: the most permits of one key in some window of
 * one period. nginx warns where the command `tollbar policy explain` does, in its words. */

#include "ngx_http_tollbar.h"

typedef ngx_http_tollbar_zone_t zone_t;

#define STRICT " algo sliding-window mode strict"

static ngx_flag_t is_stated(const tollbar_policy_spec *policy, uint64_t most);
static void warn(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone);
static const char *strict_of(const tollbar_policy_spec *policy, char *text, size_t capacity);

void ngx_http_tollbar_find_worst_case(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone)
{
    zone_t *zone = shm_zone->data;

    /* A tree has no policy, and a rate with variables has as many as it has values. The windows of a
     * calendar differ in length, and a quota has one for ever. */
    if (zone->tree != NULL || zone->rate != NULL || zone->policy.algorithm == TOLLBAR_ALGORITHM_QUOTA
        || zone->policy.algorithm == TOLLBAR_ALGORITHM_CALENDAR
        || tollbar_policy_spec_worst_case(&zone->policy, zone->policy.period_ns, &zone->worst_case) != 0)
    {
        zone->worst_case = 0;
        return;
    }
    /* nginx's `burst` counts the requests beyond the rate, so a `rate` always states the most. */
    if (!zone->paced && !is_stated(&zone->policy, zone->worst_case)) {
        warn(cf, shm_zone);
    }
}

/* Whether the policy's text says by its burst that it admits so many. A burst that is equal to the
 * limit is the default, so no text shows it. A pacer's slack is a burst. A warm-up may admit a
 * permit of its clock's unit more. */
static ngx_flag_t is_stated(const tollbar_policy_spec *policy, uint64_t most)
{
    uint64_t stated = policy->burst == policy->limit ? 0 : policy->burst;

    if (policy->algorithm == TOLLBAR_ALGORITHM_WARM_UP) {
        stated++;
    }
    return most <= policy->limit || most - policy->limit <= stated || most - policy->limit - stated <= policy->slack;
}

static void warn(ngx_conf_t *cf, ngx_shm_zone_t *shm_zone)
{
    zone_t *zone = shm_zone->data;
    const tollbar_policy_spec *policy = &zone->policy;
    const char *one = policy->unit == TOLLBAR_UNIT_BYTES ? "byte" : "permit";
    ngx_flag_t has_burst = policy->algorithm == TOLLBAR_ALGORITHM_GCRA && policy->second_limit == 0;
    char text[TOLLBAR_POLICY_TEXT_MAX] = "", strict[TOLLBAR_POLICY_TEXT_MAX + 128];
    uint64_t more = zone->worst_case - policy->limit;

    (void) tollbar_policy_spec_print(policy, text, sizeof(text), NULL);
    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "zone \"%V\" has the policy \"%s\", whose worst case is at most %uL %s%s in some window of one "
                  "period: that is %uL %s%s more than the limit, and no burst in the text says so.%s%s in %V:%ui",
                  &shm_zone->shm.name, text, zone->worst_case, one, zone->worst_case != 1 ? "s" : "", more, one,
                  more != 1 ? "s" : "", has_burst ? " A smaller \"burst\" lowers it." : "",
                  strict_of(policy, strict, sizeof(strict)), &zone->zone.where.file, zone->zone.where.line);
}

/* The sentence about the policy that never admits more. Empty if there is none. */
static const char *strict_of(const tollbar_policy_spec *policy, char *text, size_t capacity)
{
    tollbar_policy_spec rate = TOLLBAR_POLICY_SPEC_INIT, strict = TOLLBAR_POLICY_SPEC_INIT;
    char printed[TOLLBAR_POLICY_TEXT_MAX] = "", wanted[TOLLBAR_POLICY_TEXT_MAX + sizeof(STRICT)];
    u_char *end;

    rate.limit = rate.burst = policy->limit;
    rate.period_ns = policy->period_ns;
    if (tollbar_policy_spec_print(&rate, printed, sizeof(printed), NULL) != 0) {
        return "";
    }
    end = ngx_sprintf((u_char *) wanted, "%s" STRICT, printed);
    if (tollbar_policy_spec_parse(wanted, (size_t) (end - (u_char *) wanted), &strict, NULL) != 0) {
        return "";
    }
    *ngx_snprintf((u_char *) text, capacity - 1, " \"%*s\" never admits more than %uL %s%s in a window",
                  (size_t) (end - (u_char *) wanted), wanted, policy->limit,
                  policy->unit == TOLLBAR_UNIT_BYTES ? "byte" : "permit", policy->limit != 1 ? "s" : "") = '\0';
    return text;
}
