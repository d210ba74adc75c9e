/* The running mean, against a plain sum over the window in double precision. */
#include "pipeline/flow/line_sums.h"
#include "pipeline/flow/running_dc.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 37, M = 7, MOST = 400 };

/* All B-scans that came, in order. */
struct history {
    unsigned n;
    struct oct_bscan_info info[MOST];
    uint16_t spectra[MOST][M * N];
    uint8_t line_valid[MOST][M];
};

static struct oct_plan plan_of(uint32_t n_bscans, uint32_t dc_bscans)
{
    return (struct oct_plan){.geometry = {.n_samples = N, .n_lines = M, .n_bscans = n_bscans},
                             .chain = {.dc = OCT_DC_RUNNING, .dc_bscans = dc_bscans}};
}

static struct oct_raw_frame frame_at(struct history *h, unsigned k)
{
    return (struct oct_raw_frame){
        .info = h->info[k], .spectra = h->spectra[k], .line_valid = h->line_valid[k]};
}

/* Of B-scan k, by the definition: back to the begin of its volume, or the end of the window. */
static double expected(const struct history *h, unsigned k, uint32_t window, unsigned i)
{
    double sum = 0, n = 0;
    for (unsigned b = k + 1; b-- > 0;) {
        const struct oct_bscan_info *info = &h->info[b], *of = &h->info[k];
        if (info->acquisition != of->acquisition || info->volume != of->volume ||
            of->number - info->number >= window)
            break;
        for (unsigned j = 0; j < M; j++)
            if (h->line_valid[b][j]) {
                sum += h->spectra[b][j * N + i];
                n++;
            }
    }
    return n > 0 ? sum / n : 0;
}

static void check_line(const float *line, const struct history *h, unsigned k, uint32_t window)
{
    for (unsigned i = 0; i < N; i++) {
        double want = expected(h, k, window, i);
        assert_true(line[i] == floorf(line[i]));
        assert_true(line[N + i] >= 0 && line[N + i] <= 1);
        if (fabs((double)line[i] + (double)line[N + i] - want) > 1e-7)
            fail_msg("B-scan %u, sample %u: %.9g + %.9g, not %.12g", k, i, (double)line[i],
                     (double)line[N + i], want);
    }
}

/* Volumes of n_bscans, of which some lack B-scans, others several in a row or their begin;
 * acquisitions that end anywhere; lines that are missing. */
static struct history *make_history(uint32_t n_bscans, uint64_t seed)
{
    struct dice dice = {seed};
    struct history *h = calloc(1, sizeof(*h));
    uint64_t number = dice_below(&dice, 5);
    uint32_t acquisition = 1;
    assert_non_null(h);
    for (; h->n < MOST; h->n++) {
        const bool none = dice_below(&dice, 20) == 0, all = dice_below(&dice, 2) == 0;
        h->info[h->n] = (struct oct_bscan_info){.id = h->n,
                                                .acquisition = acquisition,
                                                .number = number,
                                                .volume = number / n_bscans,
                                                .bscan = (uint32_t)(number % n_bscans)};
        for (unsigned j = 0; j < M; j++)
            h->line_valid[h->n][j] = !none && (all || dice_below(&dice, 3) > 0);
        for (unsigned i = 0; i < M * N; i++) /* of missing lines too: nothing may read them */
            h->spectra[h->n][i] = (uint16_t)dice_roll(&dice);
        number += dice_below(&dice, 10) ? 1 : 1 + dice_below(&dice, n_bscans);
        if (dice_below(&dice, 40) == 0) {
            acquisition++;
            number = dice_below(&dice, 3);
        }
    }
    return h;
}

static void the_line_is_the_mean_over_the_window_of_the_volume(void **state)
{
    static const struct {
        uint32_t n_bscans, dc_bscans;
    } cases[] = {{40, 2}, {40, 3}, {40, 16}, {40, 4096}, {7, 32}, {1, 32}, {1000, 30}};
    for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct oct_plan plan = plan_of(cases[c].n_bscans, cases[c].dc_bscans);
        struct history *h = make_history(cases[c].n_bscans, 7 + c);
        struct oct_running_dc *dc;
        float line[2 * N];
        assert_int_equal(oct_running_dc_create(&dc, &plan, NULL), OCT_OK);
        for (unsigned k = 0; k < h->n; k++) {
            struct oct_raw_frame frame = frame_at(h, k);
            oct_running_dc_push(dc, &frame, line);
            check_line(line, h, k, cases[c].dc_bscans);
        }
        oct_running_dc_destroy(dc);
        free(h);
    }
}

