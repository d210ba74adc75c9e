/* From configuration and calibration to an engine with a slot for each B-scan in flight. */
#include "config/apply.h"
#include "pipeline/base/aligned.h"
#include "python/liboctd/recon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define IN_MEMORY "(from memory)" /* stands where a file's path would */

/* ---- the plan ---- */

/* Empties what arrays replace; `mark` says that an array is there, for checks of several keys. */
static void replace_files(struct oct_config *c, const struct oct_calibration *given,
                          const char *mark)
{
    const bool has_axis = given->n_wavelengths > 0 || given->n_kmap > 0;
    if (has_axis) {
        c->calibration.wavelengths[0] = c->calibration.kmap[0] = '\0';
        snprintf(given->n_kmap > 0 ? c->calibration.kmap : c->calibration.wavelengths,
                 OCT_CONFIG_STRING_BYTES, "%s", mark);
    }
    if (given->n_dispersion > 0) {
        snprintf(c->calibration.dispersion, OCT_CONFIG_STRING_BYTES, "%s", mark);
        c->calibration.dispersion_a2 = c->calibration.dispersion_a3 = 0;
        c->calibration.dispersion_a4 = c->calibration.dispersion_a5 = 0;
    }
    if (given->n_background > 0)
        snprintf(c->calibration.background, OCT_CONFIG_STRING_BYTES, "%s", mark);
}

static void lend(double **to, size_t *n_to, double *values, size_t n)
{
    if (n == 0)
        return;
    free(*to);
    *to = values;
    *n_to = n;
}

/* The files that are named, under the arrays that are given. `merged` owns copies of both. */
static enum oct_err merge(struct oct_calibration *merged, const struct oct_config *config,
                          const struct oct_calibration *given, struct oct_error *err)
{
    struct oct_config files = *config;
    struct oct_calibration copy;
    files.scan.positions[0] = '\0'; /* where A-lines lie changes no picture of them */
    replace_files(&files, given, "");
    enum oct_err e = oct_config_calibration(&files, merged, err);
    if (e)
        return e;
    if (oct_calibration_copy(&copy, given)) {
        oct_calibration_finish(merged);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the calibration");
    }
    lend(&merged->wavelengths_nm, &merged->n_wavelengths, copy.wavelengths_nm, copy.n_wavelengths);
    lend(&merged->kmap_px, &merged->n_kmap, copy.kmap_px, copy.n_kmap);
    lend(&merged->dispersion, &merged->n_dispersion, copy.dispersion, copy.n_dispersion);
    lend(&merged->background, &merged->n_background, copy.background, copy.n_background);
    return OCT_OK;
}

static enum oct_err make_plan(struct oct_plan **plan, struct oct_config *config,
                              const struct oct_calibration *given, struct oct_error *err)
{
    struct oct_calibration cal;
    struct oct_geometry geometry;
    struct oct_chain chain;
    struct oct_error why = {.text = ""};

    if (given->n_wavelengths > 0 && given->n_kmap > 0)
        return oct_fail(err, OCT_E_CONFIG,
                        "wavelengths and a k map are both given as arrays: keep one");
    replace_files(config, given, IN_MEMORY);
    /* How many B-scans come is not known yet; where volumes end is said by begin. */
    const uint64_t group = (uint64_t)config->scan.repeats * config->scan.interleave;
    config->scan.bscans = (uint32_t)(OCT_MAX_BSCANS / group * group);
    enum oct_err e = oct_config_check(config, err);
    if (e || (e = oct_config_geometry(config, &geometry, err)) ||
        (e = merge(&cal, config, given, err)))
        return e;
    oct_config_chain(config, &chain);
    e = oct_plan_create(plan, &geometry, &cal, &chain, &why);
    oct_calibration_finish(&cal);
    return e ? oct_config_blame(config, &why, err) : OCT_OK;
}

/* As of octctl recon: lines are in the order of places. B-scans are told apart by their number
 * within a volume. */
static enum oct_err make_even(struct oct_engine_room *room, const struct oct_config *config,
                              struct oct_error *err)
{
    struct oct_error why = {.text = ""};
    struct oct_scan scan = oct_config_way(config);
    scan.n_bscans = 0;
    if (scan.pattern == OCT_SCAN_FILE)
        return OCT_OK;
    const enum oct_err e = oct_scan_check(&scan, &why);
    if (e)
        return oct_config_blame(config, &why, err);
    return oct_scan_is_uneven(&scan)
               ? oct_even_lines_create(&room->even, &scan, &room->plan->geometry, err)
               : OCT_OK;
}

/* ---- slots ---- */

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

size_t oct_engine_room_bytes(const struct oct_engine_room *room)
{
    const struct oct_geometry *g = &room->plan->geometry;
    return room->has_complex ? oct_geometry_complex_bytes(g) : oct_geometry_image_bytes(g);
}

