/* The analyses that run beside the stream (analysis.run): one stage each on the image ring.
 *
 * An analysis that does not start leaves pictures and recordings alone: the log and the status say
 * why. Created and destroyed with the session; the rest is for the main thread. */
#ifndef OCT_DAEMON_ANALYSES_H
#define OCT_DAEMON_ANALYSES_H

#include "analysis/analyses.h"
#include "config/analysis.h"
#include "config/config.h"

#define OCT_DAEMON_MOST_ANALYSES 16u

/* Whether an analysis follows, judged every few seconds. */
struct oct_daemon_lag {
    uint64_t looked_ns, told_ns;    /* 0: never */
    struct oct_stage_counts counts; /* at that look */
    bool is_late;                   /* it skips B-scans because others have come meanwhile */
    double late_share, bscan_ms;    /* of the B-scans that came to it; at work at each; NaN: none */
};

struct oct_daemon_analysis {
    const struct oct_analysis_ops *ops;
    struct oct_stage *stage;               /* NULL: it did not start */
    struct oct_error refused;              /* why */
    struct oct_analysis_settings settings; /* as given to the stage last */
    bool rests;                            /* likewise */
    bool told;                             /* that it has been at work at one B-scan for long */
    struct oct_daemon_lag lag;
};

struct oct_daemon_analyses {
    unsigned n;
    struct oct_daemon_analysis
        analysis[OCT_DAEMON_MOST_ANALYSES]; /* in the order of analysis.run, each after the one
                                               whose results it takes in; last those that are not in
                                               the list and that their own keys ask for */
    unsigned n_sources;
    struct oct_image_source sources[OCT_DAEMON_MOST_ANALYSES]; /* of those that started */
    unsigned source_of[OCT_DAEMON_MOST_ANALYSES];              /* index into analysis */
    unsigned n_recorded;
    struct oct_image_source recorded[OCT_DAEMON_MOST_ANALYSES]; /* of sources: into recordings */
    unsigned recorded_of[OCT_DAEMON_MOST_ANALYSES];             /* index into analysis */
};

/* Whether an analysis of that name is among them and started. */
bool oct_daemon_analyses_have(const struct oct_daemon_analyses *analyses, const char *name);

/* Why the analysis of that name did not start, as it said; valid as long as the analyses are. NULL:
 * it did, or it is not among them. */
const char *oct_daemon_analyses_refusal(const struct oct_daemon_analyses *analyses,
                                        const char *name);

/* Finds the names. OCT_E_CONFIG: there is no such analysis. lends: notes what the
 * pipeline has to lend to them. */
enum oct_err oct_daemon_analyses_find(struct oct_daemon_analyses *analyses,
                                      const struct oct_config *config, bool lends[OCT_N_LENT],
                                      struct oct_error *err);

/* Starts them. */
void oct_daemon_analyses_start(struct oct_daemon_analyses *analyses,
                               const struct oct_config *config, struct oct_pipeline *pipeline,
                               struct oct_workers *workers);

/* The image ring is closed. Their results are closed afterwards. False: one was left to itself and
 * may go on using the worker pool. */
bool oct_daemon_analyses_drain(struct oct_daemon_analyses *analyses);

/* Readers of their results are gone. */
void oct_daemon_analyses_destroy(struct oct_daemon_analyses *analyses);

/* Hands changed settings to the analyses that they are of, and pauses or resumes those whose
 * settings say so. An analysis itself decides what it starts again because of them. */
void oct_daemon_analyses_configure(struct oct_daemon_analyses *analyses,
                                   const struct oct_config *config);

/* Logs one that has been at work at one B-scan for long, and one that does not follow. */
void oct_daemon_analyses_look(struct oct_daemon_analyses *analyses);

/* One of them does not run, hangs, or failed at its newest B-scan. */
bool oct_daemon_analyses_are_degraded(const struct oct_daemon_analyses *analyses);

/* One of them does not follow. */
bool oct_daemon_analyses_are_late(const struct oct_daemon_analyses *analyses);

#endif
