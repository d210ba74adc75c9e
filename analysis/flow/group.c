#include "analysis/flow/group.h"

#include "numeric/order.h"

#include <stdlib.h>
#include <string.h>

static unsigned n_of_group(const struct oct_flow_group *g)
{
    return g->n_repeats * g->n_places;
}

enum oct_err oct_flow_group_init(struct oct_flow_group *g, uint32_t n_lines, uint32_t depth,
                                 const struct oct_scan_protocol *scan, struct oct_error *err)
{
    *g = (struct oct_flow_group){.n_repeats = scan->repeats > 1 ? scan->repeats : 1,
                                 .n_places = scan->interleave > 1 ? scan->interleave : 1};
    const unsigned n = n_of_group(g);
    g->bscans = n_lines > 0 ? calloc(n, sizeof(*g->bscans)) : NULL;
    g->infos = calloc(n, sizeof(*g->infos));
    g->came = calloc(n, sizeof(*g->came));
    if ((n_lines > 0 && !g->bscans) || !g->infos || !g->came)
        return oct_fail(err, OCT_E_NO_MEMORY, "flow: out of memory");
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; g->bscans && i < n && !e; i++)
        e = oct_flow_bscan_init(&g->bscans[i], n_lines, depth, err);
    return e;
}

void oct_flow_group_finish(struct oct_flow_group *g)
{
    for (unsigned i = 0; g->bscans && i < n_of_group(g); i++)
        oct_flow_bscan_finish(&g->bscans[i]);
    free(g->bscans);
    free(g->infos);
    free(g->came);
    *g = (struct oct_flow_group){.n = 0};
}

bool oct_flow_group_is_other(const struct oct_flow_group *g, const struct oct_bscan_info *info)
{
    const uint32_t n = n_of_group(g);
    return g->n > 0 && (info->acquisition != g->newest.acquisition ||
                        info->volume != g->newest.volume || info->bscan / n != g->newest.bscan / n);
}

unsigned oct_flow_group_put(struct oct_flow_group *g, const struct oct_image_frame *bscan,
                            struct oct_workers *workers)
{
    const unsigned i = bscan->info.bscan % n_of_group(g);
    if (g->bscans)
        oct_flow_bscan_put(&g->bscans[i], bscan->complex_values, workers);
    g->infos[i] = g->newest = bscan->info;
    g->n += !g->came[i];
    g->came[i] = true;
    return i;
}

bool oct_flow_group_is_whole(const struct oct_flow_group *g)
{
    return g->n > 0 && g->came[n_of_group(g) - 1];
}

uint32_t oct_flow_group_place(const struct oct_flow_group *g, unsigned k)
{
    return g->newest.bscan / n_of_group(g) * g->n_places + k;
}

void oct_flow_group_repeats(const struct oct_flow_group *g, unsigned k,
                            const struct oct_flow_bscan **repeats)
{
    for (unsigned r = 0; r < g->n_repeats; r++) {
        const unsigned i = r * g->n_places + k;
        repeats[r] = g->came[i] ? &g->bscans[i] : NULL;
    }
}

enum oct_err oct_flow_group_check(const struct oct_flow_group *g, unsigned k, unsigned n_pairs,
                                  struct oct_error *err)
{
    unsigned n_came = 0;
    for (unsigned i = k + g->n_places; i < n_of_group(g); i += g->n_places)
        n_came += g->came[i - g->n_places] && g->came[i];
    if (n_pairs >= n_came)
        return OCT_OK;
    return oct_fail(
        err, OCT_E_STATE,
        "the GPU has failed with B-scans of place %u; pipeline.backend=cpu does without",
        oct_flow_group_place(g, k));
}

double oct_flow_group_tau_s(const struct oct_flow_group *g)
{
    const unsigned n_all = n_of_group(g);
    double *tau = malloc(n_all * sizeof(*tau)), median = 0;
    size_t n = 0;
    for (unsigned i = g->n_places; tau && i < n_all; i++)
        if (g->came[i] && g->came[i - g->n_places] &&
            g->infos[i].time_ns > g->infos[i - g->n_places].time_ns)
            tau[n++] = 1e-9 * (double)(g->infos[i].time_ns - g->infos[i - g->n_places].time_ns);
    if (n > 0)
        median = oct_doubles_median(tau, n);
    free(tau);
    return median;
}

uint64_t oct_flow_group_time_ns(const struct oct_flow_group *g, unsigned k)
{
    uint64_t time_ns = 0;
    for (unsigned i = k; i < n_of_group(g); i += g->n_places)
        time_ns = g->came[i] ? g->infos[i].time_ns : time_ns;
    return time_ns;
}

void oct_flow_group_clear(struct oct_flow_group *g)
{
    memset(g->came, 0, n_of_group(g) * sizeof(*g->came));
    g->n = 0;
}
