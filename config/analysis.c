#include "config/analysis.h"

#include "analysis/cones/live.h"
#include "config/cells.h"
#include "config/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what differs from analysis to analysis ---- */

struct row {
    const struct oct_analysis_ops *analysis; /* its CPU twin: for the name */
    /* Member by member: what lies between them stays 0, and equal settings are equal bytes. */
    void (*fill)(const struct oct_config *config, union oct_config_analysis_settings *settings);
    /* What its keys' ranges do not say; NULL: nothing. */
    enum oct_err (*check)(const struct oct_config *config,
                          const union oct_config_analysis_settings *settings,
                          const struct oct_image_form *input, struct oct_error *err);
    /* Keys other than NAME.enabled ask for it; NULL: none. */
    bool (*is_asked)(const struct oct_config *config);
    const char *section; /* of another analysis, by which it goes too; NULL: none */
};

static void fill_enface(const struct oct_config *config,
                        union oct_config_analysis_settings *settings)
{
    struct oct_enface_settings *s = &settings->enface;
    s->projection = (enum oct_projection)config->analysis.enface_projection;
    s->slab_first = config->analysis.enface_slab_first;
    s->slab_last = config->analysis.enface_slab_last;
}

static void fill_average(const struct oct_config *config,
                         union oct_config_analysis_settings *settings)
{
    struct oct_average_settings *s = &settings->average;
    s->bscans = config->average.bscans;
    s->repeats = config->scan.repeats;
    s->registration = (enum oct_average_register)config->average.registration;
    s->max_shift_px = config->average.max_shift_px;
    s->min_score = config->average.min_score;
    s->domain = (enum oct_average_domain)config->average.domain;
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

static void fill_cells(const struct oct_config *config,
                       union oct_config_analysis_settings *settings)
{
    oct_config_cells(config, &settings->cells);
}

static enum oct_err check_cells(const struct oct_config *config,
                                const union oct_config_analysis_settings *settings,
                                const struct oct_image_form *input, struct oct_error *err)
{
    const double height_um = config->scan.height_um;
    return oct_cells_live_check(&settings->cells, input, config->scan.bscans,
                                height_um > 0 ? height_um / config->scan.bscans : NAN, err);
}

static void fill_surfaces(const struct oct_config *config,
                          union oct_config_analysis_settings *settings)
{
    struct oct_surfaces_settings *s = &settings->surfaces;
    struct oct_slab slab;
    s->enabled = config->surfaces.enabled;
    s->every = config->surfaces.every;
    s->least_um = config->surfaces.least_um;
    s->most_um = config->surfaces.most_um;
    s->min_quality = config->surfaces.min_quality;
    s->has_slab =
        config->surfaces.slab[0] && oct_slab_parse(&slab, config->surfaces.slab, NULL) == OCT_OK;
    if (!s->has_slab)
        return;
    s->slab.first.layer = slab.first.layer;
    s->slab.first.offset_um = slab.first.offset_um;
    s->slab.last.layer = slab.last.layer;
    s->slab.last.offset_um = slab.last.offset_um;
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
    return config->surfaces.slab[0] != '\0';
}

static void fill_rolloff(const struct oct_config *config,
                         union oct_config_analysis_settings *settings)
{
    struct oct_rolloff_settings *s = &settings->rolloff;
    s->enabled = config->rolloff.enabled;
    s->first_px = config->rolloff.first_px;
    s->crop_first = config->pipeline.crop_first;
    s->min_snr_db = config->rolloff.min_snr_db;
    s->refractive_index = config->scan.refractive_index;
}

static const struct row rows[] = {
    {.analysis = &oct_enface_cpu, .fill = fill_enface},
    {.analysis = &oct_cones_cpu, .fill = fill_enface}, /* it looks at the slab of en face */
    {.analysis = &oct_average_cpu,
     .fill = fill_average,
     .check = check_average,
     .is_asked = average_is_asked},
    {.analysis = &oct_cells_analysis_cpu, .fill = fill_cells, .check = check_cells},
    {.analysis = &oct_surfaces_analysis_cpu, .fill = fill_surfaces, .check = check_surfaces},
    {.analysis = &oct_slab_analysis_cpu,
     .fill = fill_surfaces,
     .check = check_surfaces,
     .is_asked = slab_is_asked,
     .section = "surfaces"},
    {.analysis = &oct_rolloff_cpu, .fill = fill_rolloff},
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
    if (row)
        row->fill(config, settings);
    return row != NULL;
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
    const struct oct_key *key = oct_key_find(name, flag);
    return key && key->type == OCT_KEY_BOOL
               ? *(const bool *)((const unsigned char *)config + key->offset)
               : otherwise;
}

bool oct_config_analysis_is_asked(const struct oct_config *config, const char *name)
{
    const struct row *row = find_row(name);
    const struct oct_key *enabled = oct_key_find(name, "enabled");
    if (enabled && oct_key_is_marked(config, enabled) && flag_of(config, name, "enabled", false))
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
    const struct oct_key *found = oct_key_find_dotted(key);
    const struct row *row = find_row(name);
    return found && (setting_name(name, found->section, found->name) ||
                     (row && row->section && strcmp(found->section, row->section) == 0));
}

static void read_setting(const struct oct_config *config, const struct oct_key *key,
                         struct oct_config_setting *setting)
{
    oct_key_format(key, config, setting->text, sizeof(setting->text));
    switch (key->type) {
    case OCT_KEY_U32:
    case OCT_KEY_U64:
    case OCT_KEY_F64:
        setting->kind = OCT_SETTING_NUMBER;
        setting->number = strtod(setting->text, NULL);
        break;
    case OCT_KEY_BOOL:
        setting->kind = OCT_SETTING_FLAG;
        setting->flag = strcmp(setting->text, "yes") == 0;
        break;
    default:
        setting->kind = OCT_SETTING_TEXT;
    }
}

bool oct_config_analysis_setting(const struct oct_config *config, const char *name, unsigned i,
                                 struct oct_config_setting *setting)
{
    for (size_t k = 0; k < oct_n_keys; k++) {
        setting->name = setting_name(name, oct_keys[k].section, oct_keys[k].name);
        if (!setting->name || i-- > 0)
            continue;
        read_setting(config, &oct_keys[k], setting);
        return true;
    }
    return false;
}

struct oct_spacing oct_config_spacing(const struct oct_config *config, const struct oct_plan *plan)
{
    return oct_spacing_of_field(plan, config->scan.width_um, config->scan.height_um,
                                plan->geometry.n_bscans, config->scan.refractive_index);
}
