#define _GNU_SOURCE /* NAME_MAX */
#include "viewer/play/play.h"

#include "analysis/enface/enface.h"
#include "analysis/enface/gridded.h"
#include "formats/paths.h"
#include "pipeline/base/clock.h"
#include "pipeline/base/condition.h"
#include "pipeline/base/folder.h"
#include "pipeline/base/thread.h"
#include "pipeline/volume/label.h"
#include "viewer/model/model.h"
#include "viewer/play/exams.h"
#include "viewer/play/follow.h"
#include "viewer/play/layers.h"
#include "viewer/play/recorded.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What the two sides of playback share, between them the lock: the reader's thread takes what is
 * wanted and puts what it read into the box; the owner says what the model wants and gives the
 * model what is in the box. */

/* What the model wants, as of the last turn. */
struct oct_play_wants {
    bool file;                       /* else it is closed */
    struct oct_view_request request; /* its number is the play's own */
    uint64_t seen;                   /* the newest request of which the model has heard */
    struct oct_view_relabel relabel; /* that the thread has not begun */
    uint32_t bscan, slice_line;
    bool layers;     /* of the B-scan, and of all from above */
    uint64_t exams;  /* rises when the folder is to be listed; 0: it is not */
    uint64_t follow; /* the number of a comparison; 0: none */
    char follow_path[OCT_VIEW_PATH_BYTES];
    bool gently; /* octd records: the disk is its own */
};

/* What was read and not taken. */
struct oct_play_box {
    bool opened, refused, labelled, not_labelled;
    bool picture_came, slice_came, enface_came, layers_came, thickness_came, exams_came;
    bool follow_came, before_came;
    struct oct_view_file file;
    struct oct_error why_not, why_no_label;
    char labelled_path[OCT_VIEW_PATH_BYTES];
    struct oct_volume_label label;
    struct oct_view_picture picture;
    struct oct_view_picture slice;       /* of which the thread fills columns */
    struct oct_view_enface enface;       /* of which it fills rows */
    struct oct_view_image layers;        /* of a B-scan, as octd's */
    struct oct_view_thickness thickness; /* of whose maps it fills rows */
    struct oct_view_exam *exams;         /* [n_exams] that were read since */
    unsigned n_exams, n_exam_files, n_no_exams, n_exams_left_out;
    struct oct_view_follow follow; /* of which `before` is swapped */
    struct oct_view_read read;
};

struct oct_play {
    pthread_mutex_t lock; /* guards all down to `box` */
    pthread_cond_t asked, answered;
    bool ending, idle;
    void (*left)(void *context); /* not NULL: the thread frees the play, and calls this */
    void *left_context;
    uint64_t opened_number; /* the request that was opened or refused last */
    struct oct_play_wants wants;
    uint64_t n_asked; /* changes of wants */
    struct oct_play_box box;

    pthread_t thread;
    void (*notify)(void *context);
    void *context;
    const struct oct_config *config;    /* borrowed */
    uint64_t taken_request;             /* the owner's: the model's newest */
    char refusal[OCT_ERROR_TEXT_BYTES]; /* and why the file was refused that it heard of last */

    /* The thread's own. */
    struct oct_play_recorded *recorded; /* NULL: none is open */
    uint64_t done_number;               /* a request */
    bool has_bscan;
    uint32_t done_bscan;
    struct oct_view_picture picture;
    struct oct_play_fill slice, enface, thickness;
    struct oct_play_layers *layers; /* NULL: none were wanted, or none can be found */
    bool has_layers, no_layers;     /* of the B-scan: */
    uint32_t layers_of;
    char **names; /* [n_names] of the folder, of which next_name comes next */
    unsigned n_names, next_name;
    uint64_t done_exams; /* listings that were begun */
    struct oct_play_follow *follow;
    uint64_t done_follow; /* the comparison that was begun */
    bool follows, has_before;
    uint32_t before_of;
    struct oct_view_picture before;
    bool looked_for_enface; /* in the file */
    uint32_t slice_line;
    struct oct_grid *grid; /* of a scan that is no rows; NULL: its B-scans are rows */
    float *rows, *gridded; /* what it is of, [enface.n][M], and what it makes */
    float *values;         /* room for an A-line, or for the means of a B-scan */
    uint64_t shown_ns;
};

/* ---- from coarse to fine ---- */

#define COARSEST 64u

void oct_play_fill_begin(struct oct_play_fill *fill, uint32_t n)
{
    *fill = (struct oct_play_fill){.n = n, .step = COARSEST};
}

bool oct_play_fill_next(struct oct_play_fill *fill, uint32_t *item, uint32_t *n_for)
{
    if (fill->n_done == fill->n)
        return false;
    while (fill->next >= fill->n) {
        fill->step /= 2;
        fill->next = fill->step; /* odd multiples: the even ones were given */
    }
    *item = fill->next;
    *n_for = fill->n - fill->next < fill->step ? fill->n - fill->next : fill->step;
    fill->next += fill->step == COARSEST ? fill->step : 2 * fill->step;
    fill->n_done++;
    return true;
}

double oct_play_fill_share(const struct oct_play_fill *fill)
{
    return fill->n > 0 ? (double)fill->n_done / fill->n : 0;
}

/* ---- the recordings of a folder ---- */

static bool is_hdf5(const char *name)
{
    const char *dot = strrchr(name, '.');
    return name[0] != '.' && dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0);
}

/* What a walk through a folder finds about one name. */
struct walk {
    const char *name;           /* the last part of the path */
    int by;                     /* -1 or 1 */
    char nearest[NAME_MAX + 1]; /* the nearest before, or after it; "": none */
    unsigned n_before, n;       /* of the recordings */
};

