#include "tools/analyse/register_volumes.h"

#include "formats/result_files.h"
#include "formats/results.h"
#include "tools/alloc.h"
#include "tools/commands.h"
#include "tools/picture_options.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define GIB 1073741824.0
#define LITTLE_NCC 0.3 /* below it a line says that this is hardly a registration */
#define MOST_ITERATIONS 100000
#define MOST_FACTOR 64
#define MOST_REACH 4096
#define LEAST_SIGMA 0.5 /* of the finest spacing, as solver.h has them */
#define MOST_SIGMA 32.0

const char *const oct_volumes_model_names[] = {[OCT_WARP_BSCANS] = "bscans",
                                               [OCT_WARP_NONLINEAR] = "nonlinear",
                                               [OCT_WARP_BOTH] = "both",
                                               NULL};
const char *const oct_volumes_profile_names[] = {
    [OCT_WARP_OCTD] = "octd", [OCT_WARP_PAPER] = "paper", NULL};

/* ---- settings ---- */

#define S struct oct_volumes_settings
#define OPTION .is_option = true, .is_no_key = true
static const struct oct_param setting_rows[] = {
    {OCT_PARAM_CHOICE("model", S, model, oct_volumes_model_names), OPTION, .standard = "both",
     .meaning = "Each B-scan as a whole; a smooth field; the field after the B-scans."},
    {OCT_PARAM_CHOICE("profile", S, profile, oct_volumes_profile_names), OPTION, .standard = "octd",
     .meaning = "Of the field; paper: the step as it was published."},
    {OCT_PARAM_OF_FORM("lambda", S, lambda, &oct_param_number_or_none), OPTION, .least = 0,
     .most = 1e6, .standard = "", .takes = "0 to 1e6, or none: 1e-3, 5e-4 of the paper's nonlinear",
     .meaning = "How stiff the field is."},
    {OCT_PARAM_OF_FORM("sigma", S, sigma, &oct_param_number_or_none), OPTION,
     .least = OCT_OPTION_ABOVE_0, .most = 1e6, .standard = "",
     .takes = "um where the spacing is known, else voxels, or none: 4 of their geometric mean",
     .meaning = "How smooth its steps are: of a Gaussian at full resolution."},
    {OCT_PARAM_OF_FORM("jump_price", S, jump_price, &oct_param_number_or_none), OPTION,
     .least = OCT_OPTION_ABOVE_0, .most = 1, .standard = "",
     .takes = "above 0 to 1, in score, or none: 0.01", .meaning = "Price of a jump by one B-scan."},
};
#undef S
#undef OPTION
static const struct oct_params setting_params = OCT_PARAMS(setting_rows);

/* Up to `most` whole numbers from 1 to greatest with commas between them; 0: it is none. */
static unsigned read_counts(const char *text, unsigned most, double greatest, unsigned *counts)
{
    double values[OCT_WARP_MOST_LEVELS];
    const unsigned n = text ? oct_option_doubles(text, values, most) : 0;
    for (unsigned i = 0; i < n; i++) {
        if (!(values[i] >= 1 && values[i] <= greatest) || values[i] != floor(values[i]))
            return 0;
        counts[i] = (unsigned)values[i];
    }
    return n;
}

/* One number is how many; several are the factors themselves. */
static int read_levels(const struct oct_volumes_given *g, struct oct_volumes_settings *s,
                       const char *name)
{
    unsigned numbers[OCT_WARP_MOST_LEVELS];
    const unsigned n = read_counts(g->levels, OCT_WARP_MOST_LEVELS, MOST_FACTOR, numbers);
    if (g->levels && (n == 0 || (n == 1 && numbers[0] > OCT_WARP_MOST_LEVELS)))
        return oct_command_misuse(name,
                                  "--levels needs how many, 1 to %u, or their factors, as 4,2,1",
                                  OCT_WARP_MOST_LEVELS);
    for (unsigned i = 1; i < n; i++)
        if (numbers[i] >= numbers[i - 1])
            return oct_command_misuse(name, "--levels %s: factors fall from one to the next",
                                      g->levels);
    s->n_levels = n == 1 ? numbers[0] : n;
    for (unsigned i = 0; n > 1 && i < n; i++)
        s->factor[i] = numbers[i];
    s->n_iterations =
        read_counts(g->iterations, OCT_WARP_MOST_LEVELS, MOST_ITERATIONS, s->iteration);
    if (g->iterations && s->n_iterations == 0)
        return oct_command_misuse(name, "--iterations needs a number above 0, or one a level, as "
                                        "100,30,10");
    unsigned reach[OCT_WARP_MOST_LEVELS];
    if (g->reach && read_counts(g->reach, 3, MOST_REACH, reach) != 3)
        return oct_command_misuse(name, "--reach needs three numbers above 0, B-SCANS,LINES,DEPTH");
    for (unsigned i = 0; g->reach && i < 3; i++)
        s->reach_px[i] = reach[i];
    return 0;
}

