#include "config/analysis.h"

#include "analysis/enface/gridded.h"
#include "config/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings ---- */

/* The analysis whose settings and keys are those of `ops`. */
static const struct oct_analysis_ops *owner_of(const struct oct_analysis_ops *ops)
{
    return ops->settings_of ? oct_analysis_find(ops->settings_of) : ops;
}

const void *oct_config_settings(const struct oct_config *config, const char *name)
{
    const struct oct_analysis_ops *ops = oct_analysis_find(name);
    return ops && ops->settings_bytes ? config->settings + oct_key_settings_at(owner_of(ops))
                                      : NULL;
}

bool oct_config_analysis(const struct oct_config *config, const char *name,
                         struct oct_analysis_settings *settings)
{
    const struct oct_analysis_ops *ops = oct_analysis_find(name);
    const void *own = oct_config_settings(config, name);
    const struct oct_analysis_session session = {
        .scan = oct_config_scan(config),
        .crop_first = config->pipeline.crop_first,
        .refractive_index = config->scan.refractive_index,
        .cpu = config->pipeline.backend == OCT_BACKEND_CPU,
        .enface = oct_config_settings(config, "enface"),
        .flow = oct_config_settings(config, "flow"),
    };
    memset(settings, 0, sizeof(*settings));
    if (!own)
        return false;
    memcpy(settings, own, ops->settings_bytes);
    if (ops->join)
        ops->join(settings, &session);
    return true;
}

enum oct_err oct_config_analysis_check(const struct oct_config *config, const char *name,
                                       const struct oct_image_form *input, struct oct_error *err)
{
    struct oct_analysis_settings settings;
    const struct oct_analysis_ops *ops = oct_analysis_find(name);
    const double height_um = config->scan.height_um;
    const struct oct_analysis_setup setup = {
        .input = input,
        .n_bscans = config->scan.bscans,
        .spacing = {height_um > 0 ? height_um / config->scan.bscans : NAN, NAN, NAN},
        .scan = oct_config_scan(config),
    };
    if (!ops || !ops->check)
        return OCT_OK;
    oct_config_analysis(config, name, &settings);
    return ops->check(&settings, &setup, err);
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

/* B-scans that the stage keeps for its analysis: a group; 0: none, too many, or there is no GPU in
 * whose memory they would be read where they lie. Each takes a buffer of the image ring. */
static unsigned kept_bscans(const struct oct_config_stage *setup,
                            const struct oct_scan_protocol *scan)
{
    const unsigned n_places = scan->interleave > 1 ? scan->interleave : 1;
    const unsigned n = scan->repeats * n_places;
    const bool can_be = setup->ops->wants_groups && !setup->guaranteed && setup->pipeline &&
                        oct_pipeline_ask(setup->pipeline, OCT_LENT_DEVICE, setup->asker, 0);
    return can_be && n > 1 && n <= OCT_STAGE_MOST_KEPT ? n : 0;
}

enum oct_err oct_config_stage_create(struct oct_stage **stage, const struct oct_config *config,
                                     const struct oct_config_stage *setup, struct oct_error *err)
{
    struct oct_analysis_settings settings;
    struct oct_analysis *analysis;
    struct oct_image_form form;
    const struct oct_analysis_ops *ops = setup->ops;
    oct_config_analysis(config, ops->name, &settings);
    const struct oct_scan_protocol scan = oct_config_scan(config);
    const unsigned keeps = kept_bscans(setup, &scan);
    const struct oct_analysis_setup its = {
        .input = setup->in ? setup->in->form : oct_pipeline_form(setup->pipeline),
        .n_bscans = setup->plan->geometry.n_bscans,
        .spacing = oct_config_spacing(config, setup->plan),
        .scan = scan,
        .plan = setup->plan,
        .line_rate_hz = config->scan.line_rate_hz,
        .live = !setup->guaranteed,
        .keeps_groups = keeps > 0,
        .settings = &settings,
        .workers = setup->workers,
        .gpus = config->pipeline.gpus,
    };
    enum oct_err e = ops->create(&analysis, &its, &form, err);
    if (e)
        return e;
    const struct oct_stage_ops *run = &ops->run;
    if (oct_gridded_is_wanted(&setup->plan->scan, &form))
        e = oct_gridded_create(&analysis, &run, &setup->plan->scan, setup->plan->geometry.n_bscans,
                               &form, err);
    if (e)
        return e;
    const struct oct_stage_setup stage_setup = {
        .form = &form,
        .ops = run,
        .analysis = analysis,
        .input = ops->input,
        .pipeline = setup->pipeline,
        .in = setup->in,
        .asker = setup->asker,
        .guaranteed = setup->guaranteed,
        .keeps = keeps,
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
    const struct oct_analysis_ops *ops = oct_analysis_find(name);
    struct oct_analysis_settings settings;
    struct oct_key enabled;
    if (oct_key_find(name, "enabled", &enabled) && oct_key_is_marked(config, &enabled) &&
        flag_of(config, name, "enabled", false))
        return true;
    return ops && ops->is_asked && oct_config_analysis(config, name, &settings) &&
           ops->is_asked(&settings);
}

bool oct_config_analysis_rests(const struct oct_config *config, const char *name)
{
    return !flag_of(config, name, "enabled", true);
}

/* The section by which the analysis goes; NULL: it has none. */
static const char *section_of(const char *name)
{
    const struct oct_analysis_ops *ops = oct_analysis_find(name);
    const struct oct_analysis_ops *owner = ops ? owner_of(ops) : NULL;
    return owner && owner->section ? owner->name : NULL;
}

bool oct_config_records(const struct oct_config *config, const char *name)
{
    const char *section = section_of(name);
    return flag_of(config, section ? section : name, "record", true);
}

bool oct_config_analysis_has(const char *name, const char *key)
{
    struct oct_key found;
    const char *section = section_of(name);
    return oct_key_find_dotted(key, &found) && (setting_name(name, found.section, found.name) ||
                                                (section && strcmp(found.section, section) == 0));
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

struct oct_scan_protocol oct_config_scan(const struct oct_config *config)
{
    return (struct oct_scan_protocol){.repeats = config->scan.repeats,
                                      .interleave = config->scan.interleave,
                                      .line_repeats = config->scan.line_repeats};
}

struct oct_spacing oct_config_spacing(const struct oct_config *config, const struct oct_plan *plan)
{
    return oct_spacing_of_field(plan, config->scan.width_um, config->scan.height_um,
                                plan->geometry.n_bscans, config->scan.refractive_index);
}
