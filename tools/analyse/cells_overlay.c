/* Pictures with their cells: a ring a cell, its track's number and where it was before. A folder
 * of PNG files or an AVI. The pictures are read a second time, when it is known which tracks are
 * any. */
#include "tools/analyse/cells_report.h"

#include "formats/film_write.h"
#include "plot/plot.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_TAIL 20u
#define FPS_UNKNOWN 10.0 /* of films that do not say it */
#define MOST_FPS 1e6
#define LEAST_FPS 1e-6

/* Where a track that is in the newest picture was. */
struct tail {
    uint64_t track;
    double places[N_TAIL][2];
    unsigned n;
};

struct overlay {
    const struct oct_cells_report *report;
    bool force;                 /* pictures that are there are replaced, one by one */
    size_t next;                /* row of the next picture */
    struct tail *tails, *older; /* of this picture and the one before, by track */
    size_t n_tails, n_older, room;
    struct oct_plot_ring *rings; /* [room] */
    struct oct_film_file *film;  /* NULL: a folder */
    uint8_t *rgb;                /* of a film: [height][width][3] */
};

unsigned oct_cells_track_colour(uint64_t track)
{
    static const unsigned colours[] = {0xffd400, 0x00d5ff, 0xff6f3c, 0x7cfc4a, 0xff7ad9, 0x8fa2ff,
                                       0xffb000, 0x2ee6b0, 0xff5b6e, 0xc9f24e, 0xd38cff, 0x58c4ff};
    return colours[track % (sizeof(colours) / sizeof(colours[0]))];
}

/* ---- where it goes ---- */

/* Just the names that write_frame gives, and the picture's number. */
static bool is_frame(const char *name, uint64_t *number)
{
    static const char before[] = "frame_";
    if (strncmp(name, before, sizeof(before) - 1) != 0)
        return false;
    name += sizeof(before) - 1;
    const size_t n_digits = strspn(name, "0123456789");
    *number = strtoull(name, NULL, 10);
    return n_digits >= 6 && strcmp(name + n_digits, ".png") == 0;
}

/* Pictures of an earlier run; those from number `kept` on are removed (UINT64_MAX: none). */
static bool has_frames(const char *path, uint64_t kept)
{
    DIR *folder = opendir(path);
    bool has = false;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char name[PATH_MAX];
        uint64_t number;
        if (!is_frame(entry->d_name, &number))
            continue;
        has = true;
        const int n = snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        if (kept != UINT64_MAX && number >= kept && n > 0 && (size_t)n < sizeof(name))
            unlink(name);
    }
    if (folder)
        closedir(folder);
    return has;
}

enum oct_err oct_cells_overlay_check(const char *path, bool force, struct oct_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return OCT_OK;
    if (!S_ISDIR(st.st_mode))
        return oct_fail(err, OCT_E_ARG,
                        "%s: is no folder; --overlay needs one, or a name that ends in .avi", path);
    if (!force && has_frames(path, UINT64_MAX))
        return oct_fail(err, OCT_E_IO, "%s: has pictures already; choose another name, or --force",
                        path);
    return OCT_OK;
}

static enum oct_err make_folder(const char *path, struct oct_error *err)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", path);
    return OCT_OK;
}

static enum oct_err make_film(struct overlay *o, const char *path, bool force,
                              struct oct_error *err)
{
    const struct oct_cells_run *run = o->report->run;
    double fps = oct_pictures_fps(run->pictures);
    if (!(fps > 0))
        fps = run->n > 1 ? (double)(run->n - 1) / (run->last_s - run->first_s) : NAN;
    const struct oct_film_setup setup = {.format = OCT_FILM_AVI,
                                         .pixel = OCT_FILM_RGB,
                                         .height = run->height,
                                         .width = run->width,
                                         .fps = fps >= LEAST_FPS && fps <= MOST_FPS ? fps
                                                                                    : FPS_UNKNOWN,
                                         .n_pictures = run->n,
                                         .force = force};
    o->rgb = malloc((size_t)run->height * run->width * 3);
    if (!o->rgb)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    return oct_film_file_create(&o->film, path, &setup, err);
}

/* ---- rings ---- */

static enum oct_err make_room(struct overlay *o, size_t n, struct oct_error *err)
{
    if (o->tails && o->older && o->rings && n <= o->room)
        return OCT_OK;
    const size_t room = 2 * n + 16;
    o->room = 0; /* until there is room in all of them */
    struct tail *tails = realloc(o->tails, room * sizeof(*tails));
    if (!tails)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu cells", n);
    o->tails = tails;
    struct tail *older = realloc(o->older, room * sizeof(*older));
    if (!older)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu cells", n);
    o->older = older;
    struct oct_plot_ring *rings = realloc(o->rings, room * sizeof(*rings));
    if (!rings)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %zu cells", n);
    o->rings = rings;
    o->room = room;
    return OCT_OK;
}