/* Whatever came before: the line of a volume's B-scans is the volume's own, to the byte. */
static void a_volume_has_the_same_lines_wherever_it_begins(void **state)
{
    const struct oct_plan plan = plan_of(40, 16);
    struct history *h = make_history(40, 3);
    struct oct_running_dc *whole, *own = NULL;
    float of_whole[2 * N], of_own[2 * N];
    assert_int_equal(oct_running_dc_create(&whole, &plan, NULL), OCT_OK);
    for (unsigned k = 0; k < h->n; k++) {
        struct oct_raw_frame frame = frame_at(h, k);
        if (k == 0 || h->info[k].volume != h->info[k - 1].volume ||
            h->info[k].acquisition != h->info[k - 1].acquisition) {
            oct_running_dc_destroy(own);
            assert_int_equal(oct_running_dc_create(&own, &plan, NULL), OCT_OK);
        }
        oct_running_dc_push(whole, &frame, of_whole);
        frame.info.number %= 40; /* as in the volume's own file */
        frame.info.volume = frame.info.acquisition = 0;
        oct_running_dc_push(own, &frame, of_own);
        assert_memory_equal(of_whole, of_own, sizeof(of_own));
    }
    oct_running_dc_destroy(own);
    oct_running_dc_destroy(whole);
    free(h);
}

static void a_number_that_is_not_above_the_last_begins_anew(void **state)
{
    static const uint64_t numbers[] = {5, 6, 6, 7, 3, 4};
    static const unsigned n_in[] = {1, 2, 1, 2, 1, 2};
    const struct oct_plan plan = plan_of(40, 16);
    struct history *h = make_history(40, 11);
    struct oct_running_dc *dc;
    float line[2 * N];
    memset(h->line_valid, 1, sizeof(h->line_valid));
    assert_int_equal(oct_running_dc_create(&dc, &plan, NULL), OCT_OK);
    for (unsigned k = 0; k < 6; k++) {
        struct oct_raw_frame frame = frame_at(h, k);
        double sum = 0;
        frame.info = (struct oct_bscan_info){.number = numbers[k]};
        oct_running_dc_push(dc, &frame, line);
        for (unsigned b = k + 1 - n_in[k]; b <= k; b++)
            for (unsigned j = 0; j < M; j++)
                sum += h->spectra[b][j * N + 1];
        assert_true(fabs((double)line[1] + (double)line[N + 1] - sum / (M * n_in[k])) < 1e-7);
    }
    oct_running_dc_destroy(dc);
    free(h);
}

/* Longer than the columns that are summed at a time, and the most that a line's sum can be. */
static void sums_are_exact_in_lines_of_any_length(void **state)
{
    static const uint32_t lengths[] = {4, 4095, 4096, 4097, 10001};
    for (unsigned c = 0; c < 5; c++)
        for (uint32_t n_lines = 1; n_lines <= 11; n_lines += 5) {
            const struct oct_geometry g = {.n_samples = lengths[c], .n_lines = n_lines};
            uint16_t *spectra = malloc((size_t)n_lines * g.n_samples * sizeof(*spectra));
            uint32_t *sums = malloc(g.n_samples * sizeof(*sums));
            uint8_t valid[11];
            assert_true(spectra && sums);
            for (uint32_t j = 0; j < n_lines; j++)
                valid[j] = j != 3;
            for (size_t i = 0; i < (size_t)n_lines * g.n_samples; i++)
                spectra[i] = (uint16_t)(65535 - i % 3);
            struct oct_raw_frame frame = {.spectra = spectra, .line_valid = valid};
            assert_int_equal(oct_line_sums(sums, &frame, &g), n_lines - (n_lines > 3));
            for (uint32_t i = 0; i < g.n_samples; i++) {
                uint32_t sum = 0;
                for (uint32_t j = 0; j < n_lines; j++)
                    sum += valid[j] ? spectra[(size_t)j * g.n_samples + i] : 0u;
                assert_int_equal(sums[i], sum);
            }
            free(spectra);
            free(sums);
        }
}

static void the_mean_of_the_most_light_there_can_be_is_exact(void **state)
{
    /* 4096 B-scans of 65536 lines of 65535. */
    const uint64_t n_lines = UINT64_C(4096) << 16;
    const uint64_t total[4] = {65535 * n_lines, 65535 * n_lines - 1, 0, n_lines / 4};
    float mean[8];
    oct_line_mean(mean, total, n_lines, 4);
    assert_true(mean[0] == 65535 && mean[4] == 0);
    assert_true(mean[1] + mean[5] == 65535.0F);
    assert_true(mean[2] == 0 && mean[6] == 0);
    assert_true(mean[3] == 0 && mean[7] == 0.25F);
    oct_line_mean(mean, total, 0, 4);
    for (unsigned i = 0; i < 8; i++)
        assert_true(mean[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_is_the_mean_over_the_window_of_the_volume),
        cmocka_unit_test(a_volume_has_the_same_lines_wherever_it_begins),
        cmocka_unit_test(a_number_that_is_not_above_the_last_begins_anew),
        cmocka_unit_test(sums_are_exact_in_lines_of_any_length),
        cmocka_unit_test(the_mean_of_the_most_light_there_can_be_is_exact),
    };
    return cmocka_run_group_tests_name("the running mean", tests, NULL, NULL);
}
