#include "tools/synth_cells.h"

#include "formats/csv.h"
#include "formats/film_write.h"
#include "formats/whole_file.h"
#include "synth/cells.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "synth"
#define TRUTH_HEADER "track,frame,time_s,x_px,y_px,x_um,y_um,radius_px"
#define AT_ONCE 16u /* pictures */

void oct_synth_cells_init(struct oct_synth_cells *c)
{
    *c = (struct oct_synth_cells){.cnr = NAN, .radius = NAN, .fps = NAN, .flow_deg = NAN};
}

bool oct_synth_cells_is_film(const char *out)
{
    enum oct_film_format format;
    return oct_film_format_of(out, &format);
}

/* ---- options ---- */

/* Reads two numbers above 0 with a character between; `second` may be missing with it. */
static bool read_two(const char *text, char between, bool may_lack, double *first, double *second)
{
    char word[40];
    const char *end = strchr(text, between);
    const size_t n = end ? (size_t)(end - text) : strlen(text);
    if (n >= sizeof(word) || (!end && !may_lack))
        return false;
    memcpy(word, text, n);
    word[n] = '\0';
    if (!oct_option_double(word, first) || !(end ? oct_option_double(end + 1, second) : true))
        return false;
    if (!end)
        *second = *first;
    return *first > 0 && *second > 0;
}

/* Options that say nothing of this output. */
static int check_fit(const struct oct_synth_cells *c, const char *out)
{
    const struct {
        const char *name;
        bool is_given, of_films;
    } all[] = {
        {"--n-frames", c->n_frames > 0, true},
        {"--size", c->size, true},
        {"--truth", c->truth, true},
        {"--pixel-um", c->pixel_um, true},
        {"--cnr", !isnan(c->cnr), true},
        {"--fps", !isnan(c->fps), true},
        {"--motion-of-rows", c->of_rows, true},
        {"--speed", c->speed, false},
        {"--radius", !isnan(c->radius), false},
        {"--paths", c->paths, false},
        {"--flow", !isnan(c->flow_deg), false},
    };
    const bool is_film = oct_synth_cells_is_film(out);
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].is_given && (c->n_cells == 0 || (all[i].of_films && !is_film)))
            return oct_command_misuse(NAME, c->n_cells == 0 ? "%s needs --cells" : "%s is of films",
                                      all[i].name);
    if (is_film && c->n_cells == 0)
        return oct_command_misuse(NAME, "%s: a film needs --cells", out);
    return 0;
}

int oct_synth_cells_paths(const struct oct_synth_cells *c, const char *out, uint64_t seed,
                          struct oct_cell_paths_setup *paths)
{
    const int status = check_fit(c, out);
    *paths = (struct oct_cell_paths_setup){.n_cells = (unsigned)c->n_cells,
                                           .radius = isnan(c->radius) ? 10 : c->radius,
                                           .slowest = 2,
                                           .fastest = 5,
                                           .has_flow = !isnan(c->flow_deg),
                                           .flow_deg = isnan(c->flow_deg) ? 0 : c->flow_deg,
                                           .seed = seed};
    if (status)
        return status;
    if (c->speed && (!read_two(c->speed, ':', true, &paths->slowest, &paths->fastest) ||
                     paths->fastest < paths->slowest || paths->fastest > 1e6))
        return oct_command_misuse(NAME, "--speed: %s: needs SLOWEST:FASTEST, above 0", c->speed);
    if (c->paths && strcmp(c->paths, "separate") != 0 && strcmp(c->paths, "overtaking") != 0)
        return oct_command_misuse(NAME, "--paths: %s: needs separate or overtaking", c->paths);
    paths->overtakes = c->paths && strcmp(c->paths, "overtaking") == 0;
    return 0;
}

static int read_film(const struct oct_synth_cells *c, const char *out, uint64_t seed,
                     struct oct_cell_film_setup *film)
{
    double width = 640, height = 480;
    const int status = oct_synth_cells_paths(c, out, seed, &film->paths);
    if (status)
        return status;
    if (c->size && (!read_two(c->size, 'x', false, &width, &height) || floor(width) != width ||
                    floor(height) != height || fmax(width, height) > OCT_CELL_FILM_MOST_SIDE))
        return oct_command_misuse(NAME, "--size: %s: needs WIDTHxHEIGHT, of 1 to %u pixels each",
                                  c->size, OCT_CELL_FILM_MOST_SIDE);
    if (oct_picture_pixel_um(NAME, c->pixel_um, 2, film->um))
        return 2;
    if (c->pixel_um && fmax(film->um[0] / film->um[1], film->um[1] / film->um[0]) > 8)
        return oct_command_misuse(NAME, "--pixel-um %s: X and Y are at most 1 to 8", c->pixel_um);
    film->width = (uint32_t)width;
    film->height = (uint32_t)height;
    film->n_frames = c->n_frames ? (uint32_t)c->n_frames : 60;
    film->fps = isnan(c->fps) ? 30 : c->fps;
    film->cnr = isnan(c->cnr) ? 4 : c->cnr;
    film->scan = c->of_rows ? 1 : 0;
    return 0;
}

/* ---- files ---- */