static enum oct_err walk(struct walk *w, const char *path, struct oct_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = oct_folder_of(path);
    DIR *entries = folder ? opendir(folder) : NULL;
    enum oct_err e = OCT_OK;
    w->name = slash ? slash + 1 : path;
    if (!folder)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    else if (!entries)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read this folder", folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        if (!is_hdf5(name))
            continue;
        const int order = oct_paths_compare(name, w->name);
        const int nearer = w->nearest[0] ? oct_paths_compare(name, w->nearest) : -w->by;
        w->n++;
        w->n_before += order < 0;
        if (order != 0 && (order > 0) == (w->by > 0) && nearer != 0 && (nearer > 0) != (w->by > 0))
            snprintf(w->nearest, sizeof(w->nearest), "%s", name);
    }
    if (entries)
        closedir(entries);
    free(folder);
    return e;
}

/* The recording of its folder before or after a path. */
static enum oct_err find_neighbour(const char *path, int by, char *found, size_t found_bytes,
                                   struct oct_error *err)
{
    struct walk w = {.by = by < 0 ? -1 : 1};
    const char *slash = strrchr(path, '/');
    const int folder_bytes = slash ? (int)(slash + 1 - path) : 0;
    enum oct_err e = walk(&w, path, err);
    if (e)
        return e;
    if (!w.nearest[0])
        return oct_fail(err, OCT_E_STATE, "%s: it is the %s recording of its folder", w.name,
                        by < 0 ? "first" : "last");
    if (snprintf(found, found_bytes, "%.*s%s", folder_bytes, path, w.nearest) >= (int)found_bytes)
        return oct_fail(err, OCT_E_ARG, "%s: the path is too long", w.nearest);
    return OCT_OK;
}

/* ---- the thread: opens recordings, corrects labels, reads what is wanted ---- */

/* The slice and the en face picture are read for so long before wishes are looked at again. */
#define PORTION_NS (4 * OCT_NS_PER_MS)
/* They are shown so often while they grow. */
#define SHOW_NS (100 * OCT_NS_PER_MS)

static void notify(struct oct_play *p)
{
    if (p->notify)
        p->notify(p->context);
}

/* ---- the folder by patient ---- */

static void forget_names(struct oct_play *p)
{
    for (unsigned i = 0; i < p->n_names; i++)
        free(p->names[i]);
    free(p->names);
    p->names = NULL;
    p->n_names = p->next_name = 0;
}

/* Folder of the open file, with its '/'. */
static void folder_of(const struct oct_play *p, char folder[OCT_VIEW_PATH_BYTES])
{
    const char *path = oct_play_recorded_file(p->recorded)->path, *slash = strrchr(path, '/');
    snprintf(folder, OCT_VIEW_PATH_BYTES, "%.*s", slash ? (int)(slash + 1 - path) : 0, path);
}

static void list_names(struct oct_play *p)
{
    char folder[OCT_VIEW_PATH_BYTES];
    unsigned room = 0, n_left_out = 0;
    folder_of(p, folder);
    DIR *entries = opendir(folder[0] ? folder : ".");
    forget_names(p);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        if (!is_hdf5(entry->d_name))
            continue;
        if (p->n_names == OCT_VIEW_MOST_EXAMS) {
            n_left_out++;
            continue;
        }
        if (p->n_names == room) {
            char **names = realloc(p->names, (2 * room + 64) * sizeof(char *));
            if (!names)
                break;
            p->names = names;
            room = 2 * room + 64;
        }
        p->names[p->n_names] = strdup(entry->d_name);
        p->n_names += p->names[p->n_names] != NULL;
    }
    if (entries)
        closedir(entries);
    pthread_mutex_lock(&p->lock);
    free(p->box.exams);
    p->box.exams = NULL;
    p->box.n_exams = p->box.n_no_exams = 0;
    p->box.n_exam_files = p->n_names;
    p->box.n_exams_left_out = n_left_out;
    p->box.exams_came = true;
    pthread_mutex_unlock(&p->lock);
}

/* Lists the folder, or reads another of its files. False: all were read. */
static bool serve_exams(struct oct_play *p, const struct oct_play_wants *wants)
{
    char folder[OCT_VIEW_PATH_BYTES];
    if (wants->exams != p->done_exams) {
        p->done_exams = wants->exams;
        list_names(p);
    }
    if (p->next_name == p->n_names)
        return false;
    folder_of(p, folder);
    const char *name = p->names[p->next_name++];
    struct oct_view_exam *exam = malloc(sizeof(*exam));
    const bool is = exam && oct_play_exam_read(folder, name, exam);
    pthread_mutex_lock(&p->lock);
    struct oct_view_exam *exams =
        is ? realloc(p->box.exams, (p->box.n_exams + 1) * sizeof(*exams)) : NULL;
    if (exams) {
        p->box.exams = exams;
        exams[p->box.n_exams++] = *exam;
    } else {
        p->box.n_no_exams++;
    }
    p->box.exams_came = true;
    pthread_mutex_unlock(&p->lock);
    free(exam);
    const uint64_t now_ns = oct_clock_ns();
    if (p->next_name == p->n_names || now_ns - p->shown_ns >= SHOW_NS) {
        p->shown_ns = now_ns;
        notify(p);
    }
    return true;
}

/* ---- the file ---- */

static void close_follow(struct oct_play *p)
{
    oct_play_follow_close(p->follow);
    oct_view_picture_finish(&p->before);
    p->follow = NULL;
    p->follows = p->has_before = false;
}

static void close_file(struct oct_play *p)
{
    close_follow(p);
    oct_play_layers_destroy(p->layers);
    oct_play_recorded_close(p->recorded);
    p->layers = NULL;
    p->recorded = NULL;
    p->has_layers = p->no_layers = false;
    oct_view_picture_finish(&p->picture);
    free(p->values);
    free(p->rows);
    free(p->gridded);
    oct_grid_destroy(p->grid);
    p->values = p->rows = p->gridded = NULL;
    p->grid = NULL;
    p->has_bscan = false;
    oct_play_fill_begin(&p->slice, 0);
    oct_play_fill_begin(&p->enface, 0);
    oct_play_fill_begin(&p->thickness, 0);
    pthread_mutex_lock(&p->lock);
    p->box.picture_came = p->box.slice_came = p->box.enface_came = false;
    p->box.layers_came = p->box.thickness_came = false;
    p->box.follow_came = p->box.before_came = false;
    oct_view_thickness_finish(&p->box.thickness);
    oct_view_follow_finish(&p->box.follow);
    oct_view_picture_finish(&p->box.picture);
    oct_view_picture_finish(&p->box.slice);
    oct_view_enface_resize(&p->box.enface, 0, 0);
    pthread_mutex_unlock(&p->lock);
}