/* The tail of this row's track in the picture before, lengthened. Both are in order of track. */
static void continue_tail(struct overlay *o, const struct oct_cells_row *row, size_t *older)
{
    struct tail *t = &o->tails[o->n_tails++];
    while (*older < o->n_older && o->older[*older].track < row->track)
        ++*older;
    if (row->track > 0 && *older < o->n_older && o->older[*older].track == row->track)
        *t = o->older[*older];
    else
        *t = (struct tail){.track = row->track};
    if (t->n == N_TAIL)
        memmove(t->places[0], t->places[1], --t->n * sizeof(t->places[0]));
    t->places[t->n][0] = row->x_px;
    t->places[t->n++][1] = row->y_px;
}

static struct oct_plot_ring ring_of(const struct oct_cells_run *run,
                                    const struct oct_cells_row *row, const struct tail *tail)
{
    struct oct_plot_ring ring = {.x = row->x_px,
                                 .y = row->y_px,
                                 .radius_x = row->radius_px * run->grid.dx,
                                 .radius_y = row->radius_px * run->grid.dy,
                                 .rgb = oct_cells_track_colour(row->track),
                                 .dashed = row->how == OCT_CELLS_COASTED,
                                 .tail = tail->places[0],
                                 .n_tail = tail->n};
    if (row->track > 0)
        snprintf(ring.text, sizeof(ring.text), "%" PRIu64, row->track);
    return ring;
}

static enum oct_err make_rings(struct overlay *o, uint64_t frame, struct oct_error *err)
{
    const struct oct_cells_rows *rows = &o->report->run->rows;
    size_t end = o->next, older = 0;
    while (end < rows->n && rows->rows[end].frame == frame)
        end++;
    struct tail *swapped = o->older;
    o->older = o->tails;
    o->tails = swapped;
    o->n_older = o->n_tails;
    o->n_tails = 0;
    const enum oct_err e = make_room(o, end - o->next, err);
    if (e || !o->tails || !o->rings)
        return e;
    for (size_t i = o->next; i < end; i++) {
        continue_tail(o, &rows->rows[i], &older);
        o->rings[i - o->next] = ring_of(o->report->run, &rows->rows[i], &o->tails[i - o->next]);
    }
    o->next = end;
    return OCT_OK;
}

/* ---- pictures ---- */

static enum oct_err write_frame(struct overlay *o, const char *path, uint64_t frame,
                                struct oct_error *err)
{
    struct oct_cells_run *run = o->report->run;
    struct oct_picture picture = {0};
    char name[PATH_MAX];
    enum oct_err e = make_rings(o, frame, err);
    if (!e)
        e = oct_cells_run_read(run, frame, &picture, NULL, err);
    if (e)
        return e;
    const struct oct_plot_overlay overlay = {.pixels = picture.pixels,
                                             .valid = picture.valid,
                                             .height = picture.height,
                                             .width = picture.width,
                                             .lo = run->lo,
                                             .hi = run->hi,
                                             .rings = o->rings,
                                             .n_rings = o->n_tails};
    if (o->film) {
        e = oct_plot_draw_overlay(o->rgb, &overlay, err);
        e = e ? e : oct_film_file_add(o->film, o->rgb, err);
    } else {
        snprintf(name, sizeof(name), "%s/frame_%06" PRIu64 ".png", path, frame);
        e = oct_plot_write_overlay(name, o->force, &overlay, err);
    }
    oct_picture_finish(&picture);
    return e;
}

static void finish(struct overlay *o)
{
    oct_film_file_discard(o->film);
    free(o->rgb);
    free(o->tails);
    free(o->older);
    free(o->rings);
}

enum oct_err oct_cells_report_frames(const struct oct_cells_report *report, const char *path,
                                     bool force, struct oct_error *err)
{
    struct overlay o = {.report = report, .force = force};
    enum oct_err e = make_folder(path, err);
    for (uint64_t i = 0; i < report->run->n && !e; i++)
        e = write_frame(&o, path, i, err);
    if (!e && force)
        has_frames(path, report->run->n); /* of a longer film before */
    finish(&o);
    return e;
}

enum oct_err oct_cells_report_film(void *context, const char *path, bool force,
                                   struct oct_error *err)
{
    struct overlay o = {.report = context};
    enum oct_err e = make_film(&o, path, force, err);
    for (uint64_t i = 0; i < o.report->run->n && !e; i++)
        e = write_frame(&o, path, i, err);
    if (!e) {
        e = oct_film_file_publish(o.film, err);
        o.film = NULL;
    }
    finish(&o);
    return e;
}