/* Memory of every slot that the engine's device reaches, for samples, pixels and complex values; an
 * engine that reaches any memory needs it for the pixels that nobody asked for. */
static enum oct_err lend_memory(struct oct_engine_room *room, struct oct_error *err)
{
    const struct oct_geometry *g = &room->plan->geometry;
    const struct oct_memory_ops *memory = room->ops->memory;
    const size_t spectra = memory ? whole_pages(oct_geometry_spectra_bytes(g)) : 0;
    const size_t pixels =
        memory || room->has_complex ? whole_pages(oct_geometry_image_bytes(g)) : 0;
    const size_t values =
        memory && room->has_complex ? whole_pages(oct_geometry_complex_bytes(g)) : 0;
    const size_t each = spectra + pixels + values;
    if (each == 0)
        return OCT_OK;
    room->lent_bytes = room->depth * each;
    room->lent = memory ? memory->alloc(room->lent_bytes, NULL)
                        : oct_aligned_alloc(PAGE, room->lent_bytes, 1);
    if (!room->lent)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u B-scans in flight",
                        room->depth);
    unsigned char *at = room->lent;
    for (unsigned i = 0; i < room->depth; i++, at += each) {
        struct oct_recon_slot *slot = &room->slots[i];
        slot->spectra = memory ? (uint16_t *)(void *)at : NULL;
        slot->image.pixels = at + spectra;
        if (values)
            slot->image.complex_values = (float *)(void *)(at + spectra + pixels);
    }
    return OCT_OK;
}

static enum oct_err make_slots(struct oct_engine_room *room, struct oct_error *err)
{
    const struct oct_geometry *g = &room->plan->geometry;
    const bool running = room->plan->chain.dc == OCT_DC_RUNNING;
    room->slots = calloc(room->depth, sizeof(*room->slots));
    room->masks = calloc(room->depth, g->n_lines);
    if (running)
        room->dc_lines =
            oct_aligned_alloc(64, 2 * (size_t)room->depth * g->n_samples, sizeof(float));
    if (!room->slots || !room->masks || (running && !room->dc_lines))
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u B-scans in flight",
                        room->depth);
    for (unsigned i = 0; i < room->depth; i++) {
        struct oct_recon_slot *slot = &room->slots[i];
        slot->line_valid = room->masks + (size_t)i * g->n_lines;
        slot->dc = running ? room->dc_lines + 2 * (size_t)i * g->n_samples : NULL;
        slot->image.form = &room->form;
        slot->image.whole = true;
        memcpy(slot->image.dims, room->form.dims, sizeof(slot->image.dims));
    }
    enum oct_err e = running ? oct_running_dc_create(&room->running_dc, room->plan, err) : OCT_OK;
    return e ? e : lend_memory(room, err);
}

/* ---- life ---- */

enum oct_err oct_engine_room_init(struct oct_engine_room *room, const struct oct_config *config,
                                  const struct oct_calibration *given, bool has_complex,
                                  struct oct_error *err)
{
    const struct oct_spacing unknown = {0, 0, 0};
    struct oct_config effective = *config;
    struct oct_engine_options options;
    char wisdom_dir[OCT_CONFIG_STRING_BYTES];

    *room = (struct oct_engine_room){.has_complex = has_complex};
    enum oct_err e = make_plan(&room->plan, &effective, given, err);
    if (e)
        return e;
    e = make_even(room, &effective, err);
    if (e)
        goto fail;
    oct_config_engine_options(&effective, &options, wisdom_dir, sizeof(wisdom_dir));
    options.has_complex = has_complex;
    oct_config_display(&effective, &room->display);
    oct_image_form_of_bscan(&room->form, &room->plan->geometry, room->display.log, &unknown);
    e = oct_engine_select(oct_config_backend_names[effective.pipeline.backend], room->plan,
                          &options, &room->ops, &room->engine, room->why, sizeof(room->why), err);
    if (e)
        goto fail;
    room->depth = room->ops->depth(room->engine);
    room->max_batch = room->ops->max_batch(room->engine);
    e = make_slots(room, err);
    if (e)
        goto fail;
    return OCT_OK;
fail:
    oct_engine_room_finish(room);
    return e;
}

void oct_engine_room_finish(struct oct_engine_room *room)
{
    if (room->engine)
        room->ops->destroy(room->engine);
    const struct oct_memory_ops *memory = room->ops ? room->ops->memory : NULL;
    for (unsigned i = 0; room->slots && !memory && i < room->depth; i++)
        free(room->slots[i].spectra);
    if (room->lent && memory)
        memory->release(room->lent, room->lent_bytes);
    else
        free(room->lent);
    oct_running_dc_destroy(room->running_dc);
    oct_even_lines_destroy(room->even);
    free(room->slots);
    free(room->masks);
    free(room->dc_lines);
    oct_plan_destroy(room->plan);
    *room = (struct oct_engine_room){0};
}