/* What has no effect, or only with something else. */
static int check_use(const struct oct_volumes *v, const char *name)
{
    const struct oct_volumes_given *g = &v->given;
    const struct {
        const char *option, *given;
        enum oct_warp_model useless; /* with this model */
    } options[] = {
        {"--lambda", oct_param_text(&setting_params, &g->own, "lambda"), OCT_WARP_BSCANS},
        {"--sigma", oct_param_text(&setting_params, &g->own, "sigma"), OCT_WARP_BSCANS},
        {"--levels", g->levels, OCT_WARP_BSCANS},
        {"--iterations", g->iterations, OCT_WARP_BSCANS},
        {"--profile", oct_param_text(&setting_params, &g->own, "profile"), OCT_WARP_BSCANS},
        {"--mask", g->mask, OCT_WARP_BSCANS},
        {"--reach", g->reach, OCT_WARP_NONLINEAR},
        {"--jump-price", oct_param_text(&setting_params, &g->own, "jump_price"),
         OCT_WARP_NONLINEAR},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (options[i].given && options[i].useless == v->settings.model)
            return oct_command_misuse(name, "--model %s takes no %s",
                                      oct_volumes_model_names[v->settings.model],
                                      options[i].option);
    if (!g->points != !g->points_out)
        return oct_command_misuse(name, "--points FILE.csv and --points-out FILE.csv belong "
                                        "together");
    if (g->group && v->n_moving < 2)
        return oct_command_misuse(name, "--group is of several MOVING; --average is of one");
    return 0;
}

static int read_settings(void *job)
{
    struct oct_volumes *v = job;
    struct oct_volumes_settings *s = &v->settings;
    const char *name = v->job.name;
    v->n_moving = v->job.n_inputs - 1;
    if (v->n_moving > OCT_VOLUMES_MOST_MOVING)
        return oct_command_misuse(name, "%u volumes MOVING; %u are the most at once", v->n_moving,
                                  OCT_VOLUMES_MOST_MOVING);
    oct_params_set_defaults(&setting_params, s);
    oct_param_texts_store(&setting_params, &v->given.own, s);
    int status = read_levels(&v->given, s, name);
    status = status ? status : oct_picture_pixel_um(name, v->given.pixel_um, 3, s->um);
    return status ? status : check_use(v, name);
}

/* ---- the solver's parameters ---- */

double oct_volumes_finest(const struct oct_warp_grid *grid)
{
    return fmin(grid->spacing[0], fmin(grid->spacing[1], grid->spacing[2]));
}

static void set_levels(const struct oct_volumes_settings *s, struct oct_warp_params *params)
{
    params->n_levels = s->n_levels > 0 ? s->n_levels : params->n_levels;
    for (unsigned i = 0; s->n_levels > 0 && i < s->n_levels; i++) {
        params->factor[i] = s->factor[0] > 0 ? s->factor[i] : 1u << (s->n_levels - 1 - i);
        params->iterations[i] = oct_warp_iterations(params->profile, params->factor[i]);
    }
    for (unsigned i = 0; s->n_iterations > 0 && i < params->n_levels; i++)
        params->iterations[i] = s->iteration[s->n_iterations > 1 ? i : 0];
}

/* As many of the geometric mean of the spacings as the solver takes of the finest: a depth pixel of
 * 1 um beside B-scans 25 um apart says nothing of how smooth the tissue's motion is. */
static double default_sigma(double voxels, const struct oct_warp_grid *grid)
{
    const double *s = grid->spacing;
    return fmin(MOST_SIGMA, voxels * cbrt(s[0] * s[1] * s[2]) / oct_volumes_finest(grid));
}

enum oct_err oct_volumes_params(const struct oct_volumes *volumes,
                                const struct oct_volumes_settings *settings,
                                enum oct_warp_model model, struct oct_warp_params *params,
                                struct oct_error *err)
{
    const struct oct_volumes_settings *s = settings;
    const struct oct_warp_grid *grid = &volumes->grid;
    const double finest = oct_volumes_finest(grid);
    oct_warp_pair_params_default(params, s->profile, model, grid->dims);
    if (model == OCT_WARP_BSCANS)
        return OCT_OK;
    set_levels(s, params);
    if (s->n_iterations > 1 && s->n_iterations != params->n_levels)
        return oct_fail(err, OCT_E_CONFIG, "--iterations %s: there are %u levels",
                        volumes->given.iterations, params->n_levels);
    if (!isnan(s->lambda))
        params->lambda = s->lambda;
    params->sigma = isnan(s->sigma) ? default_sigma(params->sigma, grid) : s->sigma / finest;
    if (!(params->sigma >= LEAST_SIGMA && params->sigma <= MOST_SIGMA))
        return oct_fail(err, OCT_E_CONFIG, "--sigma %g: %g to %g %s here", s->sigma,
                        LEAST_SIGMA * finest, MOST_SIGMA * finest, grid->in_um ? "um" : "voxels");
    struct oct_error why;
    if (oct_warp_params_check(params, grid, &why) == OCT_OK)
        return OCT_OK;
    return oct_fail(err, OCT_E_CONFIG, "%s", why.text);
}

/* ---- files ---- */

/* STEM-WHAT.END, or STEM-NUMBER-WHAT.END of several pairs. */
static void add_of_pair(struct oct_volumes *v, unsigned pair)
{
    static const struct {
        const char *end, *what;
        oct_output_writer *write;
    } all[] = {
        {".nii", "warped", oct_volumes_nifti_warped},
        {".nii", "displacement", oct_volumes_nifti_displacement},
        {".nii", "jacobian", oct_volumes_nifti_jacobian},
        {".png", "checkerboard", oct_volumes_draw_checkerboard},
        {".png", "jacobian", oct_volumes_draw_jacobian},
        {".png", "displacement", oct_volumes_draw_displacement},
    };
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const bool is_png = strcmp(all[i].end, ".png") == 0;
        const char *stem = is_png ? v->given.png : v->given.nifti;
        if (!stem)
            continue;
        char *what = v->n_moving > 1 ? oct_alloc_text("%u-%s", pair + 1, all[i].what)
                                     : oct_alloc_text("%s", all[i].what);
        oct_job_add(&v->job,
                    is_png ? oct_job_beside(stem, ".png", what)
                           : oct_alloc_text("%s-%s.nii", stem, what),
                    all[i].write, v);
        free(what);
    }
}

