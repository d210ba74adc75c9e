/* The thread of playback: opens recordings, corrects labels, and reads what is wanted. */
#include "pipeline/base/clock.h"
#include "viewer/model/clock.h"
#include "viewer/play/box.h"
#include "viewer/play/folder.h"
#include "viewer/play/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The slice and the en face picture are read for so long before wishes are looked at again. */
#define PORTION_NS (4 * OCT_NS_PER_MS)
/* They are shown so often while they grow. */
#define SHOW_NS (100 * OCT_NS_PER_MS)

static void notify(struct oct_play *p)
{
    if (p->notify)
        p->notify(p->context);
}

/* ---- the file ---- */

static void close_file(struct oct_play *p)
{
    oct_play_recorded_close(p->recorded);
    p->recorded = NULL;
    oct_view_picture_finish(&p->picture);
    free(p->values);
    p->values = NULL;
    p->has_bscan = false;
    oct_play_fill_begin(&p->slice, 0);
    oct_play_fill_begin(&p->enface, 0);
    pthread_mutex_lock(&p->lock);
    p->box.picture_came = p->box.slice_came = p->box.enface_came = false;
    oct_view_picture_finish(&p->box.picture);
    oct_view_picture_finish(&p->box.slice);
    oct_view_enface_resize(&p->box.enface, 0, 0);
    pthread_mutex_unlock(&p->lock);
}

/* Which file is meant, and which of its volumes. */
static enum oct_err find_path(struct oct_play *p, const struct oct_play_wants *wants, char *path,
                              size_t n_bytes, uint32_t *volume, struct oct_error *err)
{
    const struct oct_view_file *open = p->recorded ? oct_play_recorded_file(p->recorded) : NULL;

    snprintf(path, n_bytes, "%s", wants->path);
    *volume = wants->by > 0 ? 1 : 0;
    if (wants->by != 0 && open && strcmp(open->path, wants->path) == 0 &&
        (wants->by > 0 ? open->volume < open->n_volumes : open->volume > 1)) {
        *volume = wants->by > 0 ? open->volume + 1 : open->volume - 1;
        return OCT_OK;
    }
    if (wants->by != 0)
        return oct_play_folder_neighbour(wants->path, wants->by, path, n_bytes, err);
    if (!wants->or_before || oct_play_folder_has(wants->path))
        return OCT_OK;
    const bool is_written = oct_play_folder_is_written(wants->path);
    if (is_written && oct_play_folder_neighbour(wants->path, -1, path, n_bytes, NULL) == OCT_OK)
        return OCT_OK;
    if (is_written)
        return oct_fail(err, OCT_E_STATE, "%s: it is still being written", wants->path);
    return oct_fail(err, OCT_E_IO, "%s: octd's recording is not to be found on this machine",
                    wants->path);
}

static uint32_t slice_columns(const struct oct_view_file *file)
{
    uint32_t most = OCT_VIEW_SLICE_MOST_VALUES / file->depth;

    most = most > OCT_VIEW_SLICE_MOST_COLUMNS ? OCT_VIEW_SLICE_MOST_COLUMNS : most;
    return file->n_bscans < most ? file->n_bscans : most < 1 ? 1 : most;
}

/* Takes the opened recording over, with room for what will be read of it. False: no memory. */
static bool take_over(struct oct_play *p, struct oct_play_recorded *recorded)
{
    const struct oct_view_file *file = oct_play_recorded_file(recorded);
    const size_t n = file->depth > file->n_lines ? file->depth : file->n_lines;
    const uint32_t columns = slice_columns(file);
    const size_t n_bytes = (size_t)columns * file->depth * sizeof(float);
    float *slice = malloc(n_bytes);

    close_file(p);
    p->recorded = recorded;
    p->values = malloc(n * sizeof(*p->values));
    pthread_mutex_lock(&p->lock);
    struct oct_play_box *b = &p->box;
    b->slice.pixels = slice;
    b->slice.capacity_bytes = slice ? n_bytes : 0;
    b->slice.header = (struct oct_picture_header){
        .sample_type = OCT_SAMPLE_F32, .n_lines = columns, .depth = file->depth};
    const bool fits =
        slice && p->values && oct_view_enface_resize(&b->enface, file->n_bscans, file->n_lines);
    snprintf(b->enface.unit, sizeof(b->enface.unit), "%s", file->log ? "dB" : "counts^2");
    b->enface_share = b->slice_share = 0;
    b->enface_recorded = false;
    pthread_mutex_unlock(&p->lock);
    return fits;
}

static enum oct_err open_file(struct oct_play *p, const struct oct_play_wants *wants,
                              struct oct_error *err)
{
    struct oct_play_recorded *recorded = NULL;
    struct oct_view_file file;
    char path[OCT_VIEW_PATH_BYTES];
    uint32_t volume;
    enum oct_err e = find_path(p, wants, path, sizeof(path), &volume, err);

