#include "daemon/analyses.h"

#include "analysis/analyses.h"
#include "config/analysis.h"
#include "config/apply.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LONG_NS UINT64_C(5000000000) /* at one B-scan: the log and the status say so */
/* An analysis is late when it skipped more than a tenth of what came while we did not look, and
 * until it skips less than a fiftieth. */
#define LOOK_NS UINT64_C(4000000000)
#define LATE_SHARE 0.1
#define IN_TIME_SHARE 0.02
#define TELL_EVERY_NS UINT64_C(600000000000)

static const struct oct_daemon_analysis *find_named(const struct oct_daemon_analyses *all,
                                                    const char *name)
{
    for (unsigned i = 0; i < all->n; i++)
        if (strcmp(all->analysis[i].ops->name, name) == 0)
            return &all->analysis[i];
    return NULL;
}

/* Adds an analysis unless it is among them, after the one whose results it takes in. */
static enum oct_err add_one(struct oct_daemon_analyses *all, const struct oct_analysis_ops *ops,
                            bool lends[OCT_N_LENT], struct oct_error *err)
{
    if (find_named(all, ops->name))
        return OCT_OK;
    if (ops->of && add_one(all, oct_analysis_find(ops->of), lends, err))
        return OCT_E_CONFIG;
    if (all->n == OCT_DAEMON_MOST_ANALYSES)
        return oct_fail_key(err, OCT_E_CONFIG, "analysis.run", "analysis.run: at most %u",
                            OCT_DAEMON_MOST_ANALYSES);
    all->analysis[all->n++].ops = ops;
    oct_stage_note_lent(ops->input, lends);
    return OCT_OK;
}

/* By live keys of another that is there, as `angiogram` by flow.enabled: until then it rests. */
static bool may_be_asked(const struct oct_daemon_analyses *all, const struct oct_analysis_ops *ops)
{
    return ops->is_asked && ops->settings_of && find_named(all, ops->settings_of);
}

bool oct_daemon_analyses_have(const struct oct_daemon_analyses *all, const char *name)
{
    for (unsigned i = 0; i < all->n_sources; i++)
        if (strcmp(all->sources[i].form->name, name) == 0)
            return true;
    return false;
}

const char *oct_daemon_analyses_refusal(const struct oct_daemon_analyses *all, const char *name)
{
    const struct oct_daemon_analysis *a = find_named(all, name);
    return a && !a->stage ? a->refused.text : NULL;
}

enum oct_err oct_daemon_analyses_find(struct oct_daemon_analyses *all,
                                      const struct oct_config *config, bool lends[OCT_N_LENT],
                                      struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    struct oct_error why;
    *all = (struct oct_daemon_analyses){.n = 0};
    for (const char *at = config->analysis.run; *at && !e;) {
        const struct oct_analysis_ops *ops;
        e = oct_config_analysis_next(&at, &ops, &why);
        e = e ? e : add_one(all, ops, lends, &why);
    }
    for (unsigned i = 0; i < oct_n_analyses && !e; i++) {
        const char *name = oct_analyses[i]->name;
        const bool is_asked =
            oct_config_analysis_is_asked(config, name) || may_be_asked(all, oct_analyses[i]);
        if (is_asked)
            e = add_one(all, oct_analyses[i], lends, &why);
    }
    return e ? oct_config_blame(config, &why, err) : OCT_OK;
}

static enum oct_err start_one(struct oct_daemon_analyses *all, unsigned i,
                              const struct oct_config *config, struct oct_pipeline *pipeline,
                              struct oct_workers *workers, struct oct_error *err)
{
    struct oct_daemon_analysis *a = &all->analysis[i];
    const struct oct_daemon_analysis *of = a->ops->of ? find_named(all, a->ops->of) : NULL;
    struct oct_image_source in = {.ring = NULL};
    struct oct_config_stage setup = {
        .ops = a->ops,
        .plan = oct_pipeline_plan(pipeline),
        .pipeline = pipeline,
        .workers = workers,
        .asker = i,
    };
    if (of && !of->stage)
        return oct_fail(err, of->refused.code, "%s", of->refused.text);
    if (of) {
        in = oct_stage_results(of->stage);
        setup.in = &in;
    }
    oct_config_analysis(config, a->ops->name, &a->settings);
    a->rests = oct_config_analysis_rests(config, a->ops->name);
    return oct_config_stage_create(&a->stage, config, &setup, err);
}

void oct_daemon_analyses_start(struct oct_daemon_analyses *all, const struct oct_config *config,
                               struct oct_pipeline *pipeline, struct oct_workers *workers)
{
    for (unsigned i = 0; i < all->n; i++) {
        struct oct_daemon_analysis *a = &all->analysis[i];
        if (start_one(all, i, config, pipeline, workers, &a->refused)) {
            oct_log(OCT_LOG_WARNING, "analysis %s does not run: %s", a->ops->name, a->refused.text);
            continue;
        }
        all->sources[all->n_sources] = oct_stage_results(a->stage);
        all->source_of[all->n_sources++] = i;
        if (!oct_config_records(config, a->ops->name))
            continue;
        all->recorded[all->n_recorded] = oct_stage_results(a->stage);
        all->recorded_of[all->n_recorded++] = i;
    }
}

