#include "config/analysis.h"

#include "analysis/cones/live.h"
#include "config/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what differs from analysis to analysis ---- */

struct row {
    const struct oct_analysis_ops *analysis; /* its CPU twin: for the name and the settings' size */
    size_t at;                               /* of its settings, in struct oct_config */
    /* Fills in what follows from keys of others; NULL: nothing does. */
    void (*join)(const struct oct_config *config, union oct_config_analysis_settings *settings);
    /* What its keys' ranges do not say; NULL: nothing. */
    enum oct_err (*check)(const struct oct_config *config,
                          const union oct_config_analysis_settings *settings,
                          const struct oct_image_form *input, struct oct_error *err);
    /* Keys other than NAME.enabled ask for it; NULL: none. */
    bool (*is_asked)(const struct oct_config *config);
    const char *section; /* of another analysis, by which it goes too; NULL: none */
};

static void join_average(const struct oct_config *config,
                         union oct_config_analysis_settings *settings)
{
    settings->average.repeats = config->scan.repeats;
}

static enum oct_err check_average(const struct oct_config *config,
                                  const union oct_config_analysis_settings *settings,
                                  const struct oct_image_form *input, struct oct_error *err)
{
    (void)config;
    return oct_average_check(&settings->average, input->dims[0], input->dims[1], err);
}

/* By a window, or by repeats. */
static bool average_is_asked(const struct oct_config *config)
{
    return config->average.bscans > 1 || config->scan.repeats > 1;
}

static void join_cells(const struct oct_config *config,
                       union oct_config_analysis_settings *settings)
{
    settings->cells.cpu = config->pipeline.backend == OCT_BACKEND_CPU;
    settings->cells.enface = config->enface;
}

static enum oct_err check_cells(const struct oct_config *config,
                                const union oct_config_analysis_settings *settings,
                                const struct oct_image_form *input, struct oct_error *err)
{
    const double height_um = config->scan.height_um;
    return oct_cells_live_check(&settings->cells, input, config->scan.bscans,
                                height_um > 0 ? height_um / config->scan.bscans : NAN, err);
}

static enum oct_err check_surfaces(const struct oct_config *config,
                                   const union oct_config_analysis_settings *settings,
                                   const struct oct_image_form *input, struct oct_error *err)
{
    (void)config;
    return oct_surfaces_live_check(&settings->surfaces, input, err);
}

static bool slab_is_asked(const struct oct_config *config)
{
    return !config->surfaces.slab.is_none;
}

static void join_rolloff(const struct oct_config *config,
                         union oct_config_analysis_settings *settings)
{
    settings->rolloff.crop_first = config->pipeline.crop_first;
    settings->rolloff.refractive_index = config->scan.refractive_index;
}

#define OF(ops, member) .analysis = &ops, .at = offsetof(struct oct_config, member)
static const struct row rows[] = {
    {OF(oct_enface_cpu, enface)},
    {OF(oct_cones_cpu, enface)}, /* it looks at the slab of en face */
    {OF(oct_average_cpu, average), .join = join_average, .check = check_average,
     .is_asked = average_is_asked},
    {OF(oct_cells_analysis_cpu, cells), .join = join_cells, .check = check_cells},
    {OF(oct_surfaces_analysis_cpu, surfaces), .check = check_surfaces},
    {OF(oct_slab_analysis_cpu, surfaces), .check = check_surfaces, .is_asked = slab_is_asked,
     .section = "surfaces"},
    {OF(oct_rolloff_cpu, rolloff), .join = join_rolloff},
};

static const struct row *find_row(const char *name)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].analysis->name, name) == 0)
            return &rows[i];
    return NULL;
}

bool oct_config_analysis(const struct oct_config *config, const char *name,
                         union oct_config_analysis_settings *settings)
{
    const struct row *row = find_row(name);
    memset(settings, 0, sizeof(*settings));
    if (!row)
        return false;
    memcpy(settings, (const char *)config + row->at, row->analysis->settings_bytes);
    if (row->join)
        row->join(config, settings);
    return true;
}

enum oct_err oct_config_analysis_check(const struct oct_config *config, const char *name,
                                       const struct oct_image_form *input, struct oct_error *err)
{
    union oct_config_analysis_settings settings;
    const struct row *row = find_row(name);
    if (!row || !row->check)
        return OCT_OK;
    oct_config_analysis(config, name, &settings);
    return row->check(config, &settings, input, err);
}

/* ---- as a stage ---- */

enum oct_err oct_config_analysis_next(const char **at, const struct oct_analysis_ops **ops,
                                      struct oct_error *err)
{
    char name[OCT_IMAGE_NAME_BYTES], names[256];
    const size_t n = strcspn(*at, ",");
    snprintf(name, sizeof(name), "%.*s", (int)n, *at);
    *at += n;
    *at += **at == ',';
    *ops = oct_analysis_find(name);
    if (*ops)
        return OCT_OK;
    oct_analysis_names(names, sizeof(names));
    return oct_fail_key(err, OCT_E_CONFIG, "analysis.run",
                        "analysis.run: there is no analysis '%s': use some of %s", name, names);
}