static enum oct_err list_files(void *job, struct oct_error *err)
{
    struct oct_volumes *v = job;
    const struct oct_volumes_given *g = &v->given;
    (void)err;
    v->job.reads[0] = g->mask;
    v->job.reads[1] = g->points;
    oct_job_add(&v->job, v->job.out, oct_volumes_write_h5, v);
    oct_job_add(&v->job, g->points_out, oct_volumes_write_points, v);
    if (g->nifti && (g->average || g->group))
        oct_job_add(&v->job, oct_alloc_text("%s-average.nii", g->nifti), oct_volumes_nifti_average,
                    v);
    v->n_common = v->job.n_files;
    for (unsigned i = 0; i < v->n_moving; i++)
        add_of_pair(v, i);
    v->n_of_pair = (v->job.n_files - v->n_common) / v->n_moving;
    return OCT_OK;
}

/* What belongs to a pair is written before the next one is begun, for which there is no room. */
static enum oct_err write_pair(struct oct_volumes *v, struct oct_error *err)
{
    const unsigned first = v->n_common + v->hand.i * v->n_of_pair;
    oct_volumes_write_pair(v);
    enum oct_err e = oct_results_error(v->h5, err);
    for (unsigned k = first; k < first + v->n_of_pair && !e; k++) {
        e = oct_job_go_on(&v->job, err);
        e = e ? e : oct_outputs_write_one(v->job.outputs, k, err);
    }
    return e;
}

static enum oct_err register_all(void *job, struct oct_error *err)
{
    struct oct_volumes *v = job;
    v->take = write_pair;
    enum oct_err e = oct_volumes_begin(v, err);
    e = e ? e : oct_results_create(&v->h5, v->job.out, "volumes", v->given.job.force, err);
    e = e ? e : oct_volumes_run(v, err);
    return e ? e : oct_job_go_on(&v->job, err);
}

/* ---- what is said ---- */

static const char pair_sentence[] =
    "{moving}: NCC {after.ncc:.4f}, before {before.ncc:.4f}; SSD {after.ssd:.5g}, before "
    "{before.ssd:.5g}; {backend}, {seconds:.1f} s\n"
    "  displacement {displacement.mean_voxels:.2f} voxels in the mean, "
    "{displacement.most_voxels:.2f} at most[ ({displacement.mean_um:.3g}, "
    "{displacement.most_um:.3g} um)][, {bscans_without_counterpart} of {bscans} B-scans without a "
    "counterpart][, inverse to {inverse_left_voxels:.2g} voxels]\n";

