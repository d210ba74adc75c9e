/* From configuration to analyses: which run, which are at rest, their settings.
 *
 * A key belongs to the analysis NAME by its own name: every key of the section [NAME], and of
 * [analysis] every key that begins with NAME_. Of a section's keys two mean the same for all:
 *
 *     NAME.enabled   no: the analysis is at rest (oct_stage_rest); yes, where somebody gave it: the
 *                    analysis runs though analysis.run does not name it. No such key: never at rest
 *     NAME.record    no: recordings have no results of it. No such key: they have
 *
 * Both are bool. An analysis may also go by the section of another, whose keys are its own too but
 * for `enabled`: `slab` by [surfaces] (settings_of). All that is known of an analysis its own table
 * says (analysis/analysis.h): nothing here names one. No state; any thread. */
#ifndef OCT_CONFIG_ANALYSIS_H
#define OCT_CONFIG_ANALYSIS_H

#include "analysis/analyses.h"
#include "config/config.h"
#include "pipeline/flow/image.h"
#include "pipeline/flow/stage.h"
#include "pipeline/plan/plan.h"

/* Room for the settings of any analysis. */
struct oct_analysis_settings {
    _Alignas(16) unsigned char bytes[OCT_ANALYSIS_MOST_SETTINGS];
};

/* Fills the settings of the analysis of that name, with what follows from other keys; false: it has
 * none, and they are all zero. Equal settings are equal in every byte. */
bool oct_config_analysis(const struct oct_config *config, const char *name,
                         struct oct_analysis_settings *settings);

/* The next name of analysis.run: *at begins as that text, and is "" where there are no more.
 * OCT_E_CONFIG: there is no such analysis. */
enum oct_err oct_config_analysis_next(const char **at, const struct oct_analysis_ops **ops,
                                      struct oct_error *err);

struct oct_config_stage {
    const struct oct_analysis_ops *ops;
    const struct oct_plan *plan; /* how many B-scans a volume has, and where they are */
    struct oct_pipeline *pipeline;
    struct oct_workers *workers;
    const struct oct_image_source *in; /* results of the analysis ops->of; NULL: there is none */
    unsigned asker;                    /* of values: its own number */
    bool guaranteed;                   /* offline: every B-scan passes; else live */
};

/* An analysis with the settings that the configuration has, as a stage of the pipeline: octd runs
 * it live, octctl offline. Errors as its create and oct_stage_create. */
enum oct_err oct_config_stage_create(struct oct_stage **stage, const struct oct_config *config,
                                     const struct oct_config_stage *setup, struct oct_error *err);

/* Whether it can take up these settings with B-scans of this form. OCT_E_CONFIG. */
enum oct_err oct_config_analysis_check(const struct oct_config *config, const char *name,
                                       const struct oct_image_form *input, struct oct_error *err);

/* Whether its own keys ask for it, so that it runs although analysis.run does not name it. */
bool oct_config_analysis_is_asked(const struct oct_config *config, const char *name);

/* Whether its own keys say that it is at rest. */
bool oct_config_analysis_rests(const struct oct_config *config, const char *name);

/* Whether recordings get the results of the analysis of that name. */
bool oct_config_records(const struct oct_config *config, const char *name);

/* Whether the key ("section.key") belongs to the analysis of that name. */
bool oct_config_analysis_has(const char *name, const char *key);

enum oct_config_setting_kind { OCT_SETTING_NUMBER, OCT_SETTING_FLAG, OCT_SETTING_TEXT };

struct oct_config_setting {
    const char *name; /* of the key, without NAME_; static storage */
    enum oct_config_setting_kind kind;
    double number;
    bool flag;
    char text[OCT_CONFIG_STRING_BYTES];
};

/* The next key of those that belong to the analysis, in the order of the key table; *at begins as
 * 0. False: there are no more. */
bool oct_config_analysis_setting(const struct oct_config *config, const char *name, size_t *at,
                                 struct oct_config_setting *setting);

/* Distances between B-scans, A-lines and depth pixels (in tissue), NaN where the configuration and
 * the calibration do not tell. */
struct oct_spacing oct_config_spacing(const struct oct_config *config, const struct oct_plan *plan);
struct oct_scan_protocol oct_config_scan(const struct oct_config *config);

#endif
