/* cells-score: tracks of cells judged by those that are known to be right. */
#include "tools/analyse/cells_table.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const roi_needs = "X,Y,WIDTH,HEIGHT in pixels";

struct score_options {
    double within_px;
    const char *roi_text;
    bool json;
};

struct judged {
    struct oct_cells_table truth, found;
    size_t n_true_left_out, n_found_left_out;
    struct oct_cells_score score;
};

static const struct oct_option options[] = {
    {"--within", "PX", "a found cell is a true one at this distance at most (5)", OCT_OPTION_NUMBER,
     .at = offsetof(struct score_options, within_px), .least = OCT_OPTION_ABOVE_0, .most = 1e6,
     .needs = "a number of pixels above 0"},
    {"--roi", "X,Y,W,H", "judge the part of the picture that could be searched", OCT_OPTION_TEXT,
     .at = offsetof(struct score_options, roi_text), .needs = "X,Y,WIDTH,HEIGHT in pixels"},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct score_options, json)},
    {NULL},
};

/* ---- the part that is judged ---- */

struct roi {
    double x, y, width, height; /* width 0: all */
};

static bool read_roi(const char *text, struct roi *roi)
{
    double *const values[] = {&roi->x, &roi->y, &roi->width, &roi->height};
    for (unsigned i = 0; i < 4; i++) {
        char word[40];
        const size_t n = strcspn(text, ",");
        if (n >= sizeof(word) || (text[n] == ',') != (i < 3))
            return false;
        memcpy(word, text, n);
        word[n] = '\0';
        if (!oct_option_double(word, values[i]))
            return false;
        text += n + 1;
    }
    return roi->width > 0 && roi->height > 0;
}

static bool is_inside(const struct roi *roi, const struct oct_score_cell *cell)
{
    return cell->x >= roi->x && cell->y >= roi->y && cell->x <= roi->x + roi->width &&
           cell->y <= roi->y + roi->height;
}

