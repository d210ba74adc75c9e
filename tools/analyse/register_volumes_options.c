#include "tools/analyse/register_volumes_options.h"

#include "tools/commands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_UM 1e6
#define MOST_ITERATIONS 100000
#define MOST_FACTOR 64
#define MOST_REACH 4096
#define LEAST_SIGMA 0.5 /* of the finest spacing, as solver.h has them */
#define MOST_SIGMA 32.0

const char *const oct_volumes_profile_names[] = {
    [OCT_WARP_OCTD] = "octd", [OCT_WARP_PAPER] = "paper"};

/* ---- words and numbers ---- */

/* Up to `most` whole numbers from least to greatest with commas between them; 0: it is none. */
static unsigned read_counts(const char *text, unsigned most, double least, double greatest,
                            unsigned *counts)
{
    double values[OCT_WARP_MOST_LEVELS];
    const unsigned n = oct_option_doubles(text, values, most);
    for (unsigned i = 0; i < n; i++) {
        if (!(values[i] >= least && values[i] <= greatest) || values[i] != floor(values[i]))
            return 0;
        counts[i] = (unsigned)values[i];
    }
    return n;
}

static int read_names(struct oct_volumes_given *g, const char *name)
{
    const int model = g->model_name
                          ? oct_option_word(g->model_name, oct_warp_model_names, OCT_WARP_N_MODELS)
                          : OCT_WARP_BOTH;
    const int profile = oct_option_word(g->profile_name, oct_volumes_profile_names, 2);
    if (model < 0)
        return oct_command_misuse(name, "--model needs bscans, nonlinear or both");
    if (profile < 0)
        return oct_command_misuse(name, "--profile needs octd or paper");
    g->model = (enum oct_warp_model)model;
    g->profile = (enum oct_warp_profile)profile;
    return 0;
}

/* One number is how many; several are the factors themselves. */
static int read_levels(struct oct_volumes_given *g, const char *name)
{
    unsigned numbers[OCT_WARP_MOST_LEVELS];
    const unsigned n =
        g->levels ? read_counts(g->levels, OCT_WARP_MOST_LEVELS, 1, MOST_FACTOR, numbers) : 0;
    if (g->levels && (n == 0 || (n == 1 && numbers[0] > OCT_WARP_MOST_LEVELS)))
        return oct_command_misuse(name,
                                  "--levels needs how many, 1 to %u, or their factors, as 4,2,1",
                                  OCT_WARP_MOST_LEVELS);
    for (unsigned i = 1; i < n; i++)
        if (numbers[i] >= numbers[i - 1])
            return oct_command_misuse(name, "--levels %s: factors fall from one to the next",
                                      g->levels);
    g->n_levels = n == 1 ? numbers[0] : n;
    for (unsigned i = 0; n > 1 && i < n; i++)
        g->factor[i] = numbers[i];
    g->n_iterations = g->iterations ? read_counts(g->iterations, OCT_WARP_MOST_LEVELS, 1,
                                                  MOST_ITERATIONS, g->iteration)
                                    : 0;
    if (g->iterations && g->n_iterations == 0)
        return oct_command_misuse(name, "--iterations needs a number above 0, or one a level, as "
                                        "100,30,10");
    return 0;
}

static int read_sizes(struct oct_volumes_given *g, const char *name)
{
    double um[3];
    const unsigned n = g->um ? oct_option_doubles(g->um, um, 3) : 0;
    bool is_good = !g->um || n > 0;
    for (unsigned i = 0; i < n; i++) {
        is_good = is_good && um[i] > 0 && um[i] <= MOST_UM;
        g->um_given[2 - i] = um[i];
    }
    if (!is_good)
        return oct_command_misuse(name, "--um needs micrometres above 0, DEPTH[,LINE[,BSCAN]]");
    unsigned reach[OCT_WARP_MOST_LEVELS];
    if (g->reach && read_counts(g->reach, 3, 1, MOST_REACH, reach) != 3)
        return oct_command_misuse(name, "--reach needs three numbers above 0, B-SCANS,LINES,DEPTH");
    for (unsigned i = 0; g->reach && i < 3; i++)
        g->reach_px[i] = reach[i];
    return 0;
}

