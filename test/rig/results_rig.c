#include "test/rig/results_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const labels[COLUMNS] = {"a", "b", "c"};

void open_scene(struct scene *s, uint32_t n_bscans, uint32_t buffer_bscans)
{
    open_scene_awaiting(s, n_bscans, buffer_bscans, 0);
}

void open_scene_awaiting(struct scene *s, uint32_t n_bscans, uint32_t buffer_bscans,
                         uint32_t await_ms)
{
    memset(s, 0, sizeof(*s));
    open_rings(&s->rig);
    s->rig.plan = volume_plan(N, M, n_bscans, D, OCT_SAMPLE_U8);
    s->rig.buffer_bscans = buffer_bscans;
    s->rig.await_ms = await_ms;
    s->forms[TABLE] = (struct oct_image_form){
        .name = "cells",
        .quantity = OCT_QUANTITY_NUMBERS,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {ROWS, COLUMNS},
        .spacing_um = {NAN, NAN},
        .axes = {"cell", "column"},
        .labels = labels,
    };
    s->forms[ENFACE] = (struct oct_image_form){
        .name = "enface",
        .quantity = OCT_QUANTITY_INTENSITY_DB,
        .type = OCT_SAMPLE_F32,
        .rank = 2,
        .dims = {n_bscans, M},
        .spacing_um = {NAN, NAN},
        .axes = {"bscan", "line"},
        .of_volume = true,
    };
    for (unsigned i = 0; i < N_SOURCES; i++)
        s->sources[i] = (struct oct_image_source){
            .form = &s->forms[i],
            .ring = open_ring(RESULT_SLOTS, oct_image_slot_bytes_of(&s->forms[i], NULL)),
            .dealt_below = &s->dealt_below[i],
        };
    s->rig.sources = s->sources;
    s->rig.n_sources = N_SOURCES;
    open_recorder(&s->rig);
}

void close_scene(struct scene *s)
{
    if (s->rig.recorder)
        close_recorder(&s->rig);
    for (unsigned i = 0; i < N_SOURCES; i++)
        oct_ring_destroy(s->sources[i].ring);
    close_rig(&s->rig);
}

void put_bscan(struct scene *s, uint64_t number)
{
    put(&s->rig, 1, number, number + 1);
}

static void put_image_or_table(struct scene *s, unsigned i, uint64_t number, bool whole)
{
    uint64_t slot;
    struct oct_ring *ring = s->sources[i].ring;
    assert_int_equal(oct_ring_acquire(ring, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_image_frame *f = oct_image_slot_begin(ring, slot, &s->forms[i], NULL);
    float *values = f->pixels;
    f->info = info_of(&s->rig, number, 1, number);
    f->whole = whole;
    for (size_t k = 0; k < oct_image_form_bytes(&s->forms[i]) / sizeof(float); k++)
        values[k] = (float)(number + 1);
    oct_ring_publish(ring);
}

void put_result(struct scene *s, unsigned i, uint64_t number)
{
    const uint32_t n_bscans = s->rig.plan.geometry.n_bscans;
    put_image_or_table(s, i, number, number % n_bscans + 1 == n_bscans);
}

void put_whole(struct scene *s, unsigned i, uint64_t number)
{
    put_image_or_table(s, i, number, true);
}

void deal(struct scene *s, unsigned i, uint64_t number)
{
    put_result(s, i, number);
    s->dealt_below[i] = number + 1;
}

/* B-scans from .. to - 1 and what both analyses make of them at once. */
void put_all(struct scene *s, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        put_bscan(s, number);
        for (unsigned i = 0; i < N_SOURCES; i++)
            deal(s, i, number);
    }
}

/* The valid rows of the table in this file as bits; what they hold must be right. */
unsigned cells_of(const char *path, uint64_t volume)
{
    size_t n, n_values;
    unsigned found = 0;
    double *valid = volume_values(path, "/frames/cells_valid", &n);
    double *values = volume_values(path, "/analysis/cells", &n_values);
    for (size_t v = 0; v < n; v++) {
        found |= valid[v] > 0 ? 1u << v : 0;
        for (size_t k = 0; k < n_values / n && valid[v] > 0; k++)
            assert_true(values[v * (n_values / n) + k] == (double)(volume * n + v + 1));
    }
    free(valid);
    free(values);
    return found;
}

/* The B-scan within the volume after which this en face was made, + 1; 0: there is none. */
unsigned enface_of(const char *path, uint64_t first)
{
    size_t n;
    double *valid = volume_values(path, "/analysis/enface_valid", &n);
    double *values = volume_values(path, "/analysis/enface", &n);
    unsigned found = valid[0] > 0 ? (unsigned)(values[0] - (double)first) : 0;
    for (size_t k = 0; k < n && valid[0] > 0; k++)
        assert_true(values[k] == values[0]);
    free(valid);
    free(values);
    return found;
}

uint64_t await_volumes(struct scene *s, uint64_t n)
{
    struct oct_recorder_status status;
    uint64_t begin_ns = oct_clock_ns();
    WAIT(&s->rig, status, status.volumes_written == n);
    return oct_clock_ns() - begin_ns;
}