static double peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : NAN;
}

static void print_volume(const struct oct_volumes *v)
{
    const struct oct_warp_grid *g = &v->grid;
    const struct oct_warp_params *p = &v->setup.solver.params;
    printf("%s: %u x %u x %u voxels", v->job.out, g->dims[0], g->dims[1], g->dims[2]);
    if (g->in_um)
        printf(" of %.4g x %.4g x %.4g um", g->spacing[0], g->spacing[1], g->spacing[2]);
    else
        printf(", spacing not known");
    printf(", model %s", oct_volumes_model_names[v->settings.model]);
    if (v->settings.model != OCT_WARP_BSCANS)
        printf(", lambda %g, sigma %.4g %s", p->lambda, p->sigma * oct_volumes_finest(g),
               g->in_um ? "um" : "voxels");
    printf(", %.1f s, %.2f GiB of memory\n", v->job.seconds, peak_bytes() / GIB);
}

static void print_all(const void *job)
{
    const struct oct_volumes *v = job;
    print_volume(v);
    for (unsigned i = 0; i < v->n_moving; i++) {
        const struct oct_volumes_pair *p = &v->pairs[i];
        oct_result_print(stdout, pair_sentence, &oct_volumes_pair_fields, p);
        if (p->kept != v->settings.model)
            printf("  %s\n", p->kept == OCT_WARP_BSCANS
                                 ? "the map is that of the B-scans alone: the field fits noise"
                                 : "the map is that of --model nonlinear: B-scans lie as they are");
        printf("  ");
        oct_result_print(stdout, oct_volumes_jacobian_sentence, &oct_volumes_pair_fields, p);
        printf("\n");
    }
}

static void add_numbers(cJSON *o, const char *name, const double *values)
{
    cJSON_AddItemToObject(o, name, cJSON_CreateDoubleArray(values, 3));
}

static void add_volume(cJSON *o, const struct oct_volumes *v)
{
    const struct oct_warp_grid *g = &v->grid;
    const struct oct_warp_params *p = &v->setup.solver.params;
    cJSON_AddStringToObject(o, "fixed", v->job.inputs[0]);
    add_numbers(o, "voxels", (const double[]){g->dims[0], g->dims[1], g->dims[2]});
    if (g->in_um)
        add_numbers(o, "um", g->spacing);
    else
        cJSON_AddNullToObject(o, "um");
    cJSON_AddStringToObject(o, "model", oct_volumes_model_names[v->settings.model]);
    cJSON_AddBoolToObject(o, "group", v->given.group);
    if (v->settings.model == OCT_WARP_BSCANS)
        return;
    cJSON_AddStringToObject(o, "profile", oct_volumes_profile_names[p->profile]);
    cJSON_AddNumberToObject(o, "lambda", p->lambda);
    cJSON_AddNumberToObject(o, "sigma", p->sigma * oct_volumes_finest(g));
    cJSON_AddStringToObject(o, "sigma_unit", g->in_um ? "um" : "voxel");
}

static void fill_json(const void *job, cJSON *o)
{
    const struct oct_volumes *v = job;
    add_volume(o, v);
    cJSON *pairs = cJSON_AddArrayToObject(o, "pairs");
    for (unsigned i = 0; i < v->n_moving; i++) {
        cJSON *pair = cJSON_CreateObject();
        const struct oct_result_rows levels = oct_volumes_levels(&v->pairs[i]);
        oct_result_json(pair, &oct_volumes_pair_fields, &v->pairs[i]);
        if (v->settings.model != OCT_WARP_BSCANS)
            oct_result_json_rows(pair, "levels", &levels);
        cJSON_AddItemToArray(pairs, pair);
    }
    cJSON_AddNumberToObject(o, "forecast_bytes", (double)v->need_bytes);
    oct_command_add_number(o, "peak_bytes", peak_bytes());
    cJSON_AddNumberToObject(o, "seconds", v->job.seconds);
    cJSON_AddStringToObject(o, "out", v->job.out);
}