struct making {
    const char *out;
    char truth_path[PATH_MAX];
    const struct oct_cell_film_setup *setup;
    struct oct_cell_film *film;
    struct oct_film_file *file;
    struct oct_csv *csv;
    uint8_t *pictures;            /* [AT_ONCE][height][width] */
    struct oct_cell_truth *truth; /* [n_cells] */
    uint64_t n_places;
};

static enum oct_err name_truth(struct making *m, const char *given, struct oct_error *err)
{
    const int n = snprintf(m->truth_path, sizeof(m->truth_path), "%s%s", given ? given : m->out,
                           given ? "" : ".truth.csv");
    if (n < 0 || (size_t)n >= sizeof(m->truth_path))
        return oct_fail(err, OCT_E_CONFIG, "%s: name too long", m->out);
    if (strcmp(m->truth_path, m->out) == 0)
        return oct_fail(err, OCT_E_CONFIG, "%s: film and truth need names of their own", m->out);
    const char *const paths[] = {m->out, m->truth_path};
    enum oct_err e = OCT_OK;
    for (unsigned i = 0; i < 2 && !e; i++)
        e = access(paths[i], F_OK) == 0
                ? oct_fail(err, OCT_E_IO, "%s: exists already; remove it or choose another name",
                           paths[i])
                : oct_whole_file_may(paths[i], false, NULL, 0, err);
    return e;
}

static enum oct_err open_files(struct making *m, struct oct_error *err)
{
    const struct oct_cell_film_setup *s = m->setup;
    struct oct_film_setup setup = {.pixel = OCT_FILM_U8,
                                   .height = s->height,
                                   .width = s->width,
                                   .fps = s->fps,
                                   .n_pictures = s->n_frames};
    oct_film_format_of(m->out, &setup.format);
    enum oct_err e = oct_film_file_create(&m->file, m->out, &setup, err);
    e = e ? e : oct_csv_create(&m->csv, m->truth_path, false, TRUTH_HEADER, err);
    m->pictures = malloc((size_t)AT_ONCE * s->height * s->width);
    m->truth = calloc(s->paths.n_cells, sizeof(*m->truth));
    if (!e && (!m->pictures || !m->truth))
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for %u pictures", AT_ONCE);
    return e;
}

static void write_truth(struct making *m, unsigned frame)
{
    const double *um = m->setup->um;
    const unsigned n = oct_cell_film_truth(m->film, frame, m->truth);
    for (unsigned i = 0; i < n; i++) {
        const struct oct_cell_truth *t = &m->truth[i];
        oct_csv_count(m->csv, t->track);
        oct_csv_count(m->csv, frame);
        oct_csv_number(m->csv, t->time_s);
        oct_csv_number(m->csv, t->x_px);
        oct_csv_number(m->csv, t->y_px);
        oct_csv_number(m->csv, um[1] > 0 ? t->x_px * um[1] : NAN);
        oct_csv_number(m->csv, um[0] > 0 ? t->y_px * um[0] : NAN);
        oct_csv_number(m->csv, t->radius_px);
        oct_csv_end_row(m->csv);
    }
    m->n_places += n;
}

static enum oct_err write_pictures(struct making *m, struct oct_error *err)
{
    const struct oct_cell_film_setup *s = m->setup;
    enum oct_err e = OCT_OK;
    for (uint32_t first = 0; first < s->n_frames && !e; first += AT_ONCE) {
        const uint32_t left = s->n_frames - first, n = left < AT_ONCE ? left : AT_ONCE;
        oct_cell_film_render(m->film, first, n, m->pictures);
        for (uint32_t i = 0; i < n && !e; i++) {
            e = oct_film_file_add(m->file, m->pictures + (size_t)i * s->height * s->width, err);
            write_truth(m, first + i);
        }
    }
    return e;
}

/* Both files or none. */
static enum oct_err publish(struct making *m, struct oct_error *err)
{
    struct oct_film_file *file = m->file;
    struct oct_csv *csv = m->csv;
    m->file = NULL;
    enum oct_err e = oct_film_file_publish(file, err);
    if (e)
        return e;
    m->csv = NULL;
    e = oct_csv_publish(csv, err);
    if (e)
        unlink(m->out);
    return e;
}

static enum oct_err make_film(struct making *m, const char *truth, struct oct_error *err)
{
    enum oct_err e = name_truth(m, truth, err);
    e = e ? e : oct_cell_film_create(&m->film, m->setup, err);
    e = e ? e : open_files(m, err);
    e = e ? e : write_pictures(m, err);
    e = e ? e : publish(m, err);
    oct_cell_film_destroy(m->film);
    oct_film_file_discard(m->file);
    oct_csv_discard(m->csv);
    free(m->pictures);
    free(m->truth);
    return e;
}

int oct_synth_cells_film(const struct oct_synth_cells *cells, const char *out, uint64_t seed,
                         unsigned n_threads)
{
    struct oct_cell_film_setup setup = {.n_threads = n_threads};
    struct making m = {.out = out, .setup = &setup};
    struct oct_error err = {.text = ""};
    const int misuse = read_film(cells, out, seed, &setup);
    if (misuse)
        return misuse;
    if (make_film(&m, cells->truth, &err))
        return oct_command_fail(NAME, &err);
    printf("%s: %u pictures, %u x %u\n%s: the truth, %" PRIu64 " places of cells\n", out,
           setup.n_frames, setup.width, setup.height, m.truth_path, m.n_places);
    return 0;
}
