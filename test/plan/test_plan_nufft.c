/* The plan's tables of nufft, taken through direct sums in double precision, give the oracle's
 * exact sum within the accuracy that was asked for, with the recipes of the engines. */
#include "test/rig/engine_nufft.h"
#include "test/rig/tap.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#define PI 3.14159265358979323846
#define STEP 13u /* every so many depths */

/* What step 1 leaves of line j. */
static void load(const struct oct_scene *scene, uint32_t j, double *x)
{
    const struct oct_scene_recipe *recipe = &scene->recipe;
    uint32_t n = recipe->n_samples;
    for (uint32_t i = 0; i < n; i++) {
        double sum = 0, came = 0, dc = 0;
        for (uint32_t l = 0; l < recipe->n_lines; l++) {
            sum += scene->line_valid[l] ? scene->spectra[l * n + i] : 0;
            came += scene->line_valid[l];
        }
        if (recipe->dc == OCT_DC_FILE)
            dc = scene->cal.background[i];
        else if (recipe->dc == OCT_DC_BSCAN && came > 0)
            dc = sum / came;
        x[i] = scene->line_valid[j] ? scene->spectra[j * n + i] - dc : 0;
    }
}

/* f of spread.h. */
static void grid_line(const struct oct_spread *s, const double *x, uint32_t n, double complex *f)
{
    for (uint32_t g = 0; g < s->n_used; g++) {
        f[g] = 0;
        for (uint32_t t = s->at[g]; t < s->at[g + 1]; t++) {
            uint32_t i = s->first[g] + (t - s->at[g]);
            assert_true(i < n + s->n_wrap);
            f[g] += (s->re[t] + I * s->im[t]) * x[i % n];
        }
    }
}

static double amplitude(const struct oct_spread *s, const double complex *f,
                        const double complex *turns, uint32_t d)
{
    double complex sum = 0;
    for (uint32_t g = 0; g < s->n_used; g++)
        sum += f[g] * turns[(uint64_t)g * d % s->n_grid];
    return sqrt((double)s->gain[d]) * cabs(sum);
}

/* The largest difference from the oracle's amplitudes. */
static double worst_of(const struct oct_scene *scene, const struct oct_plan *plan)
{
    const struct oct_spread *s = &plan->spread;
    uint32_t n = scene->recipe.n_samples, depth = plan->geometry.depth;
    double *x = malloc(n * sizeof(*x)), worst = 0;
    double complex *f = malloc(2 * s->n_grid * sizeof(*f)), *turns = f + s->n_grid;
    assert_true(x && f);
    for (uint32_t g = 0; g < s->n_grid; g++)
        turns[g] = cexp(-2 * PI * I * g / s->n_grid);
    for (uint32_t j = 0; j < scene->recipe.n_lines && j < 4; j++) {
        load(scene, j, x);
        grid_line(s, x, n, f);
        for (uint32_t k = j; k < depth; k += STEP) {
            double got = amplitude(s, f, turns, scene->recipe.crop_first + k);
            worst = fmax(worst, fabs(got - sqrt(scene->intensity[(size_t)j * depth + k])));
        }
    }
    free(x);
    free(f);
    return worst;
}

TEST(every_recipe_is_the_exact_sum)
{
    for (size_t r = 0; r < oct_n_engine_recipes_nufft; r++) {
        const struct oct_scene_recipe recipe = oct_engine_recipe_nufft(r);
        double accuracy_db = recipe.accuracy_db < 0 ? recipe.accuracy_db : OCT_STANDARD_ACCURACY_DB;
        struct oct_scene scene;
        struct oct_plan *plan;
        struct oct_error err;
        assert_true(oct_scene_create(&scene, &recipe, 20));
        if (oct_scene_plan(&scene, OCT_SAMPLE_U8, &plan, &err))
            fail_msg("%s: %s", recipe.name, err.text);
        double worst = worst_of(&scene, plan), largest = sqrt(scene.uncropped);
        if (worst > largest * pow(10, accuracy_db / 20))
            fail_msg("%s: %.1f dB of the largest amplitude, %g asked", recipe.name,
                     20 * log10(worst / largest), accuracy_db);
        oct_plan_destroy(plan);
        oct_scene_finish(&scene);
    }
}