/* Which file is meant, and which of its volumes. */
static enum oct_err find_path(struct oct_play *p, const struct oct_view_request *r, char *path,
                              size_t n_bytes, uint32_t *volume, struct oct_error *err)
{
    const struct oct_view_file *open = p->recorded ? oct_play_recorded_file(p->recorded) : NULL;
    char part[OCT_VIEW_PATH_BYTES + 8];
    snprintf(path, n_bytes, "%s", r->path);
    *volume = r->by > 0 ? 1 : 0;
    if (r->by != 0 && open && strcmp(open->path, r->path) == 0 &&
        (r->by > 0 ? open->volume < open->n_volumes : open->volume > 1)) {
        *volume = r->by > 0 ? open->volume + 1 : open->volume - 1;
        return OCT_OK;
    }
    if (r->by != 0)
        return find_neighbour(r->path, r->by, path, n_bytes, err);
    if (!r->or_before || access(r->path, F_OK) == 0)
        return OCT_OK;
    snprintf(part, sizeof(part), "%s.part", r->path); /* of one that is still being written */
    const bool is_written = access(part, F_OK) == 0;
    if (is_written && find_neighbour(r->path, -1, path, n_bytes, NULL) == OCT_OK)
        return OCT_OK;
    if (is_written)
        return oct_fail(err, OCT_E_STATE, "%s: it is still being written", r->path);
    return oct_fail(err, OCT_E_IO, "%s: octd's recording is not to be found on this machine",
                    r->path);
}

static uint32_t slice_columns(const struct oct_view_file *file)
{
    uint32_t most = OCT_VIEW_SLICE_MOST_VALUES / file->depth;
    most = most > OCT_VIEW_SLICE_MOST_COLUMNS ? OCT_VIEW_SLICE_MOST_COLUMNS : most;
    return file->n_bscans < most ? file->n_bscans : most < 1 ? 1 : most;
}

static uint32_t grid_rows(const struct oct_view_file *file)
{
    const uint32_t step = oct_enface_row_step(file->n_bscans, file->n_lines);
    return (file->n_bscans + step - 1) / step;
}

/* As octd and octctl analyse grid it (analysis/enface/gridded.h). Without a grid B-scans stay
 * rows. */
static void make_grid(struct oct_play *p)
{
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    const struct oct_scan *scan = oct_play_recorded_scan(p->recorded);
    const struct oct_image_form form = {.of_volume = true,
                                        .type = OCT_SAMPLE_F32,
                                        .rank = 2,
                                        .dims = {grid_rows(file), file->n_lines},
                                        .axes = {"bscan", "line"}};
    const size_t n = (size_t)form.dims[0] * file->n_lines;
    uint32_t height, width;
    double pitch_um;
    if (scan->n_bscans == 0 || !oct_gridded_is_wanted(scan, &form) ||
        oct_grid_create(&p->grid, scan, file->n_bscans, &form, NULL))
        return;
    oct_grid_size(p->grid, &height, &width, &pitch_um);
    p->rows = malloc(n * sizeof(*p->rows));
    p->gridded = malloc((size_t)height * width * sizeof(*p->gridded));
    for (size_t i = 0; p->rows && i < n; i++)
        p->rows[i] = NAN;
}

/* Room for the picture from above. */
static bool make_enface(struct oct_play *p)
{
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    struct oct_view_enface *e = &p->box.enface;
    uint32_t height, width;
    double pitch_um;
    if (!p->grid)
        return oct_view_enface_resize(e, file->n_bscans, file->n_lines);
    oct_grid_size(p->grid, &height, &width, &pitch_um);
    const bool fits = p->rows && p->gridded && oct_view_enface_resize(e, height, width);
    e->spacing_um = pitch_um;
    return fits;
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
    make_grid(p);
    pthread_mutex_lock(&p->lock);
    struct oct_play_box *b = &p->box;
    b->slice.pixels = slice;
    b->slice.capacity_bytes = slice ? n_bytes : 0;
    b->slice.header = (struct oct_picture_header){
        .sample_type = OCT_SAMPLE_F32, .n_lines = columns, .depth = file->depth};
    const bool fits = slice && p->values && make_enface(p);
    snprintf(b->enface.unit, sizeof(b->enface.unit), "%s", file->log ? "dB" : "counts^2");
    b->read = (struct oct_view_read){.bscan = 0};
    pthread_mutex_unlock(&p->lock);
    return fits;
}