    if (e == OCT_OK)
        e = oct_play_recorded_open(&recorded, path, p->config, volume, err);
    if (e)
        return e;
    file = *oct_play_recorded_file(recorded);
    oct_play_folder_place(path, &file.place, &file.n_files);
    if (!take_over(p, recorded)) {
        close_file(p);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    oct_play_fill_begin(&p->enface, p->box.enface.n_rows);
    p->slice_line = UINT32_MAX;
    p->looked_for_enface = false;
    pthread_mutex_lock(&p->lock);
    p->box.file = file;
    p->box.opened = true;
    pthread_mutex_unlock(&p->lock);
    return OCT_OK;
}

static void serve_file(struct oct_play *p, const struct oct_play_wants *wants)
{
    struct oct_error err = {.text = ""};

    p->done_number = wants->number;
    if (wants->file)
        open_file(p, wants, &err);
    else
        close_file(p);
    pthread_mutex_lock(&p->lock);
    p->opened_number = wants->number;
    snprintf(p->refusal, sizeof(p->refusal), "%s", err.text);
    p->box.refused = false; /* of a request before, which nobody waits for */
    p->box.opened &= wants->file;
    if (err.text[0]) {
        p->box.refused = true;
        memcpy(p->box.why_not, err.text, sizeof(p->box.why_not));
    }
    pthread_cond_broadcast(&p->answered);
    pthread_mutex_unlock(&p->lock);
    notify(p);
}

/* ---- the label ---- */

bool oct_play_relabels(const struct oct_view_relabel *r)
{
    return r->has_eye || r->has_pseudonym || r->has_verdict;
}

static void serve_label(struct oct_play *p, const struct oct_play_wants *wants)
{
    static const enum oct_volume_mark marks[] = {OCT_MARK_NONE, OCT_MARK_KEEP, OCT_MARK_REPEAT};
    const struct oct_view_relabel *want = &wants->relabel;
    const struct oct_volume_label_change change = {
        .eye = want->has_eye ? want->eye : NULL,
        .pseudonym = want->has_pseudonym ? want->pseudonym : NULL,
        .mark = want->has_verdict ? &marks[want->verdict] : NULL,
    };
    struct oct_volume_label label = {.eye = ""};
    struct oct_error err = {.text = ""};
    enum oct_err e = oct_volume_label_write(want->path, &change, &label, &err);

    pthread_mutex_lock(&p->lock);
    struct oct_play_box *b = &p->box;
    if (e == OCT_OK) {
        b->labelled = true;
        b->label = label;
        memcpy(b->labelled_path, want->path, sizeof(b->labelled_path));
    } else {
        b->not_labelled = true;
        memcpy(b->why_no_label, err.text, sizeof(b->why_no_label));
    }
    pthread_mutex_unlock(&p->lock);
    notify(p);
}

/* ---- B-scan, slice, en face ---- */

static void serve_bscan(struct oct_play *p, uint32_t bscan)
{
    struct oct_error err = {.text = ""};
    bool valid = false;

    oct_play_recorded_read(p->recorded, bscan, &p->picture, &valid, &err);
    p->picture.arrival_ns = oct_view_now_ns();
    p->has_bscan = true;
    p->done_bscan = bscan;
    pthread_mutex_lock(&p->lock);
    struct oct_play_box *b = &p->box;
    oct_view_picture_swap(&b->picture, &p->picture);
    b->picture_came = b->picture.pixels != NULL;
    b->bscan = bscan;
    b->valid = valid;
    snprintf(b->why, sizeof(b->why), "%.150s", err.text);
    pthread_mutex_unlock(&p->lock);
    notify(p);
}

/* Reads a column, and puts it where it stands for others too. */
static void read_column(struct oct_play *p, uint32_t column, uint32_t n_for)
{
    struct oct_play_box *b = &p->box;
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    const uint32_t n = p->slice.n;
    const uint32_t v = (uint32_t)((uint64_t)column * file->n_bscans / n);

    oct_play_recorded_line(p->recorded, v, p->slice_line, p->values, NULL);
    pthread_mutex_lock(&p->lock);
    float *slice = b->slice.pixels;
    for (uint32_t i = 0; i < n_for; i++)
        memcpy(slice + (size_t)(column + i) * file->depth, p->values, file->depth * sizeof(*slice));
    b->slice_of = p->slice_line;
    b->slice_share = oct_play_fill_share(&p->slice);
    b->slice_came = true;
    pthread_mutex_unlock(&p->lock);
}

static void read_row(struct oct_play *p, uint32_t row, uint32_t n_for)
{
    struct oct_view_enface *e = &p->box.enface;
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    const uint32_t v = (uint32_t)((uint64_t)row * file->n_bscans / p->enface.n);

    oct_play_recorded_means(p->recorded, v, p->values, NULL);
    pthread_mutex_lock(&p->lock);
    e->serial++;
    for (uint32_t i = 0; i < n_for; i++) {
        float *to = e->value + (size_t)(row + i) * e->n_columns;
        for (uint32_t c = 0; c < e->n_columns; c++)
            to[c] = p->values[(uint64_t)c * e->n_lines / e->n_columns];
        e->row_serial[row + i] = e->serial;
    }
    p->box.enface_share = oct_play_fill_share(&p->enface);
    p->box.enface_came = true;
    pthread_mutex_unlock(&p->lock);
}

static void show_growth(struct oct_play *p, bool whole)
{
    const uint64_t now_ns = oct_view_now_ns();

    if (!whole && now_ns - p->shown_ns < SHOW_NS)
        return;
    p->shown_ns = now_ns;
    notify(p);
}

static void serve_slice(struct oct_play *p)
{
    const uint64_t end_ns = oct_view_now_ns() + PORTION_NS;
    uint32_t column, n_for;

    while (oct_view_now_ns() < end_ns && oct_play_fill_next(&p->slice, &column, &n_for))
        read_column(p, column, n_for);
    show_growth(p, p->slice.n_done == p->slice.n);
}

/* The one that the file holds, before any is computed. */
static void take_recorded_enface(struct oct_play *p)
{
    struct oct_view_enface copy = {.serial = 0};
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    const bool holds = oct_view_enface_resize(&copy, file->n_bscans, file->n_lines) &&
                       oct_play_recorded_enface(p->recorded, &copy);

    if (holds) {
        struct oct_view_enface *e = &p->box.enface;
        pthread_mutex_lock(&p->lock);
        memcpy(e->value, copy.value, (size_t)e->n_rows * e->n_columns * sizeof(*e->value));
        e->serial++;
        for (uint32_t row = 0; row < e->n_rows; row++)
            e->row_serial[row] = e->serial;
        p->box.enface_share = 1;
        p->box.enface_recorded = p->box.enface_came = true;
        p->enface.n_done = p->enface.n;
        pthread_mutex_unlock(&p->lock);
    }
    oct_view_enface_finish(&copy);
}

static void serve_enface(struct oct_play *p)
{
    const uint64_t end_ns = oct_view_now_ns() + PORTION_NS;
    uint32_t row, n_for;

    if (!p->looked_for_enface) {
        p->looked_for_enface = true;
        take_recorded_enface(p);
    } else
        while (oct_view_now_ns() < end_ns && oct_play_fill_next(&p->enface, &row, &n_for))
            read_row(p, row, n_for);
    show_growth(p, p->enface.n_done == p->enface.n);
}

/* ---- the thread ---- */

/* Does one thing. False: there is nothing to do. A label comes first: another file that was asked
 * for later does not make it wait. */
static bool serve(struct oct_play *p, const struct oct_play_wants *wants)
{
    if (oct_play_relabels(&wants->relabel)) {
        serve_label(p, wants);
        return true;
    }
    if (wants->number != p->done_number) {
        serve_file(p, wants);
        return true;
    }
    if (!p->recorded || wants->seen != p->done_number)
        return false;
    if (!p->has_bscan || wants->bscan != p->done_bscan) {
        serve_bscan(p, wants->bscan);
        return true;
    }
    if (wants->slice_line != p->slice_line) {
        p->slice_line = wants->slice_line;
        oct_play_fill_begin(&p->slice, slice_columns(oct_play_recorded_file(p->recorded)));
    }
    if (p->slice.n_done < p->slice.n) {
        serve_slice(p);
        return true;
    }
    if (p->enface.n_done < p->enface.n && (!wants->gently || !p->looked_for_enface)) {
        serve_enface(p);
        return true;
    }
    return false;
}

/* Under the lock. */
static void take_over_wants(struct oct_play *p, struct oct_play_wants *wants)
{
    *wants = p->wants;
    p->wants.relabel = (struct oct_view_relabel){.has_eye = false};
}

void *oct_play_read(void *context)
{
    struct oct_play *p = context;
    struct oct_play_wants wants;

    pthread_mutex_lock(&p->lock);
    while (!p->ending) {
        const uint64_t n_asked = p->n_asked;
        take_over_wants(p, &wants);
        p->idle = false;
        pthread_mutex_unlock(&p->lock);
        const bool did = serve(p, &wants);
        pthread_mutex_lock(&p->lock);
        if (did || n_asked != p->n_asked)
            continue;
        p->idle = true;
        pthread_cond_broadcast(&p->answered);
        if (!p->ending)
            pthread_cond_wait(&p->asked, &p->lock);
    }
    take_over_wants(p, &wants);
    pthread_mutex_unlock(&p->lock);
    if (oct_play_relabels(&wants.relabel))
        serve_label(p, &wants);
    close_file(p);
    return NULL;
}
