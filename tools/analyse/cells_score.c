/* octctl cells-score: tracks of cells judged by those that are known to be right. */
#include "formats/result_files.h"
#include "tools/analyse/cells_table.h"
#include "tools/commands.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

struct score_options {
    double within_px;
    const char *roi;
    bool json;
};

struct judged {
    struct oct_cells_table truth, found;
    uint64_t n_true_left_out, n_found_left_out;
    struct oct_cells_score score;
    double within_px;
};

#define J struct judged
static const struct oct_result_field score_rows[] = {
    {OCT_RESULT("true", J, score.n_true)},
    {OCT_RESULT("found", J, score.n_found)},
    {OCT_RESULT("matches", J, score.n_matches)},
    {OCT_RESULT("misses", J, score.n_misses)},
    {OCT_RESULT("false_positives", J, score.n_false)},
    {OCT_RESULT("switches", J, score.n_switches)},
    {OCT_RESULT("precision", J, score.precision)},
    {OCT_RESULT("recall", J, score.recall)},
    {OCT_RESULT("rmse_px", J, score.rmse)},
    {OCT_RESULT("mota", J, score.mota)},
    {OCT_RESULT("within_px", J, within_px)},
    {OCT_RESULT("true_left_out", J, n_true_left_out)},
    {OCT_RESULT("found_left_out", J, n_found_left_out)},
};
#undef J
static const struct oct_result_fields score_fields = OCT_RESULT_FIELDS(score_rows);

/* ---- the part that is judged ---- */

/* X, Y, width, height */
static bool is_inside(const double roi[4], const struct oct_score_cell *cell)
{
    return cell->x >= roi[0] && cell->y >= roi[1] && cell->x <= roi[0] + roi[2] &&
           cell->y <= roi[1] + roi[3];
}

static int compare_places(const void *a, const void *b)
{
    const struct oct_score_cell *p = a, *q = b;
    if (p->frame != q->frame)
        return p->frame < q->frame ? -1 : 1;
    return (p->y > q->y) - (p->y < q->y);
}

/* What was found belongs to the nearest true cell; without one near it lies where it lies. *first:
 * of the true cells none before it is near; found cells are asked for in order. */
static bool is_judged(const struct oct_cells_table *truth, size_t *first, const double roi[4],
                      const struct oct_score_cell *found, double within)
{
    const struct oct_score_cell above = {.frame = found->frame, .y = found->y - within};
    const struct oct_score_cell *of = found;
    double nearest = within;
    while (*first < truth->n && compare_places(&truth->cells[*first], &above) < 0)
        ++*first;
    for (size_t i = *first; i < truth->n; i++) {
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

static void leave_out(struct judged *j, const double roi[4])
{
    struct oct_cells_table *truth = &j->truth, *found = &j->found;
    size_t n = 0, first = 0;
    qsort(truth->cells, truth->n, sizeof(*truth->cells), compare_places);
    qsort(found->cells, found->n, sizeof(*found->cells), compare_places);
    for (size_t i = 0; i < found->n; i++)
        if (is_judged(truth, &first, roi, &found->cells[i], j->within_px))
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

/* ---- the command ---- */

/* roi[2] 0: all */
static enum oct_err judge_tables(struct judged *j, char **paths, const double roi[4],
                                 struct oct_error *err)
{
    enum oct_err e = oct_cells_table_read(&j->truth, paths[0], err);
    if (!e)
        e = oct_cells_table_read(&j->found, paths[1], err);
    if (!e && roi[2] > 0)
        leave_out(j, roi);
    if (!e)
        e = oct_cells_score(j->truth.cells, j->truth.n, j->found.cells, j->found.n, j->within_px,
                            &j->score, err);
    return e;
}

static void print_score(const struct judged *j, bool as_json)
{
    if (as_json) {
        cJSON *tree = cJSON_CreateObject();
        oct_result_json(tree, &score_fields, j);
        oct_command_print_json(tree);
        cJSON_Delete(tree);
        return;
    }
    oct_result_print(stdout,
                     "true cells {true}, found {found}: matches {matches}, misses {misses}, false "
                     "positives {false_positives}, switches {switches}\n",
                     &score_fields, j);
    if (j->n_true_left_out + j->n_found_left_out > 0)
        oct_result_print(stdout,
                         "left out, as outside of --roi: true cells {true_left_out}, found "
                         "{found_left_out}\n",
                         &score_fields, j);
    oct_result_print(stdout,
                     "precision {precision:.4f}, recall {recall:.4f}, rmse {rmse_px:.3f} px, MOTA "
                     "{mota:.4f}\n",
                     &score_fields, j);
}

static int run_cells_score(struct oct_config *config, int argc, char **argv)
{
    struct score_options o = {0};
    double roi[4] = {0};
    struct oct_error err;
    int status = oct_options_read(&oct_command_cells_score, &o, &argc, argv);
    (void)config;
    if (status)
        return status;
    if (o.roi && (oct_option_doubles(o.roi, roi, 4) != 4 || !(roi[2] > 0 && roi[3] > 0)))
        return oct_command_misuse(argv[0], "--roi: %s: needs X,Y,WIDTH,HEIGHT in pixels", o.roi);
    struct judged j = {.within_px = o.within_px};
    if (judge_tables(&j, argv + 1, roi, &err))
        status = oct_command_fail_at_work(argv[0], &err);
    else
        print_score(&j, o.json);
    oct_cells_table_finish(&j.truth);
    oct_cells_table_finish(&j.found);
    return status;
}

static const struct oct_option options[] = {
    {"--within", "PX", "a found cell is a true one at this distance at most", OCT_OPTION_NUMBER,
     .at = offsetof(struct score_options, within_px), .least = OCT_OPTION_ABOVE_0, .most = 1e6,
     .standard = "5"},
    {"--roi", "X,Y,W,H", "judge the part of the picture that could be searched", OCT_OPTION_TEXT,
     .at = offsetof(struct score_options, roi)},
    {"--json", NULL, "as JSON", OCT_OPTION_FLAG, .at = offsetof(struct score_options, json)},
    {NULL},
};

const struct oct_command oct_command_cells_score = {
    .name = "cells-score",
    .usage = "TRUTH.csv OUT.csv",
    .keys = "",
    .help = "judges tracks of cells by the truth",
    .options = options,
    .n_least = 2,
    .n_most = 2,
    .too_few = "which tables? The truth, and what was found",
    .run = run_cells_score,
};