static enum oct_err open_file(struct oct_play *p, const struct oct_play_wants *wants,
                              struct oct_error *err)
{
    struct oct_play_recorded *recorded = NULL;
    struct oct_view_file file;
    struct walk folder = {.by = 1};
    char path[OCT_VIEW_PATH_BYTES];
    uint32_t volume;
    enum oct_err e = find_path(p, &wants->request, path, sizeof(path), &volume, err);
    if (e == OCT_OK)
        e = oct_play_recorded_open(&recorded, path, p->config, volume, err);
    if (e)
        return e;
    file = *oct_play_recorded_file(recorded);
    if (walk(&folder, path, NULL) == OCT_OK) {
        file.n_files = folder.n;
        file.place = folder.n_before + 1;
    }
    if (!take_over(p, recorded)) {
        close_file(p);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    oct_play_fill_begin(&p->enface, p->grid ? grid_rows(&file) : p->box.enface.n_rows);
    if (!p->grid)
        file.scan = (struct oct_scan){.n_bscans = 0};
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
    p->done_number = wants->request.number;
    if (wants->file)
        open_file(p, wants, &err);
    else
        close_file(p);
    pthread_mutex_lock(&p->lock);
    p->opened_number = wants->request.number;
    p->box.refused = err.text[0]; /* that of a request before is nobody's */
    p->box.opened &= wants->file;
    p->box.why_not = err;
    pthread_cond_broadcast(&p->answered);
    pthread_mutex_unlock(&p->lock);
    notify(p);
}

/* ---- the label ---- */

#define MOST_TRIES 50

/* Whether anything of a label is to be corrected. */
static bool oct_play_relabels(const struct oct_view_relabel *r)
{
    return r->has_eye || r->has_pseudonym || r->has_verdict;
}

static void serve_label(struct oct_play *p, const struct oct_play_wants *wants)
{
    const struct oct_view_relabel *want = &wants->relabel;
    const struct oct_volume_label_change change = {
        .eye = want->has_eye ? want->eye : NULL,
        .pseudonym = want->has_pseudonym ? want->pseudonym : NULL,
        .mark = want->has_verdict ? &want->verdict : NULL,
    };
    struct oct_volume_label label = {.eye = ""};
    struct oct_error err = {.text = ""};
    enum oct_err e = oct_volume_label_write(want->path, &change, &label, &err);
    /* Told to end, the look at the file is interrupted until the owner has taken the signal. */
    for (int i = 0; e == OCT_E_CLOSED && i < MOST_TRIES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 20 * OCT_NS_PER_MS}, NULL);
        e = oct_volume_label_write(want->path, &change, &label, &err);
    }
    pthread_mutex_lock(&p->lock);
    struct oct_play_box *b = &p->box;
    if (e) {
        b->not_labelled = true;
        b->why_no_label = err;
    } else {
        b->labelled = true;
        b->label = label;
        memcpy(b->labelled_path, want->path, sizeof(b->labelled_path));
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
    p->picture.arrival_ns = oct_clock_ns();
    p->has_bscan = true;
    p->done_bscan = bscan;
    pthread_mutex_lock(&p->lock);
    struct oct_play_box *b = &p->box;
    oct_view_picture_swap(&b->picture, &p->picture);
    b->picture_came = b->picture.pixels != NULL;
    b->read.bscan = bscan;
    b->read.valid = valid;
    snprintf(b->read.why, sizeof(b->read.why), "%.150s", err.text);
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
    b->read.slice_of = p->slice_line;
    b->read.slice_share = oct_play_fill_share(&p->slice);
    b->slice_came = true;
    pthread_mutex_unlock(&p->lock);
}

/* The newest of the B-scans that share a row of the grid (oct_enface_row_step). */
static void read_grid_row(struct oct_play *p, uint32_t row)
{
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    const uint32_t end = (row + 1) * oct_enface_row_step(file->n_bscans, file->n_lines);
    const uint32_t v = (end < file->n_bscans ? end : file->n_bscans) - 1;
    oct_play_recorded_means(p->recorded, v, p->rows + (size_t)row * file->n_lines, NULL);
}

/* What was read so far, on the grid. */
static void put_grid(struct oct_play *p)
{
    struct oct_view_enface *e = &p->box.enface;
    oct_grid_apply(p->grid, p->rows, p->gridded);
    pthread_mutex_lock(&p->lock);
    e->serial++;
    for (uint32_t row = 0; row < e->n_rows; row++) {
        const float *from =
            p->gridded + (size_t)((uint64_t)row * e->n_bscans / e->n_rows) * e->n_lines;
        for (uint32_t c = 0; c < e->n_columns; c++)
            e->value[(size_t)row * e->n_columns + c] =
                from[(uint64_t)c * e->n_lines / e->n_columns];
        e->row_serial[row] = e->serial;
    }
    p->box.read.enface_share = oct_play_fill_share(&p->enface);
    p->box.enface_came = true;
    pthread_mutex_unlock(&p->lock);
}

static void read_row(struct oct_play *p, uint32_t row, uint32_t n_for)
{
    if (p->grid) {
        read_grid_row(p, row);
        return;
    }
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
    p->box.read.enface_share = oct_play_fill_share(&p->enface);
    p->box.enface_came = true;
    pthread_mutex_unlock(&p->lock);
}

/* ---- layers ---- */

/* Makes ready to find layers. False: there are none, and the box says why. */
static bool open_layers(struct oct_play *p)
{
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    struct oct_error err = {.text = ""};
    struct oct_view_thickness *t = &p->box.thickness;
    if (p->layers || p->no_layers)
        return p->layers;
    enum oct_err e = oct_play_layers_create(&p->layers, p->recorded, &err);
    pthread_mutex_lock(&p->lock);
    for (unsigned i = 0; i < OCT_N_MAPS && !e; i++) {
        if (!oct_view_enface_resize(&t->map[i], file->n_bscans, file->n_lines))
            e = oct_fail(&err, OCT_E_NO_MEMORY, "out of memory");
        snprintf(t->map[i].unit, sizeof(t->map[i].unit), "%s",
                 isfinite(file->axial_um) ? "\u00b5m" : "pixels");
    }
    snprintf(t->why, sizeof(t->why), "%.150s", err.text);
    p->box.thickness_came = true;
    pthread_mutex_unlock(&p->lock);
    p->no_layers = e != OCT_OK;
    if (!e)
        oct_play_fill_begin(&p->thickness, t->map[0].n_rows);
    return !e;
}