static void warn_of_pair(const struct oct_volumes *v, const struct oct_volumes_pair *p)
{
    const char *name = v->job.name;
    if (v->fixed_info.eye[0] && p->info.eye[0] && strcmp(v->fixed_info.eye, p->info.eye) != 0)
        fprintf(stderr, "octctl %s: %s is of the eye %s, %s of %s\n", name, v->job.inputs[0],
                v->fixed_info.eye, p->path, p->info.eye);
    if (p->change.folded > 0)
        fprintf(stderr, "octctl %s: %s: the map folds (J <= 0) in %.3g %% of the voxels: %s\n",
                name, p->path, 100 * p->change.folded,
                p->kept == OCT_WARP_NONLINEAR
                    ? "a larger --lambda or --sigma"
                    : "tissue that the eye's jumps show twice, or a larger --jump-price");
    if (p->after.ncc < p->before.ncc)
        fprintf(stderr,
                "octctl %s: %s: less like FIXED than before it was registered (NCC %.3f, before "
                "%.3f): a larger --sigma, or --mask of what both show\n",
                name, p->path, p->after.ncc, p->before.ncc);
    else if (!(p->after.ncc >= LITTLE_NCC))
        fprintf(stderr,
                "octctl %s: %s: hardly like FIXED after registration (NCC %.2f): look at --png\n",
                name, p->path, p->after.ncc);
}

static void warn_of_all(const void *job)
{
    const struct oct_volumes *v = job;
    if (!v->grid.in_um)
        fprintf(stderr,
                "octctl %s: the spacing is not known: smoothing is in voxels; --pixel-um gives "
                "it\n",
                v->job.name);
    for (unsigned i = 0; i < v->n_moving; i++)
        warn_of_pair(v, &v->pairs[i]);
}

/* ---- the command ---- */

static void finish_volumes(void *job)
{
    struct oct_volumes *v = job;
    oct_results_discard(v->h5);
}

#define AT(member) .at = offsetof(struct oct_volumes_given, member)
static const struct oct_option options[] = {
    {.kind = OCT_OPTION_PARAMS, .params = &setting_params, AT(own)},
    {"--levels", "N", "how many, each half as fine as the next, or their factors (4,2,1)",
     OCT_OPTION_TEXT, AT(levels)},
    {"--iterations", "N", "at most so many in a level, or one number a level, as 100,30,10",
     OCT_OPTION_TEXT, AT(iterations)},
    {"--mask", "FILE", "a volume like FIXED: where it is 0, nothing is compared", OCT_OPTION_TEXT,
     AT(mask)},
    {"--reach", "B,L,D", "how far B-scans are sought: B-scans, A-lines, depth pixels (24,32,16)",
     OCT_OPTION_TEXT, AT(reach)},
    {"--pixel-um", "D[,L[,B]]", "um of all volumes: depth pixel, A-line, B-scan", OCT_OPTION_TEXT,
     AT(pixel_um), .was = "--um"},
    {"--average", NULL, "the mean of FIXED and all that were registered", OCT_OPTION_FLAG,
     AT(average)},
    {"--group", NULL, "each MOVING onto the mean of those before it, which is kept",
     OCT_OPTION_FLAG, AT(group)},
    {"--inverse", NULL, "the displacement of the inverse map too", OCT_OPTION_FLAG, AT(inverse)},
    {"--points", "FILE.csv", "places of FIXED, voxels: B-scan, A-line, depth", OCT_OPTION_TEXT,
     AT(points)},
    {"--points-out", "FILE.csv", "where they lie in each MOVING", OCT_OPTION_TEXT, AT(points_out)},
    {"--nifti", "PREFIX", "PREFIX-warped.nii, -displacement, -jacobian, -average", OCT_OPTION_TEXT,
     AT(nifti), .words = OCT_WORDS_FILES},
    {"--png", "FILE",
     "FILE-checkerboard.png before and after, FILE-jacobian.png and\n"
     "FILE-displacement.png",
     OCT_OPTION_TEXT, AT(png)},
    OCT_JOB_JSON(struct oct_volumes_given, job),
    OCT_JOB_FORCE(struct oct_volumes_given, job),
    {NULL},
};

static const struct oct_job_ops volumes_job = {
    .command = &oct_command_register_volumes,
    .bytes = sizeof(struct oct_volumes),
    .values = offsetof(struct oct_volumes, given),
    .options = offsetof(struct oct_volumes, given.job),
    .takes_names = true,
    .progress = "volumes",
    .read = read_settings,
    .list = list_files,
    .work = register_all,
    .warn = warn_of_all,
    .print = print_all,
    .json = fill_json,
    .finish = finish_volumes,
};

static int run_volumes(struct oct_config *config, int argc, char **argv)
{
    return oct_job_run(&volumes_job, config, argc, argv);
}

const struct oct_command oct_command_register_volumes = {
    .name = "register-volumes",
    .usage = "FIXED MOVING... OUT.h5",
    .keys = "",
    .help = "registers volumes of one eye in 3D",
    .options = options,
    .n_least = 3,
    .n_most = 1000000,
    .too_few = "which FIXED, which MOVING, and which OUT.h5?",
    .run = run_volumes,
};
