#include "config/analysis.h"

#include "analysis/cones/live.h"

#include <string.h>

bool oct_config_analysis(const struct oct_config *config, const char *name,
                         union oct_config_analysis_settings *settings)
{
    if (strcmp(name, oct_average_cpu.name) == 0) {
        settings->average = (struct oct_average_settings){
            .bscans = config->average.bscans,
            .repeats = config->scan.repeats,
            .registration = (enum oct_average_register)config->average.registration,
            .max_shift_px = config->average.max_shift_px,
            .min_score = config->average.min_score,
            .domain = (enum oct_average_domain)config->average.domain,
        };
        return true;
    }
    /* `cones` looks at the slab of en face. */
    if (strcmp(name, oct_enface_cpu.name) != 0 && strcmp(name, oct_cones_cpu.name) != 0)
        return false;
    settings->enface = (struct oct_enface_settings){
        .projection = (enum oct_projection)config->analysis.enface_projection,
        .slab_first = config->analysis.enface_slab_first,
        .slab_last = config->analysis.enface_slab_last,
    };
    return true;
}

bool oct_config_averages(const struct oct_config *config)
{
    return config->average.bscans > 1 || config->scan.repeats > 1;
}

bool oct_config_records(const struct oct_config *config, const char *name)
{
    return strcmp(name, oct_average_cpu.name) != 0 || config->average.record;
}

struct oct_spacing oct_config_spacing(const struct oct_config *config, const struct oct_plan *plan)
{
    return oct_spacing_of_field(plan, config->scan.width_um, config->scan.height_um,
                                plan->geometry.n_bscans, config->scan.refractive_index);
}