bool oct_daemon_analyses_drain(struct oct_daemon_analyses *all)
{
    bool all_ended = true;
    for (unsigned i = 0; i < all->n; i++)
        if (all->analysis[i].stage)
            oct_stage_begin_drain(all->analysis[i].stage);
    for (unsigned i = 0; i < all->n; i++)
        if (all->analysis[i].stage)
            all_ended = oct_stage_drain(all->analysis[i].stage) && all_ended;
    return all_ended;
}

void oct_daemon_analyses_destroy(struct oct_daemon_analyses *all)
{
    for (unsigned i = all->n; i > 0; i--) /* readers of another's results first */
        oct_stage_destroy(all->analysis[i - 1].stage);
    *all = (struct oct_daemon_analyses){.n = 0};
}

/* Both come from oct_config_analysis, which sets every byte. */
static bool is_same(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct oct_analysis_settings)) == 0;
}

void oct_daemon_analyses_configure(struct oct_daemon_analyses *all, const struct oct_config *config)
{
    struct oct_analysis_settings settings;
    for (unsigned i = 0; i < all->n; i++) {
        struct oct_daemon_analysis *a = &all->analysis[i];
        const char *name = a->ops->name;
        const bool rests = oct_config_analysis_rests(config, name);
        if (!a->stage)
            continue;
        if (oct_config_analysis(config, name, &settings) && !is_same(&settings, &a->settings)) {
            memcpy(&a->settings, &settings, sizeof(settings));
            oct_stage_configure(a->stage, &settings);
        }
        if (rests != a->rests)
            oct_stage_rest(a->stage, rests);
        a->rests = rests;
    }
}

/* Says it once, and again only if it has gone on or come back for long. */
static void log_lag(const char *name, struct oct_daemon_lag *lag, uint64_t now_ns)
{
    if (lag->told_ns && now_ns - lag->told_ns < TELL_EVERY_NS)
        return;
    lag->told_ns = now_ns;
    oct_log(
        OCT_LOG_WARNING,
        "analysis %s does not follow: it skips %.0f %% of the B-scans, and takes %.1f ms for one; "
        "pictures and recordings go on. A lower rate, fewer analyses or more processors help",
        name, 100 * lag->late_share, lag->bscan_ms);
}

static void judge_lag(const char *name, struct oct_daemon_lag *lag,
                      const struct oct_stage_counts *now, uint64_t now_ns)
{
    const struct oct_stage_counts *before = &lag->counts;
    const double seen = (double)(now->seen - before->seen);
    const double done = (double)(now->done - before->done);
    const double late = (double)(now->skipped[OCT_STAGE_LATE] - before->skipped[OCT_STAGE_LATE]);
    const bool is_first = lag->looked_ns == 0;
    if (!is_first && now_ns - lag->looked_ns < LOOK_NS)
        return;
    lag->looked_ns = now_ns;
    lag->late_share = seen > 0 ? late / seen : NAN;
    lag->bscan_ms = done > 0 ? (double)(now->work_ns - before->work_ns) * 1e-6 / done : NAN;
    lag->counts = *now;
    lag->is_late = !is_first && lag->late_share > (lag->is_late ? IN_TIME_SHARE : LATE_SHARE);
    if (lag->is_late)
        log_lag(name, lag, now_ns);
}

void oct_daemon_analyses_look(struct oct_daemon_analyses *all)
{
    const uint64_t now_ns = oct_clock_ns();
    for (unsigned i = 0; i < all->n; i++) {
        struct oct_daemon_analysis *a = &all->analysis[i];
        struct oct_stage_counts counts = {.busy_ns = 0};
        if (a->stage)
            oct_stage_count(a->stage, &counts);
        bool is_long = counts.busy_ns > LONG_NS;
        if (is_long && !a->told)
            oct_log(
                OCT_LOG_WARNING,
                "analysis %s has been at work at one B-scan for %.0f s and skips all that come; "
                "pictures and recordings go on",
                a->ops->name, (double)counts.busy_ns * 1e-9);
        a->told = is_long;
        if (a->stage)
            judge_lag(a->ops->name, &a->lag, &counts, now_ns);
    }
}

bool oct_daemon_analyses_are_degraded(const struct oct_daemon_analyses *all)
{
    for (unsigned i = 0; i < all->n; i++) {
        struct oct_stage_counts counts;
        if (!all->analysis[i].stage)
            return true;
        oct_stage_count(all->analysis[i].stage, &counts);
        if (counts.failing || counts.busy_ns > LONG_NS)
            return true;
    }
    return false;
}

bool oct_daemon_analyses_are_late(const struct oct_daemon_analyses *all)
{
    for (unsigned i = 0; i < all->n; i++)
        if (all->analysis[i].lag.is_late)
            return true;
    return false;
}