enum oct_err oct_config_stage_create(struct oct_stage **stage, const struct oct_config *config,
                                     const struct oct_config_stage *setup, struct oct_error *err)
{
    union oct_config_analysis_settings settings;
    struct oct_analysis *analysis;
    struct oct_image_form form;
    const struct oct_analysis_ops *ops = setup->ops;
    oct_config_analysis(config, ops->name, &settings);
    const struct oct_analysis_setup its = {
        .input = oct_pipeline_form(setup->pipeline),
        .n_bscans = setup->plan->geometry.n_bscans,
        .spacing = oct_config_spacing(config, setup->plan),
        .line_rate_hz = config->scan.line_rate_hz,
        .live = !setup->guaranteed,
        .settings = &settings,
        .workers = setup->workers,
        .gpus = config->pipeline.gpus,
    };
    const enum oct_err e = ops->create(&analysis, &its, &form, err);
    if (e)
        return e;
    const struct oct_stage_setup stage_setup = {
        .form = &form,
        .ops = &ops->run,
        .analysis = analysis,
        .input = ops->input,
        .pipeline = setup->pipeline,
        .asker = setup->asker,
        .guaranteed = setup->guaranteed,
        .settings_bytes = ops->settings_bytes,
        .most_behind = ops->most_behind_of ? ops->most_behind_of(&settings) : ops->most_behind,
        .rests = oct_config_analysis_rests(config, ops->name),
    };
    return oct_stage_create(stage, &stage_setup, err);
}

/* ---- what follows from the keys' names ---- */

/* The key's name without that of the analysis; NULL: it is another's. */
static const char *setting_name(const char *analysis, const char *section, const char *name)
{
    const size_t n = strlen(analysis);
    if (strcmp(section, analysis) == 0)
        return name;
    return strcmp(section, "analysis") == 0 && strncmp(name, analysis, n) == 0 && name[n] == '_'
               ? name + n + 1
               : NULL;
}

/* The value of NAME.flag; `otherwise` where there is no such key. */
static bool flag_of(const struct oct_config *config, const char *name, const char *flag,
                    bool otherwise)
{
    struct oct_key key;
    return oct_key_find(name, flag, &key) && key.param->type == OCT_PARAM_BOOL
               ? *(const bool *)((const unsigned char *)config + key.at + key.param->at)
               : otherwise;
}

bool oct_config_analysis_is_asked(const struct oct_config *config, const char *name)
{
    const struct row *row = find_row(name);
    struct oct_key enabled;
    if (oct_key_find(name, "enabled", &enabled) && oct_key_is_marked(config, &enabled) &&
        flag_of(config, name, "enabled", false))
        return true;
    return row && row->is_asked && row->is_asked(config);
}

bool oct_config_analysis_rests(const struct oct_config *config, const char *name)
{
    return !flag_of(config, name, "enabled", true);
}

bool oct_config_records(const struct oct_config *config, const char *name)
{
    const struct row *row = find_row(name);
    return flag_of(config, row && row->section ? row->section : name, "record", true);
}

bool oct_config_analysis_has(const char *name, const char *key)
{
    struct oct_key found;
    const struct row *row = find_row(name);
    return oct_key_find_dotted(key, &found) &&
           (setting_name(name, found.section, found.name) ||
            (row && row->section && strcmp(found.section, row->section) == 0));
}

static void read_setting(const struct oct_config *config, const struct oct_key *key,
                         struct oct_config_setting *setting)
{
    oct_key_format(key, config, setting->text, sizeof(setting->text));
    switch (key->param->type) {
    case OCT_PARAM_U32:
    case OCT_PARAM_U64:
    case OCT_PARAM_F64:
        setting->kind = OCT_SETTING_NUMBER;
        setting->number = strtod(setting->text, NULL);
        break;
    case OCT_PARAM_BOOL:
        setting->kind = OCT_SETTING_FLAG;
        setting->flag = strcmp(setting->text, "yes") == 0;
        break;
    default:
        setting->kind = OCT_SETTING_TEXT;
    }
}

bool oct_config_analysis_setting(const struct oct_config *config, const char *name, size_t *at,
                                 struct oct_config_setting *setting)
{
    struct oct_key key;
    while (oct_key_next(at, &key)) {
        setting->name = setting_name(name, key.section, key.name);
        if (!setting->name)
            continue;
        read_setting(config, &key, setting);
        return true;
    }
    return false;
}

struct oct_spacing oct_config_spacing(const struct oct_config *config, const struct oct_plan *plan)
{
    return oct_spacing_of_field(plan, config->scan.width_um, config->scan.height_um,
                                plan->geometry.n_bscans, config->scan.refractive_index);
}