/* Rows of the maps that B-scan v stands for, by its layers (NULL: it has none). Under the lock. */
static void put_thickness(struct oct_play *p, const struct oct_sequence_layers *layers,
                          uint32_t row, uint32_t n_for)
{
    oct_play_thickness(layers, oct_play_recorded_file(p->recorded)->axial_um, p->box.thickness.map,
                       row);
    for (unsigned i = 0; i < OCT_N_MAPS; i++) {
        struct oct_view_enface *e = &p->box.thickness.map[i];
        float *from = e->value + (size_t)row * e->n_columns;
        e->serial++;
        e->row_serial[row] = e->serial;
        for (uint32_t k = 1; k < n_for; k++) {
            memcpy(from + (size_t)k * e->n_columns, from, e->n_columns * sizeof(*from));
            e->row_serial[row + k] = e->serial;
        }
    }
    p->box.thickness.any |= layers && layers->n_found > 0;
    p->box.thickness_came = true;
}

/* Of the B-scan that is shown. */
static void serve_layers(struct oct_play *p, uint32_t bscan)
{
    const uint32_t n_lines = oct_play_recorded_file(p->recorded)->n_lines;
    const struct oct_sequence_layers *found = oct_play_layers_find(p->layers, bscan);
    const struct oct_picture_header *h = oct_play_layers_of(p->layers);
    struct oct_image_header header = {.frame_num = h->frame_num,
                                      .type = OCT_SAMPLE_F32,
                                      .rank = 2,
                                      .dims = {OCT_SURFACES_N_ROWS, n_lines}};
    memcpy(header.acquisition_id, h->acquisition_id, sizeof(header.acquisition_id));
    p->has_layers = true;
    p->layers_of = bscan;
    if (!found)
        return;
    pthread_mutex_lock(&p->lock);
    struct oct_view_image *image = &p->box.layers;
    const size_t n_bytes = oct_view_image_bytes(&header);
    p->box.layers_came = oct_view_make_room(&image->values, &image->capacity_bytes, n_bytes);
    for (unsigned i = 0; i < OCT_N_LAYERS && p->box.layers_came; i++) {
        float *rows = image->values;
        memcpy(rows + (size_t)i * n_lines, found->position[i], n_lines * sizeof(*rows));
        memcpy(rows + (size_t)(OCT_N_LAYERS + i) * n_lines, found->quality[i],
               n_lines * sizeof(*rows));
    }
    image->header = header;
    pthread_mutex_unlock(&p->lock);
    notify(p);
}

static void read_thickness(struct oct_play *p, uint32_t row, uint32_t n_for)
{
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    const uint32_t v = (uint32_t)((uint64_t)row * file->n_bscans / p->thickness.n);
    const struct oct_sequence_layers *found = oct_play_layers_find(p->layers, v);
    pthread_mutex_lock(&p->lock);
    put_thickness(p, found, row, n_for);
    p->box.thickness.share = oct_play_fill_share(&p->thickness);
    pthread_mutex_unlock(&p->lock);
}

/* The fovea, and the grid about it, where all lengths are known. */
static void measure_thickness(struct oct_play *p)
{
    const struct oct_view_file *file = oct_play_recorded_file(p->recorded);
    struct oct_view_thickness *t = &p->box.thickness, found = {.share = 0};
    const struct oct_view_enface *e = &t->map[OCT_MAP_RETINA];
    const double bscan_um = file->slow_um * file->n_bscans / e->n_rows;
    const double line_um = file->lateral_um * file->n_lines / e->n_columns;
    if (!(bscan_um > 0 && line_um > 0 && isfinite(file->axial_um)))
        return;
    found.has_fovea = oct_thickness_fovea(e->value, e->n_rows, e->n_columns, bscan_um, line_um,
                                          &found.fovea_row, &found.fovea_column);
    const struct oct_etdrs_setup setup = {.n_bscans = e->n_rows,
                                          .n_lines = e->n_columns,
                                          .bscan_um = bscan_um,
                                          .line_um = line_um,
                                          .fovea_b = found.fovea_row,
                                          .fovea_j = found.fovea_column,
                                          .has_sides = file->eye[0] != '\0',
                                          .nasal_is_right = strcmp(file->eye, "OS") != 0};
    for (unsigned i = 0; i < OCT_N_MAPS && found.has_fovea; i++)
        oct_etdrs_measure(&setup, t->map[i].value, &found.etdrs[i]);
    pthread_mutex_lock(&p->lock);
    t->has_fovea = found.has_fovea;
    t->fovea_row = found.fovea_row;
    t->fovea_column = found.fovea_column;
    memcpy(t->etdrs, found.etdrs, sizeof(t->etdrs));
    p->box.thickness_came = true;
    pthread_mutex_unlock(&p->lock);
}

/* Reads columns or rows for a while, from coarse to fine. */
static void serve_fill(struct oct_play *p, struct oct_play_fill *fill,
                       void (*read)(struct oct_play *p, uint32_t item, uint32_t n_for))
{
    const uint64_t end_ns = oct_clock_ns() + PORTION_NS;
    uint32_t item, n_for;
    while (oct_clock_ns() < end_ns && oct_play_fill_next(fill, &item, &n_for))
        read(p, item, n_for);
    const uint64_t now_ns = oct_clock_ns();
    if (fill->n_done == fill->n || now_ns - p->shown_ns >= SHOW_NS) {
        p->shown_ns = now_ns;
        if (p->grid && fill == &p->enface)
            put_grid(p);
        notify(p);
    }
}

/* The one that the file holds, before any is computed. */
static void take_recorded_enface(struct oct_play *p)
{
    struct oct_view_enface copy = {.serial = 0};
    p->looked_for_enface = true;
    const bool holds =
        oct_view_enface_resize(&copy, p->box.enface.n_bscans, p->box.enface.n_lines) &&
        oct_play_recorded_enface(p->recorded, &copy);

    if (holds) {
        struct oct_view_enface *e = &p->box.enface;
        pthread_mutex_lock(&p->lock);
        memcpy(e->value, copy.value, (size_t)e->n_rows * e->n_columns * sizeof(*e->value));
        e->serial++;
        for (uint32_t row = 0; row < e->n_rows; row++)
            e->row_serial[row] = e->serial;
        p->box.read.enface_share = 1;
        p->box.read.enface_recorded = p->box.enface_came = true;
        p->enface.n_done = p->enface.n;
        pthread_mutex_unlock(&p->lock);
    }
    oct_view_enface_finish(&copy);
    notify(p);
}

