#define _GNU_SOURCE /* nftw */
#include "test/rig/recorder_rig.h"

#include "pipeline/flow/slots.h"
#include "pipeline/volume/volume.h"

#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t content(uint32_t acquisition, uint64_t number, uint32_t i)
{
    struct dice dice = {acquisition * 1000003ull + number * 4099 + i};
    return (uint32_t)dice_roll(&dice) | 1;
}

struct oct_bscan_info info_of(const struct rig *r, uint64_t slot, uint32_t acquisition,
                              uint64_t number)
{
    const uint32_t n_bscans = r->plan.geometry.n_bscans;
    return (struct oct_bscan_info){.id = slot,
                                   .acquisition = acquisition,
                                   .number = number,
                                   .volume = number / n_bscans,
                                   .bscan = (uint32_t)(number % n_bscans),
                                   .sequence = number + 7};
}

void put_raw(struct rig *r, uint32_t acquisition, uint64_t number)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(r->raw, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_raw_frame *f = oct_raw_slot(r->raw, slot, &r->plan.geometry);
    f->info = info_of(r, slot, acquisition, number);
    memset(f->line_valid, 1, M);
    for (uint32_t i = 0; i < M * N; i++)
        f->spectra[i] = (uint16_t)content(acquisition, number, i);
    oct_ring_publish(r->raw);
}

void put_image_of(struct rig *r, uint32_t acquisition, uint64_t number, enum oct_err status)
{
    uint64_t slot;
    assert_int_equal(oct_ring_acquire(r->images, TEST_PATIENCE_US, &slot), OCT_OK);
    struct oct_image_frame *f = oct_image_slot(r->images, slot);
    uint8_t *pixels = f->pixels;
    f->info = info_of(r, slot, acquisition, number);
    f->status = status;
    f->lo = 0;
    f->hi = 1;
    for (uint32_t i = 0; i < M * D; i++)
        pixels[i] = (uint8_t)content(acquisition, number, i + 5000);
    oct_ring_publish(r->images);
}

void put(struct rig *r, uint32_t acquisition, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number < to; number++) {
        put_raw(r, acquisition, number);
        put_image_of(r, acquisition, number, OCT_OK);
    }
}

void open_rings(struct rig *r)
{
    const char *top = getenv("TMPDIR");
    memset(r, 0, sizeof(*r));
    r->sync_interval_s = 0.02;
    r->buffer_bscans = 4096; /* the disk may be as slow as it likes */
    r->plan = volume_plan(N, M, V, D, OCT_SAMPLE_U8);
    snprintf(r->directory, sizeof(r->directory), "%s/recorder.XXXXXX", top ? top : "/tmp");
    assert_non_null(mkdtemp(r->directory));
    r->raw = open_ring(SLOTS, oct_raw_slot_bytes(&r->plan.geometry));
    r->images = open_ring(SLOTS, oct_image_slot_bytes(&r->plan.geometry));
}

void open_recorder(struct rig *r)
{
    const struct oct_recorder_options options = {
        .plan = &r->plan,
        .raw = r->raw,
        .images = r->images,
        .ended_at = &r->ended_at,
        .engine = "none",
        .losses = r->losses,
        .buffer_bscans = r->buffer_bscans,
        .history_bscans = r->history_bscans,
        .sources = r->sources,
        .n_sources = r->n_sources,
        .await_ms = r->await_ms,
    };
    must(oct_recorder_create(&r->recorder, &options, &failure));
}

