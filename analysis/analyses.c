#include "analysis/analyses.h"

#include "analysis/average/average.h"
#include "analysis/cells/cells.h"
#include "analysis/cones/live.h"
#include "analysis/enface/enface.h"
#include "analysis/flow/flow.h"
#include "analysis/layers/layers.h"
#include "analysis/quality/quality.h"
#include "analysis/rolloff/rolloff.h"

#include <stdio.h>
#include <string.h>

const struct oct_analysis_ops *const oct_analyses[] = {
    &oct_enface_cpu,         &oct_quality_cpu,           &oct_cones_cpu,         &oct_average_cpu,
    &oct_cells_analysis_cpu, &oct_surfaces_analysis_cpu, &oct_slab_analysis_cpu, &oct_rolloff_cpu,
    &oct_flow_cpu,           &oct_angiogram_cpu,         &oct_velocity_cpu,      &oct_trace_cpu,
};
const unsigned oct_n_analyses = sizeof(oct_analyses) / sizeof(oct_analyses[0]);

const struct oct_analysis_ops *oct_analysis_find(const char *name)
{
    for (unsigned i = 0; i < oct_n_analyses; i++)
        if (strcmp(oct_analyses[i]->name, name) == 0)
            return oct_analyses[i];
    return NULL;
}

void oct_analysis_names(char *text, size_t text_bytes)
{
    size_t at = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < oct_n_analyses && at < text_bytes; i++) {
        int n = snprintf(text + at, text_bytes - at, "%s%s", i ? "," : "", oct_analyses[i]->name);
        at += n > 0 ? (size_t)n : 0;
    }
}
