/* The handle of a reconstruction: configuration and calibration from outside, and their start. */
#include "python/liboctd/recon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ORIGIN "octd" /* begins messages about a key that a caller set */
/* More values than any calibration has: P2 of the most samples, twice. */
#define MOST_VALUES (4 * (size_t)OCT_MAX_SAMPLES)

unsigned octd_api_version(void)
{
    return OCTD_API_VERSION;
}

const char *octd_version(void)
{
    return OCT_VERSION;
}

int octd_result_of(enum oct_err code)
{
    switch (code) {
    case OCT_OK:
        return OCTD_OK;
    case OCT_E_CONFIG:
        return OCTD_E_CONFIG;
    case OCT_E_FORMAT:
        return OCTD_E_FORMAT;
    case OCT_E_IO:
    case OCT_E_NO_SPACE:
        return OCTD_E_IO;
    case OCT_E_NO_MEMORY:
        return OCTD_E_NO_MEMORY;
    case OCT_E_BACKEND:
        return OCTD_E_BACKEND;
    case OCT_E_AGAIN:
        return OCTD_E_TIMEOUT;
    case OCT_E_CLOSED:
    case OCT_E_STATE:
        return OCTD_E_STATE;
    case OCT_E_ARG:
        break;
    }
    return OCTD_E_ARGUMENT;
}

struct octd_recon *octd_recon_create(void)
{
    struct octd_recon *recon = calloc(1, sizeof(*recon));
    if (!recon)
        return NULL;
    recon->process = getpid();
    oct_config_init(&recon->config);
    return recon;
}

enum oct_err oct_recon_check_process(struct octd_recon *recon)
{
    if (recon->process == getpid())
        return OCT_OK;
    return oct_fail(&recon->err, OCT_E_STATE,
                    "the engine belongs to process %ld: a forked process makes its own",
                    (long)recon->process);
}

void octd_recon_destroy(struct octd_recon *recon)
{
    if (!recon || recon->process != getpid())
        return;
    oct_engine_room_finish(&recon->room);
    oct_calibration_finish(&recon->given);
    free(recon);
}

const char *octd_recon_error(const struct octd_recon *recon)
{
    return recon ? recon->err.text : "out of memory";
}

/* ---- configuration ---- */

int octd_recon_set(struct octd_recon *recon, const char *key, const char *value)
{
    if (!key || !value)
        return octd_result_of(oct_fail(&recon->err, OCT_E_ARG, "a key or its value is NULL"));
    return octd_result_of(oct_config_set(&recon->config, key, value, ORIGIN, &recon->err));
}

int octd_recon_load(struct octd_recon *recon, const char *path)
{
    if (!path)
        return octd_result_of(oct_fail(&recon->err, OCT_E_ARG, "the configuration's path is NULL"));
    return octd_result_of(oct_config_load(&recon->config, path, &recon->err));
}

int octd_recon_load_text(struct octd_recon *recon, const char *text, const char *name)
{
    if (!text || !name)
        return octd_result_of(oct_fail(&recon->err, OCT_E_ARG,
                                       "the configuration's text or its "
                                       "name is NULL"));
    return octd_result_of(oct_config_load_text(&recon->config, text, name, &recon->err));
}

int octd_recon_get(struct octd_recon *recon, const char *key, char *value, size_t value_bytes)
{
    if (!key || !value || value_bytes == 0)
        return octd_result_of(oct_fail(&recon->err, OCT_E_ARG, "no key, or no room for its value"));
    return octd_result_of(oct_config_get(&recon->config, key, value, value_bytes, &recon->err));
}

char *octd_recon_config(struct octd_recon *recon)
{
    char *text = oct_config_text(&recon->config);
    if (!text)
        oct_fail(&recon->err, OCT_E_NO_MEMORY, "out of memory for the configuration's text");
    return text;
}

/* ---- calibration ---- */

/* A copy of n rows of n_columns finite numbers; n 0: none. */
static enum oct_err take_values(double **to, size_t *n_to, const double *values, size_t n,
                                unsigned n_columns, const char *key, struct oct_error *err)
{
    double *copy = NULL;
    if (n > MOST_VALUES || (n > 0 && !values))
        return oct_fail(err, OCT_E_ARG, "%s: %zu values, or no pointer to them: no calibration",
                        key, n);
    for (size_t i = 0; i < n * n_columns; i++)
        if (!isfinite(values[i]))
            return oct_fail(err, OCT_E_CONFIG, "%s: value %zu is not a finite number", key,
                            i / n_columns);
    if (n > 0) {
        copy = malloc(n * n_columns * sizeof(*copy));
        if (!copy)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", key);
        memcpy(copy, values, n * n_columns * sizeof(*copy));
    }
    free(*to);
    *to = copy;
    *n_to = n;
    return OCT_OK;
}

int octd_recon_wavelengths(struct octd_recon *recon, const double *nm, size_t n)
{
    struct oct_calibration *given = &recon->given;
    return octd_result_of(take_values(&given->wavelengths_nm, &given->n_wavelengths, nm, n, 1,
                                      "calibration.wavelengths", &recon->err));
}

int octd_recon_kmap(struct octd_recon *recon, const double *px, size_t n)
{
    struct oct_calibration *given = &recon->given;
    return octd_result_of(
        take_values(&given->kmap_px, &given->n_kmap, px, n, 1, "calibration.kmap", &recon->err));
}

int octd_recon_dispersion(struct octd_recon *recon, const double *re_im, size_t n)
{
    struct oct_calibration *given = &recon->given;
    return octd_result_of(take_values(&given->dispersion, &given->n_dispersion, re_im, n, 2,
                                      "calibration.dispersion", &recon->err));
}

int octd_recon_background(struct octd_recon *recon, const double *counts, size_t n)
{
    struct oct_calibration *given = &recon->given;
    return octd_result_of(take_values(&given->background, &given->n_background, counts, n, 1,
                                      "calibration.background", &recon->err));
}

/* ---- start ---- */

void octd_recon_complex(struct octd_recon *recon, int wanted)
{
    recon->has_complex = wanted != 0;
}

int octd_recon_start(struct octd_recon *recon)
{
    if (oct_recon_check_process(recon))
        return OCTD_E_STATE;
    oct_engine_room_finish(&recon->room);
    recon->begun = false;
    return octd_result_of(oct_engine_room_init(&recon->room, &recon->config, &recon->given,
                                               recon->has_complex, &recon->err));
}

const char *octd_recon_engine(const struct octd_recon *recon)
{
    return recon->room.why;
}

int octd_recon_shape(struct octd_recon *recon, uint32_t *n_samples, uint32_t *n_lines,
                     uint32_t *depth, uint32_t *pixel_bytes, double *axial_um)
{
    if (!recon->room.plan)
        return octd_result_of(oct_fail(&recon->err, OCT_E_STATE,
                                       "not started yet: there is no "
                                       "shape"));
    const struct oct_geometry *g = &recon->room.plan->geometry;
    if (n_samples)
        *n_samples = g->n_samples;
    if (n_lines)
        *n_lines = g->n_lines;
    if (depth)
        *depth = g->depth;
    if (pixel_bytes)
        *pixel_bytes = (uint32_t)(oct_engine_room_bytes(&recon->room) / g->n_lines / g->depth);
    if (axial_um)
        *axial_um = recon->room.plan->axial_um;
    return OCTD_OK;
}