static int compare_places(const void *a, const void *b)
{
    const struct oct_score_cell *p = a, *q = b;
    if (p->frame != q->frame)
        return p->frame < q->frame ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* The first true cell of the frame with this y or a larger one; sorted by compare_places. */
static size_t first_from(const struct oct_cells_table *truth, uint64_t frame, double y)
{
    const struct oct_score_cell place = {.frame = frame, .y = y};
    size_t low = 0, high = truth->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_places(&truth->cells[middle], &place) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What was found belongs to the nearest true cell; without one near it lies where it lies. */
static bool is_judged(const struct oct_cells_table *truth, const struct roi *roi,
                      const struct oct_score_cell *found, double within)
{
    double nearest = within;
    const struct oct_score_cell *of = found;
    for (size_t i = first_from(truth, found->frame, found->y - within); i < truth->n; i++) {
        const struct oct_score_cell *cell = &truth->cells[i];
        if (cell->frame != found->frame || cell->y > found->y + within)
            break;
        const double distance = hypot(cell->x - found->x, cell->y - found->y);
        if (distance <= nearest) {
            nearest = distance;
            of = cell;
        }
    }
    return is_inside(roi, of);
}

static void leave_out(struct judged *j, const struct roi *roi, double within)
{
    struct oct_cells_table *truth = &j->truth, *found = &j->found;
    size_t n = 0;
    if (truth->n > 0)
        qsort(truth->cells, truth->n, sizeof(*truth->cells), compare_places);
    for (size_t i = 0; i < found->n; i++)
        if (is_judged(truth, roi, &found->cells[i], within))
            found->cells[n++] = found->cells[i];
    j->n_found_left_out = found->n - n;
    found->n = n;
    n = 0;
    for (size_t i = 0; i < truth->n; i++)
        if (is_inside(roi, &truth->cells[i]))
            truth->cells[n++] = truth->cells[i];
    j->n_true_left_out = truth->n - n;
    truth->n = n;
}

/* ---- the result ---- */

static bool print_json(const struct judged *j, const struct score_options *o)
{
    const struct oct_cells_score *s = &j->score;
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddNumberToObject(tree, "true", (double)s->n_true);
    cJSON_AddNumberToObject(tree, "found", (double)s->n_found);
    cJSON_AddNumberToObject(tree, "matches", (double)s->n_matches);
    cJSON_AddNumberToObject(tree, "misses", (double)s->n_misses);
    cJSON_AddNumberToObject(tree, "false_positives", (double)s->n_false);
    cJSON_AddNumberToObject(tree, "switches", (double)s->n_switches);
    oct_command_add_number(tree, "precision", s->precision);
    oct_command_add_number(tree, "recall", s->recall);
    oct_command_add_number(tree, "rmse_px", s->rmse);
    oct_command_add_number(tree, "mota", s->mota);
    cJSON_AddNumberToObject(tree, "within_px", o->within_px);
    cJSON_AddNumberToObject(tree, "true_left_out", (double)j->n_true_left_out);
    cJSON_AddNumberToObject(tree, "found_left_out", (double)j->n_found_left_out);
    const bool printed = oct_command_print_json(tree);
    cJSON_Delete(tree);
    return printed;
}

static void print_ratio(const char *name, double value, unsigned decimals, const char *end)
{
    if (isnan(value))
        printf("%s -%s", name, end);
    else
        printf("%s %.*f%s", name, (int)decimals, oct_command_shown(value, decimals), end);
}

static void print_lines(const struct judged *j)
{
    const struct oct_cells_score *s = &j->score;
    printf("true cells %" PRIu64 ", found %" PRIu64 ": matches %" PRIu64 ", misses %" PRIu64
           ", false positives %" PRIu64 ", switches %" PRIu64 "\n",
           s->n_true, s->n_found, s->n_matches, s->n_misses, s->n_false, s->n_switches);
    if (j->n_true_left_out + j->n_found_left_out > 0)
        printf("left out, as outside of --roi: true cells %zu, found %zu\n", j->n_true_left_out,
               j->n_found_left_out);
    print_ratio("precision", s->precision, 4, ", ");
    print_ratio("recall", s->recall, 4, ", ");
    print_ratio("rmse", s->rmse, 3, " px, ");
    print_ratio("MOTA", s->mota, 4, "\n");
}

/* ---- the command ---- */

static enum oct_err judge(struct judged *j, const char *const paths[2],
                          const struct score_options *o, const struct roi *roi,
                          struct oct_error *err)
{
    enum oct_err e = oct_cells_table_read(&j->truth, paths[0], err);
    if (!e)
        e = oct_cells_table_read(&j->found, paths[1], err);
    if (!e && roi->width > 0)
        leave_out(j, roi, o->within_px);
    if (!e)
        e = oct_cells_score(j->truth.cells, j->truth.n, j->found.cells, j->found.n, o->within_px,
                            &j->score, err);
    return e;
}

static int run(struct oct_config *config, int argc, char **argv)
{
    struct score_options o = {.within_px = 5};
    struct judged j = {.n_true_left_out = 0};
    struct roi roi = {.width = 0};
    struct oct_error err = {.text = ""};
    int status = oct_options_read(&oct_command_cells_score, &o, &argc, argv);
    (void)config;
    if (status)
        return status;
    if (o.roi_text && !read_roi(o.roi_text, &roi))
        return oct_command_misuse(argv[0], "--roi: %s: needs %s", o.roi_text, roi_needs);
    const char *const paths[] = {argv[1], argv[2]};
    if (judge(&j, paths, &o, &roi, &err))
        status = oct_command_fail_at_work(argv[0], &err);
    else if (o.json)
        status = oct_command_printed(argv[0], print_json(&j, &o));
    else
        print_lines(&j);
    oct_cells_table_finish(&j.truth);
    oct_cells_table_finish(&j.found);
    return status;
}

const struct oct_command oct_command_cells_score = {
    .name = "cells-score",
    .usage = "TRUTH.csv OUT.csv",
    .keys = "",
    .help = "judges tracks of cells by the truth",
    .options = options,
    .n_least = 2,
    .n_most = 2,
    .too_few = "which tables? The truth, and what was found",
    .run = run,
};