/* What there is of layers to find. False: nothing. */
static bool serve_thickness(struct oct_play *p)
{
    if (!p->layers || p->thickness.n_done == p->thickness.n)
        return false;
    serve_fill(p, &p->thickness, read_thickness);
    if (p->thickness.n_done == p->thickness.n)
        measure_thickness(p);
    return true;
}

/* ---- follow-up ---- */

static void put_follow(struct oct_play *p, enum oct_view_follow_state state, double share,
                       const struct oct_error *err)
{
    pthread_mutex_lock(&p->lock);
    p->box.follow.state = state;
    p->box.follow.share = share;
    snprintf(p->box.follow.why, sizeof(p->box.follow.why), "%.190s", err ? err->text : "");
    p->box.follow_came = true;
    pthread_mutex_unlock(&p->lock);
    notify(p);
}

/* The other exam is open and read: puts it onto the open one. */
static void register_follow(struct oct_play *p)
{
    struct oct_view_follow found = {.is_on = false};
    struct oct_error err = {.text = ""};
    const enum oct_err e =
        oct_play_follow_register(p->follow, &p->box.enface, p->box.thickness.map, &found, &err);
    p->follows = e == OCT_OK;
    pthread_mutex_lock(&p->lock);
    struct oct_view_follow *f = &p->box.follow;
    for (unsigned i = 0; i < OCT_N_MAPS; i++) {
        const struct oct_view_enface before = f->change[i];
        f->change[i] = found.change[i];
        found.change[i] = before;
        f->mean_change[i] = found.mean_change[i];
    }
    memcpy(f->shift_um, found.shift_um, sizeof(f->shift_um));
    f->score = found.score;
    pthread_mutex_unlock(&p->lock);
    oct_view_follow_finish(&found);
    put_follow(p, e ? OCT_FOLLOW_FAILED : OCT_FOLLOW_FOUND, 1, e ? &err : NULL);
}

/* Of the shown B-scan, by the other exam. */
static void serve_before(struct oct_play *p, uint32_t bscan)
{
    uint32_t at = 0;
    const bool has = oct_play_follow_bscan(p->follow, bscan, &at, &p->before);
    p->has_before = true;
    p->before_of = bscan;
    pthread_mutex_lock(&p->lock);
    if (has)
        oct_view_picture_swap(&p->box.follow.before, &p->before);
    p->box.follow.has_before = has;
    p->box.follow.before_of = bscan;
    p->box.follow.bscan = at;
    p->box.before_came = true;
    pthread_mutex_unlock(&p->lock);
    notify(p);
}

/* Opens the other exam, reads of it for a while, or shows its B-scan. False: nothing is to do. */
static bool serve_follow(struct oct_play *p, const struct oct_play_wants *wants)
{
    struct oct_error err = {.text = ""};
    double share = 0;
    if (wants->follow != p->done_follow) {
        close_follow(p);
        pthread_mutex_lock(&p->lock);
        p->done_follow = wants->follow;
        p->box.follow_came = p->box.before_came = false; /* of the one before */
        pthread_mutex_unlock(&p->lock);
        const enum oct_err e = oct_play_follow_open(&p->follow, wants->follow_path, p->config,
                                                    oct_play_recorded_file(p->recorded), &err);
        put_follow(p, e ? OCT_FOLLOW_FAILED : OCT_FOLLOW_READS, 0, &err);
        return true;
    }
    if (!p->follow)
        return false;
    if (p->follows) {
        if (p->has_before && p->before_of == wants->bscan)
            return false;
        serve_before(p, wants->bscan);
        return true;
    }
    const uint64_t end_ns = oct_clock_ns() + PORTION_NS;
    bool goes_on = true;
    while (goes_on && oct_clock_ns() < end_ns)
        goes_on = oct_play_follow_read(p->follow, &share);
    if (goes_on) {
        put_follow(p, OCT_FOLLOW_READS, share, NULL);
        return true;
    }
    register_follow(p);
    if (!p->follows)
        close_follow(p);
    return true;
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
    if (wants->request.number != p->done_number) {
        serve_file(p, wants);
        return true;
    }
    if (!p->recorded || wants->seen != p->done_number)
        return false;
    if (!p->has_bscan || wants->bscan != p->done_bscan) {
        serve_bscan(p, wants->bscan);
        return true;
    }
    if (wants->layers && open_layers(p) && (!p->has_layers || wants->bscan != p->layers_of)) {
        serve_layers(p, wants->bscan);
        return true;
    }
    if (wants->exams && serve_exams(p, wants))
        return true;
    if (p->follows && wants->follow == p->done_follow && serve_follow(p, wants))
        return true;
    if (p->follow && !wants->follow)
        close_follow(p);
    if (wants->slice_line != p->slice_line) {
        p->slice_line = wants->slice_line;
        oct_play_fill_begin(&p->slice, slice_columns(oct_play_recorded_file(p->recorded)));
    }
    if (p->slice.n_done < p->slice.n) {
        serve_fill(p, &p->slice, read_column);
        return true;
    }
    if (wants->gently && p->looked_for_enface)
        return false;
    if (p->enface.n_done == p->enface.n)
        return (wants->layers && serve_thickness(p)) ||
               (wants->layers && wants->follow && serve_follow(p, wants));
    if (p->looked_for_enface)
        serve_fill(p, &p->enface, read_row);
    else
        take_recorded_enface(p);
    return true;
}