void open_rig(struct rig *r)
{
    open_rings(r);
    open_recorder(r);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void remove_folder(const struct rig *r)
{
    nftw(r->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void close_recorder(struct rig *r)
{
    oct_ring_close(r->raw);
    oct_ring_close(r->images);
    oct_recorder_destroy(r->recorder);
    r->recorder = NULL;
}

void close_rig(struct rig *r)
{
    if (r->recorder)
        close_recorder(r);
    oct_ring_destroy(r->raw);
    oct_ring_destroy(r->images);
    remove_folder(r);
}

enum oct_err start_in(struct rig *r, const char *directory, bool spectra, bool bscans,
                      struct oct_error *err)
{
    const struct oct_record_settings settings = {.directory = directory,
                                                 .spectra = spectra,
                                                 .bscans = bscans,
                                                 .sync_interval_s = r->sync_interval_s,
                                                 .config_text = "[scan]\n",
                                                 .eye = "OS",
                                                 .pseudonym = "P 7/../x",
                                                 .name_has_pseudonym = true,
                                                 .refractive_index = 1.3};
    return oct_recorder_start(r->recorder, &settings, err);
}

void start(struct rig *r)
{
    must(start_in(r, r->directory, true, true, &failure));
}

struct oct_recorder_status status_of(const struct rig *r)
{
    struct oct_recorder_status s;
    oct_recorder_get_status(r->recorder, &s);
    return s;
}

size_t list_files(const struct rig *r, char paths[][256], size_t most)
{
    char pattern[256];
    glob_t found;
    size_t n = 0;
    snprintf(pattern, sizeof(pattern), "%s/*", r->directory);
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (n = 0; n < found.gl_pathc && n < most; n++)
            snprintf(paths[n], 256, "%s", found.gl_pathv[n]);
        globfree(&found);
    }
    return n;
}

void expect_file(const char *path, uint32_t acquisition, uint64_t volume, uint32_t from,
                 uint32_t to)
{
    struct oct_volume_reader *reader;
    uint16_t spectra[M * N];
    uint8_t valid_lines[M], pixels[M * D];
    must(oct_volume_open(&reader, path, &failure));
    const struct oct_volume_facts *facts = oct_volume_facts(reader);
    assert_int_equal(facts->n_valid, to - from);
    for (uint32_t v = 0; v < V; v++) {
        struct oct_raw_frame raw = {.spectra = spectra, .line_valid = valid_lines};
        bool valid, wanted = v >= from && v < to;
        if (facts->n_samples) {
            must(oct_volume_read_spectra(reader, v, &raw, &valid, &failure));
            assert_int_equal(valid, wanted);
            if (wanted || !strstr(path, ".part")) /* one that was cut off may say anything */
                assert_int_equal(raw.info.sequence, wanted ? volume * V + v + 7 : 0);
            for (uint32_t i = 0; wanted && i < M * N; i++)
                assert_int_equal(spectra[i], (uint16_t)content(acquisition, volume * V + v, i));
        }
        if (facts->depth) {
            must(oct_volume_read_image(reader, v, pixels, &valid, &failure));
            assert_int_equal(valid, wanted);
            for (uint32_t i = 0; wanted && i < M * D; i++)
                assert_int_equal(pixels[i],
                                 (uint8_t)content(acquisition, volume * V + v, i + 5000));
        }
    }
    assert_true(facts->n_samples != 0 || facts->depth != 0);
    oct_volume_reader_destroy(reader);
    assert_non_null(strstr(path, "/P-7----x_OS_"));
}

/* ---- the log ---- */

void listen_to_log(struct ear *ear)
{
    ear->file = tmpfile();
    assert_non_null(ear->file);
    ear->stderr_fd = dup(STDERR_FILENO);
    dup2(fileno(ear->file), STDERR_FILENO);
}

void heard(struct ear *ear, const char *const words[], unsigned counts[], size_t n)
{
    char text[8192];
    dup2(ear->stderr_fd, STDERR_FILENO);
    close(ear->stderr_fd);
    rewind(ear->file);
    text[fread(text, 1, sizeof(text) - 1, ear->file)] = '\0';
    fclose(ear->file);
    for (size_t i = 0; i < n; i++) {
        counts[i] = 0;
        for (const char *at = text; (at = strstr(at, words[i])); at++)
            counts[i]++;
    }
}

void expect_log(struct ear *ear, const char *words, unsigned times)
{
    unsigned count;
    heard(ear, &words, &count, 1);
    if (count != times)
        fail_msg("logged %u times instead of %u: %s", count, times, words);
}