/* What has no effect, or only with something else. */
static int check_use(const struct oct_volumes_given *g, unsigned n_moving, const char *name)
{
    const struct {
        const char *option;
        bool is_given;
        enum oct_warp_model useless; /* with this model */
    } options[] = {
        {"--lambda", !isnan(g->lambda), OCT_WARP_BSCANS},
        {"--sigma", !isnan(g->sigma), OCT_WARP_BSCANS},
        {"--levels", g->levels, OCT_WARP_BSCANS},
        {"--iterations", g->iterations, OCT_WARP_BSCANS},
        {"--profile", g->profile_name, OCT_WARP_BSCANS},
        {"--mask", g->mask, OCT_WARP_BSCANS},
        {"--reach", g->reach, OCT_WARP_NONLINEAR},
        {"--jump-price", !isnan(g->jump_price), OCT_WARP_NONLINEAR},
    };
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (options[i].is_given && options[i].useless == g->model)
            return oct_command_misuse(name, "--model %s takes no %s",
                                      oct_warp_model_names[g->model], options[i].option);
    if (!g->points != !g->points_out)
        return oct_command_misuse(name, "--points FILE.csv and --points-out FILE.csv belong "
                                        "together");
    if (g->group && n_moving < 2)
        return oct_command_misuse(name, "--group is of several MOVING; --average is of one");
    return 0;
}

int oct_volumes_given_read(struct oct_volumes_given *given, unsigned n_moving, const char *name)
{
    int status = read_names(given, name);
    status = status ? status : read_levels(given, name);
    status = status ? status : read_sizes(given, name);
    return status ? status : check_use(given, n_moving, name);
}

/* ---- the solver's parameters ---- */

double oct_volumes_finest(const struct oct_warp_grid *grid)
{
    return fmin(grid->spacing[0], fmin(grid->spacing[1], grid->spacing[2]));
}

/* As solver.h has them, also of factors that are none of the defaults. */
static unsigned iterations_of(unsigned factor)
{
    return factor >= 4 ? 100 : factor >= 2 ? 30 : 10;
}

static void set_levels(const struct oct_volumes_given *g, struct oct_warp_params *params)
{
    params->n_levels = g->n_levels > 0 ? g->n_levels : params->n_levels;
    for (unsigned i = 0; g->n_levels > 0 && i < g->n_levels; i++) {
        params->factor[i] = g->factor[0] > 0 ? g->factor[i] : 1u << (g->n_levels - 1 - i);
        params->iterations[i] = iterations_of(params->factor[i]);
    }
    for (unsigned i = 0; g->n_iterations > 0 && i < params->n_levels; i++)
        params->iterations[i] = g->iteration[g->n_iterations > 1 ? i : 0];
}

/* As many of the geometric mean of the spacings as the solver takes of the finest: a depth pixel of
 * 1 um beside B-scans 25 um apart says nothing of how smooth the tissue's motion is. */
static double default_sigma(double voxels, const struct oct_warp_grid *grid)
{
    const double *s = grid->spacing;
    return fmin(MOST_SIGMA, voxels * cbrt(s[0] * s[1] * s[2]) / oct_volumes_finest(grid));
}

enum oct_err oct_volumes_given_params(const struct oct_volumes_given *given,
                                      enum oct_warp_model model, const struct oct_warp_grid *grid,
                                      struct oct_warp_params *params, struct oct_error *err)
{
    oct_warp_pair_params_default(params, given->profile, model, grid->dims);
    if (model == OCT_WARP_BSCANS)
        return OCT_OK;
    set_levels(given, params);
    if (given->n_iterations > 1 && given->n_iterations != params->n_levels)
        return oct_fail(err, OCT_E_CONFIG, "--iterations %s: there are %u levels",
                        given->iterations, params->n_levels);
    if (!isnan(given->lambda))
        params->lambda = given->lambda;
    params->sigma = isnan(given->sigma) ? default_sigma(params->sigma, grid)
                                        : given->sigma / oct_volumes_finest(grid);
    if (!(params->sigma >= LEAST_SIGMA && params->sigma <= MOST_SIGMA))
        return oct_fail(err, OCT_E_CONFIG, "--sigma %g: %g to %g %s here", given->sigma,
                        LEAST_SIGMA * oct_volumes_finest(grid),
                        MOST_SIGMA * oct_volumes_finest(grid), grid->in_um ? "um" : "voxels");
    struct oct_error why;
    if (oct_warp_params_check(params, grid, &why) == OCT_OK)
        return OCT_OK;
    return oct_fail(err, OCT_E_CONFIG, "%s", why.text);
}

