/* The analysis contract: what every analysis is, live and offline, on the CPU and on a GPU.
 *
 *     create -> { push -> take ... take | end -> take ... take | configure | reset } -> destroy
 *
 * An analysis is a table and an opaque state. It takes B-scans one at a time, in the order of the
 * acquisition but perhaps with some left out (info.number shows it), and makes images: one a B-scan
 * or one a volume, of the one form that create returns. Its name is the name of its topic, its
 * dataset (/analysis/NAME) and its row in the status.
 *
 * Threads: one call at a time, all from one thread (but create and destroy, which the owner may
 * call elsewhere while that thread does not run). push may take as long as it takes: live, its
 * stage skips what comes meanwhile (pipeline/flow/stage.h).
 * Loans: push borrows the B-scan until it returns; take fills memory of the caller's.
 * States: after an error of push or take the analysis goes on with the next B-scan, except after
 * OCT_E_BACKEND: only destroy is legal.
 * A GPU is the business of an analysis' own engine, which fails over (kernels/device/twin.h). */
#ifndef OCT_ANALYSIS_ANALYSIS_H
#define OCT_ANALYSIS_ANALYSIS_H

#include "analysis/param.h"
#include "pipeline/flow/image.h"
#include "pipeline/flow/stage.h"

struct oct_enface_settings;
struct oct_flow_settings;
struct oct_plan;
struct oct_workers;

struct oct_analysis_setup {
    const struct oct_image_form *input; /* of the B-scans pushed; values: the same as f32. Of an
                                           analysis of another's results: of these (to check: of
                                           B-scans) */
    uint32_t n_bscans;                  /* V: B-scans a volume */
    struct oct_spacing spacing;
    struct oct_scan_protocol scan;
    const struct oct_plan *plan; /* of the B-scans, as long as create runs; NULL: unknown */
    double line_rate_hz;         /* 0: unknown */
    bool live;                   /* else every B-scan comes, and only what is whole is wanted */
    /* The B-scans of a group stay as they are until its last has been pushed, or, if that does not
     * come, the first of the next. */
    bool keeps_groups;
    const void *settings;        /* ops->settings_bytes; copied */
    struct oct_workers *workers; /* the process's pool (kernels/device/workers.h); NULL: one's own
                                    thread alone */
    const char *gpus;            /* as pipeline.gpus */
    unsigned deadline_ms;        /* of a GPU; 0: 2000 */
};

/* What of a session settings follow from, beside keys of their own. */
struct oct_analysis_session {
    struct oct_scan_protocol scan;
    uint32_t crop_first; /* depth pixels between zero delay and the picture's first one */
    double refractive_index;
    bool cpu;                                 /* no GPU is wanted */
    const struct oct_enface_settings *enface; /* of the analysis `enface` */
    const struct oct_flow_settings *flow;     /* of the analysis `flow` */
};

#define OCT_ANALYSIS_MOST_SETTINGS 1024u /* bytes of them */

struct oct_analysis_ops {
    const char *name;    /* "enface" */
    const char *backend; /* "cpu", "cuda" */
    const char *meaning; /* one line, for help and documents */
    enum oct_stage_input input;
    /* The analysis whose results it takes in, pixels and what lies beside them, instead of B-scans:
     * that one runs wherever this does. NULL: none. */
    const char *of;
    size_t
        settings_bytes; /* OCT_ANALYSIS_MOST_SETTINGS at most; all bytes of equal ones are equal */

    /* Its keys: tables of its settings' rows, and where in the settings those of a table begin.
     * They are the section [NAME], of which octd.ini says `section`; where that is NULL they stand
     * in [analysis], and begin with NAME_. Two mean the same for all (config/analysis.h): `enabled`
     * and `record`. */
    struct {
        const struct oct_params *params;
        size_t at;
    } keys[2];
    const char *section;
    const char *settings_of; /* the analysis whose settings and keys are its own too; NULL: none */
    void (*init)(void *settings); /* what has no row, before the defaults; NULL: 0 */
    /* Fills in what follows from the session; NULL: nothing does. */
    void (*join)(void *settings, const struct oct_analysis_session *session);
    /* What its keys' ranges do not say, by input, n_bscans and spacing alone; NULL: nothing.
     * OCT_E_CONFIG. */
    enum oct_err (*check)(const void *settings, const struct oct_analysis_setup *setup,
                          struct oct_error *err);
    /* Whether keys other than NAME.enabled ask for it, so that it runs though analysis.run does not
     * name it; NULL: none does. */
    bool (*is_asked)(const void *settings);

    bool wants_groups;    /* live: setup.keeps_groups, where groups are small */
    unsigned most_behind; /* live: with more B-scans waiting it skips to the newest, where results
                             are of groups it leaves out the next group; 0: with half of the image
                             ring, of groups with a quarter */
    unsigned (*most_behind_of)(const void *settings); /* the same where it depends on settings, as
                                                         given to create; NULL: most_behind */

    /* *analysis is NULL on error. Fills the form of its results. OCT_E_CONFIG: settings or sizes
     * that cannot be; OCT_E_BACKEND: no device; OCT_E_NO_MEMORY. */
    enum oct_err (*create)(struct oct_analysis **analysis, const struct oct_analysis_setup *setup,
                           struct oct_image_form *form, struct oct_error *err);

    struct oct_stage_ops run;
};

#endif