static void free_play(struct oct_play *p)
{
    oct_view_enface_finish(&p->box.enface);
    oct_view_image_finish(&p->box.layers);
    free(p->box.exams);
    pthread_cond_destroy(&p->asked);
    pthread_cond_destroy(&p->answered);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* The thread: works until the owner ends it. context: the struct oct_play. */
static void *oct_play_read(void *context)
{
    struct oct_play *p = context;
    struct oct_play_wants wants;
    pthread_mutex_lock(&p->lock);
    while (!p->ending) {
        const uint64_t n_asked = p->n_asked;
        wants = p->wants;
        p->wants.relabel.has_eye = p->wants.relabel.has_pseudonym = p->wants.relabel.has_verdict =
            false;
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
    wants = p->wants;
    pthread_mutex_unlock(&p->lock);
    if (oct_play_relabels(&wants.relabel))
        serve_label(p, &wants);
    close_file(p);
    forget_names(p);
    void (*left)(void *) = p->left;
    void *left_context = p->left_context;
    if (left) {
        free_play(p);
        left(left_context);
    }
    return NULL;
}

/* ---- the model's side ---- */

enum oct_err oct_play_create(struct oct_play **play, const struct oct_config *config,
                             void (*notify_owner)(void *context), void *context,
                             struct oct_error *err)
{
    struct oct_play *p = calloc(1, sizeof(*p));
    *play = NULL;
    if (!p)
        return oct_fail(err, OCT_E_NO_MEMORY, "playback: out of memory");
    p->config = config;
    p->notify = notify_owner;
    p->context = context;
    p->idle = true;
    pthread_mutex_init(&p->lock, NULL);
    oct_condition_init(&p->asked);
    oct_condition_init(&p->answered);
    enum oct_err e =
        oct_thread_start(&p->thread, "octview-play", oct_play_read, p, "playback", err);
    if (e)
        free_play(p);
    else
        *play = p;
    return e;
}

/* Under the lock. */
static void wake(struct oct_play *p)
{
    p->n_asked++;
    p->idle = false;
    pthread_cond_signal(&p->asked);
}

/* Joins a correction to what the thread has not begun; one of another file than that waits in the
 * model. True: there is one. */
static bool take_relabel(struct oct_play_wants *w, struct oct_view_relabel *from)
{
    struct oct_view_relabel *to = &w->relabel;
    if (!oct_play_relabels(from) || (oct_play_relabels(to) && strcmp(to->path, from->path) != 0))
        return false;
    memcpy(to->path, from->path, sizeof(to->path));
    if (from->has_eye)
        memcpy(to->eye, from->eye, sizeof(to->eye));
    if (from->has_pseudonym)
        memcpy(to->pseudonym, from->pseudonym, sizeof(to->pseudonym));
    if (from->has_verdict)
        to->verdict = from->verdict;
    to->has_eye |= from->has_eye;
    to->has_pseudonym |= from->has_pseudonym;
    to->has_verdict |= from->has_verdict;
    *from = (struct oct_view_relabel){.has_eye = false};
    return true;
}

static void take_wants(struct oct_play *p, struct oct_view_model *model)
{
    struct oct_view_playback *playback = &model->playback;
    struct oct_play_wants *w = &p->wants;
    const struct oct_play_wants before = *w;
    const bool file = playback->active || playback->opens;
    if (playback->opens && playback->request.number != p->taken_request) {
        p->taken_request = playback->request.number;
        w->request = playback->request;
        w->request.number = before.request.number + 1;
    } else if (w->file && !file) {
        w->request.number++;
    }
    w->file = file;
    w->bscan = playback->wanted;
    w->slice_line = playback->slice_line;
    w->layers = oct_view_playback_has_layers(model);
    w->exams = oct_view_exams_are_shown(model) ? model->exams.asked : 0;
    w->follow = playback->follow.is_on ? playback->follow.number : 0;
    if (w->follow && w->follow != before.follow)
        memcpy(w->follow_path, playback->follow.path, sizeof(w->follow_path));
    w->gently = model->daemon.reachable && model->daemon.record.active;
    if (take_relabel(w, &playback->relabel) || before.request.number != w->request.number ||
        before.bscan != w->bscan || before.slice_line != w->slice_line ||
        before.layers != w->layers || before.exams != w->exams || before.follow != w->follow ||
        before.gently != w->gently)
        wake(p);
}

/* What came of the newest request for a file. Under the lock. */
static bool send_file(struct oct_play *p, struct oct_view_model *model)
{
    struct oct_play_box *b = &p->box;
    const bool opened = b->opened, refused = b->refused;
    if (p->opened_number != p->wants.request.number || (!opened && !refused))
        return false;
    b->opened = b->refused = false;
    snprintf(p->refusal, sizeof(p->refusal), "%s", refused ? b->why_not.text : "");
    if (opened)
        oct_view_playback_opened(model, &b->file);
    if (refused && !opened)
        oct_view_playback_refused(model, b->why_not.text);
    else if (refused) /* the one that was asked for before that stays open */
        oct_view_model_say(model, "%s", b->why_not.text);
    p->wants.seen = p->wants.request.number;
    wake(p); /* B-scan and A-line may be those of the file before */
    return true;
}

static bool send_label(struct oct_play *p, struct oct_view_model *model)
{
    struct oct_play_box *b = &p->box;
    const bool came = b->labelled || b->not_labelled;
    if (b->labelled)
        oct_view_playback_labelled(model, b->labelled_path, b->label.eye, b->label.pseudonym,
                                   b->label.mark);
    if (b->not_labelled)
        oct_view_model_say(model, "the label stays as it was: %s", b->why_no_label.text);
    b->labelled = b->not_labelled = false;
    return came;
}

/* Copies rows that changed since the last time. */
static void copy_enface(const struct oct_view_enface *from, struct oct_view_enface *to)
{
    const bool anew = to->n_bscans != from->n_bscans || to->n_lines != from->n_lines;
    const size_t n = from->n_columns;
    if (anew && !oct_view_enface_resize(to, from->n_bscans, from->n_lines))
        return;
    for (uint32_t row = 0; row < from->n_rows; row++) {
        if (!anew && from->row_serial[row] <= to->serial)
            continue;
        memcpy(to->value + row * n, from->value + row * n, n * sizeof(*to->value));
        to->row_serial[row] = from->row_serial[row];
    }
    to->serial = from->serial;
    memcpy(to->unit, from->unit, sizeof(to->unit));
    to->spacing_um = from->spacing_um;
    oct_enface_limits(to->value, to->n_rows * n, &to->lo, &to->hi);
}

static void copy_thickness(const struct oct_view_thickness *from, struct oct_view_thickness *to)
{
    for (unsigned i = 0; i < OCT_N_MAPS; i++)
        copy_enface(&from->map[i], &to->map[i]);
    to->share = from->share;
    to->any = from->any;
    memcpy(to->why, from->why, sizeof(to->why));
    to->has_fovea = from->has_fovea;
    to->fovea_row = from->fovea_row;
    to->fovea_column = from->fovea_column;
    memcpy(to->etdrs, from->etdrs, sizeof(to->etdrs));
}

static void copy_exams(struct oct_play_box *b, struct oct_view_exams *to)
{
    to->n_files = b->n_exam_files;
    to->n_others = b->n_no_exams;
    to->n_left_out = b->n_exams_left_out;
    oct_view_exams_add(to, b->exams, b->n_exams);
    free(b->exams);
    b->exams = NULL;
    b->n_exams = 0;
}

#define LEAST_CHANGE_UM 20.0 /* at the ends of the colours */

static void copy_follow(struct oct_play_box *b, struct oct_view_follow *to)
{
    const struct oct_view_follow *from = &b->follow;
    to->state = from->state;
    to->share = from->share;
    memcpy(to->why, from->why, sizeof(to->why));
    memcpy(to->shift_um, from->shift_um, sizeof(to->shift_um));
    memcpy(to->mean_change, from->mean_change, sizeof(to->mean_change));
    to->score = from->score;
    for (unsigned i = 0; i < OCT_N_MAPS && from->state == OCT_FOLLOW_FOUND; i++) {
        struct oct_view_enface *e = &to->change[i];
        copy_enface(&from->change[i], e);
        e->hi = fmax(LEAST_CHANGE_UM, fmax(fabs(e->lo), fabs(e->hi)));
        e->lo = -e->hi;
    }
    if (b->before_came) {
        to->has_before = from->has_before;
        to->before_of = from->before_of;
        to->bscan = from->bscan;
        if (from->has_before)
            oct_view_picture_swap(&to->before, &b->follow.before);
        to->serial++;
    }
}

/* What was read of the file that the model shows. Under the lock. */
static bool send_pictures(struct oct_play *p, struct oct_view_model *model)
{
    struct oct_view_playback *playback = &model->playback;
    struct oct_play_box *b = &p->box;
    const bool came = b->picture_came || b->slice_came || b->enface_came || b->layers_came ||
                      b->thickness_came || b->exams_came || b->follow_came || b->before_came;
    if (!playback->active || p->wants.seen != p->opened_number)
        return false;
    if (b->picture_came)
        oct_view_playback_offer(model, &b->picture, &b->read);
    if (b->slice_came) {
        oct_view_picture_set(&playback->slice, &b->slice.header, b->slice.pixels,
                             oct_view_picture_bytes(&b->slice.header), NULL);
        playback->read.slice_of = b->read.slice_of;
        playback->read.slice_share = b->read.slice_share;
        playback->slice_serial++;
    }
    if (b->enface_came) {
        copy_enface(&b->enface, &playback->enface);
        playback->read.enface_share = b->read.enface_share;
        playback->read.enface_recorded = b->read.enface_recorded;
    }
    if (b->layers_came)
        oct_view_layers_set(&model->layers, &b->layers);
    if (b->thickness_came)
        copy_thickness(&b->thickness, &playback->thickness);
    b->picture_came = b->slice_came = b->enface_came = false;
    if (b->exams_came)
        copy_exams(b, &model->exams);
    if ((b->follow_came || b->before_came) && p->wants.follow == p->done_follow)
        copy_follow(b, &playback->follow);
    b->layers_came = b->thickness_came = b->exams_came = b->follow_came = b->before_came = false;
    return came;
}

bool oct_play_turn(struct oct_play *p, struct oct_view_model *model)
{
    pthread_mutex_lock(&p->lock);
    take_wants(p, model);
    bool changed = send_file(p, model);
    changed |= send_label(p, model);
    changed |= send_pictures(p, model);
    take_wants(p, model); /* of the file that came now */
    pthread_mutex_unlock(&p->lock);
    return changed;
}

/* Waits for the answer to the newest request, or (idle) until all that is wanted is read too. */
static bool wait_for(struct oct_play *p, bool idle, uint64_t timeout_ns)
{
    const struct timespec end = oct_clock_deadline(timeout_ns / 1000);
    bool in_time = true, came;
    pthread_mutex_lock(&p->lock);
    while (!(came = idle ? p->idle : p->opened_number == p->wants.request.number) && in_time)
        in_time = oct_condition_wait_until(&p->answered, &p->lock, &end);
    pthread_mutex_unlock(&p->lock);
    return came;
}

bool oct_play_wait_open(struct oct_play *p, uint64_t timeout_ns)
{
    return wait_for(p, false, timeout_ns);
}

bool oct_play_wait_idle(struct oct_play *p, uint64_t timeout_ns)
{
    return wait_for(p, true, timeout_ns);
}

const char *oct_play_refusal(const struct oct_play *p)
{
    return p->refusal;
}

void oct_play_destroy(struct oct_play *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_cond_signal(&p->asked);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    free_play(p);
}

void oct_play_leave(struct oct_play *p, void (*left)(void *context), void *context)
{
    pthread_mutex_lock(&p->lock);
    p->left = left;
    p->left_context = context;
    p->ending = true;
    pthread_detach(p->thread);
    pthread_cond_signal(&p->asked);
    pthread_mutex_unlock(&p->lock);
}