/* ---- the table ---- */

#define AT(member) .at = offsetof(struct oct_volumes_given, member)
const struct oct_option oct_volumes_options[] = {
    {"--model", "NAME",
     "bscans: each B-scan as a whole; nonlinear: a smooth field; both\n"
     "(default): the field after the B-scans",
     OCT_OPTION_TEXT, AT(model_name), .words = "bscans nonlinear both"},
    {"--lambda", "L", "how stiff the field is (1e-3 of both, 5e-4 of nonlinear)", OCT_OPTION_NUMBER,
     AT(lambda), .least = 0, .most = 1e6, .needs = "a number from 0 to 1e6"},
    {"--sigma", "S",
     "how smooth its steps are: of a Gaussian at full resolution, um where\n"
     "the spacing is known, else voxels (4 of the spacings' geometric mean)",
     OCT_OPTION_NUMBER, AT(sigma), .least = OCT_OPTION_ABOVE_0, .most = MOST_UM,
     .needs = "a length above 0"},
    {"--levels", "N", "how many, each half as fine as the next, or their factors (4,2,1)",
     OCT_OPTION_TEXT, AT(levels)},
    {"--iterations", "N", "at most so many in a level, or one number a level, as 100,30,10",
     OCT_OPTION_TEXT, AT(iterations)},
    {"--profile", "NAME", "octd (default), or paper: the step as it was published", OCT_OPTION_TEXT,
     AT(profile_name), .words = "octd paper"},
    {"--mask", "FILE", "a volume like FIXED: where it is 0, nothing is compared", OCT_OPTION_TEXT,
     AT(mask)},
    {"--reach", "B,L,D", "how far B-scans are sought: B-scans, A-lines, depth pixels (24,32,16)",
     OCT_OPTION_TEXT, AT(reach)},
    {"--jump-price", "P", "of a jump by one B-scan, in score (0.01)", OCT_OPTION_NUMBER,
     AT(jump_price), .least = OCT_OPTION_ABOVE_0, .most = 1, .needs = "a number above 0, up to 1"},
    {"--um", "D[,L[,B]]", "spacing of all volumes, um: depth pixel, A-line, B-scan",
     OCT_OPTION_TEXT, AT(um)},
    {"--average", NULL, "the mean of FIXED and all that were registered", OCT_OPTION_FLAG,
     AT(average)},
    {"--group", NULL, "each MOVING onto the mean of those before it, which is kept",
     OCT_OPTION_FLAG, AT(group)},
    {"--inverse", NULL, "the displacement of the inverse map too", OCT_OPTION_FLAG, AT(inverse)},
    {"--points", "FILE.csv", "places of FIXED, voxels: B-scan, A-line, depth", OCT_OPTION_TEXT,
     AT(points)},
    {"--points-out", "F.csv", "where they lie in each MOVING", OCT_OPTION_TEXT, AT(points_out),
     .words = OCT_WORDS_FILES},
    {"--nifti", "PREFIX", "PREFIX-warped.nii, -displacement, -jacobian, -average", OCT_OPTION_TEXT,
     AT(nifti), .words = OCT_WORDS_FILES},
    {"--png", "FILE",
     "FILE-checkerboard.png before and after, FILE-jacobian.png and\n"
     "FILE-displacement.png",
     OCT_OPTION_TEXT, AT(png)},
    {"--json", NULL, "the summary as JSON", OCT_OPTION_FLAG, AT(json)},
    {"--force", NULL, "replace files that exist", OCT_OPTION_FLAG, AT(force)},
    {NULL},
};
