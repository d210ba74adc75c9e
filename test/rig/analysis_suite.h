/* The tests that every analysis must pass, over its table of functions (analysis/analysis.h): the
 * CPU twin and the CUDA twin run the same. What an analysis computes is for its own tests. */
#ifndef OCT_TEST_RIG_ANALYSIS_SUITE_H
#define OCT_TEST_RIG_ANALYSIS_SUITE_H

#include "analysis/analysis.h"

struct oct_analysis_suite {
    const struct oct_analysis_ops *ops;
    const void *settings;       /* good ones */
    const void *wrong_settings; /* that configure and create refuse; NULL: there are none */
    bool refuses_small;         /* create refuses (OCT_E_CONFIG) pictures that are too small: their
                                   recipes are passed over, but the first is not */
    struct oct_scan_protocol scan; /* 0: each place once */
};

/* Prints a line a recipe; returns the number of failed tests. */
int oct_analysis_suite_run(const struct oct_analysis_suite *suite);

/* ---- for the tests of single analyses ---- */

/* A B-scan with memory of its own, as a stage would push it. */
struct oct_suite_bscan {
    struct oct_image_form form;
    struct oct_image_frame frame;
    void *memory;
};

struct oct_suite_recipe {
    const char *name;
    uint32_t n_lines, depth, n_bscans; /* M, D, V */
    enum oct_sample_type type;
    bool linear, live;
};

/* Filled with speckle on a few layers; NaNs and infinities among f32 values where `hostile`. */
void oct_suite_bscan_open(struct oct_suite_bscan *bscan, const struct oct_suite_recipe *recipe,
                          enum oct_stage_input input);
void oct_suite_bscan_fill(struct oct_suite_bscan *bscan, uint64_t seed, bool hostile);
void oct_suite_bscan_close(struct oct_suite_bscan *bscan);

/* number, volume and B-scan of the frame, by V. */
void oct_suite_bscan_number(struct oct_suite_bscan *bscan, uint64_t number, uint32_t n_bscans);

struct oct_analysis_setup oct_suite_setup(const struct oct_suite_bscan *bscan,
                                          const struct oct_suite_recipe *recipe,
                                          const void *settings);

/* Memory for a result of the form, with a guard behind it that close checks. */
struct oct_suite_result {
    struct oct_image_frame frame;
    struct oct_image_form form;
    void *memory;
    size_t bytes;
};
void oct_suite_result_open(struct oct_suite_result *result, const struct oct_image_form *form);
/* As a stage asks for it. */
enum oct_err oct_suite_take(const struct oct_analysis_ops *ops, struct oct_analysis *analysis,
                            const struct oct_bscan_info *newest, struct oct_suite_result *result);
void oct_suite_result_close(struct oct_suite_result *result);

#endif
