/* The loss log and the gap map's table. */
#include "pipeline/flow/loss.h"
#include "pipeline/volume/gaps.h"
#include "test/rig/tap.h"

#include <string.h>

static struct oct_gap gap(uint32_t acquisition, uint64_t first, uint64_t n, enum oct_loss reason)
{
    return (struct oct_gap){
        .acquisition = acquisition, .first_line = first, .n_lines = n, .reason = reason};
}

static void tell(struct oct_loss_log *log, uint32_t acquisition, uint64_t first, uint64_t n,
                 enum oct_loss reason)
{
    struct oct_gap g = gap(acquisition, first, n, reason);
    oct_loss_log_add(log, &g);
}

static void expect_piece(struct oct_loss_log *log, struct oct_gap asked, uint64_t n,
                         enum oct_loss reason)
{
    struct oct_gap piece = oct_loss_log_explain(log, &asked);
    assert_int_equal(piece.first_line, asked.first_line);
    assert_int_equal(piece.n_lines, n);
    assert_int_equal(piece.reason, reason);
}

static void a_range_is_cut_where_the_reason_changes(void **state)
{
    struct oct_loss_log *log = oct_loss_log_create(0);
    assert_non_null(log);
    tell(log, 1, 100, 10, OCT_LOSS_RING_FULL);
    tell(log, 1, 110, 10, OCT_LOSS_RING_FULL); /* joins */
    tell(log, 1, 130, 10, OCT_LOSS_DISK_SLOW);
    tell(log, 2, 90, 100, OCT_LOSS_DISK_SLOW); /* another acquisition */
    tell(log, 1, 0, 0, OCT_LOSS_DISK_SLOW);    /* nothing */
    expect_piece(log, gap(1, 0, 50, OCT_LOSS_SOURCE), 50, OCT_LOSS_SOURCE);
    expect_piece(log, gap(1, 90, 100, OCT_LOSS_SOURCE), 10, OCT_LOSS_SOURCE);
    expect_piece(log, gap(1, 100, 90, OCT_LOSS_SOURCE), 20, OCT_LOSS_RING_FULL);
    expect_piece(log, gap(1, 105, 5, OCT_LOSS_SOURCE), 5, OCT_LOSS_RING_FULL);
    expect_piece(log, gap(1, 119, 50, OCT_LOSS_SOURCE), 1, OCT_LOSS_RING_FULL);
    expect_piece(log, gap(1, 120, 50, OCT_LOSS_NOT_RECORDED), 10, OCT_LOSS_NOT_RECORDED);
    expect_piece(log, gap(1, 130, 50, OCT_LOSS_SOURCE), 10, OCT_LOSS_DISK_SLOW);
    expect_piece(log, gap(1, 140, 50, OCT_LOSS_SOURCE), 50, OCT_LOSS_SOURCE);
    expect_piece(log, gap(2, 90, 1, OCT_LOSS_SOURCE), 1, OCT_LOSS_DISK_SLOW);
    expect_piece(NULL, gap(1, 100, 7, OCT_LOSS_SOURCE), 7, OCT_LOSS_SOURCE);
    tell(NULL, 1, 1, 1, OCT_LOSS_SOURCE);
    oct_loss_log_destroy(log);
    oct_loss_log_destroy(NULL);
}

/* Lines per B-scan and B-scans per volume do not divide 2^64: the last of each goes on beyond. */
static void ranges_go_on_beyond_the_last_line_number(void **state)
{
    const uint64_t end = UINT64_MAX; /* and end + 1 is 0 */
    struct oct_loss_log *log = oct_loss_log_create(0);
    assert_non_null(log);
    tell(log, 1, end - 99, 20, OCT_LOSS_RING_FULL);
    tell(log, 1, end - 49, 100, OCT_LOSS_SOURCE); /* to line 49 beyond */
    tell(log, 1, 50, 10, OCT_LOSS_SOURCE);        /* joins */
    expect_piece(log, gap(1, end - 109, 300, OCT_LOSS_NONE), 10, OCT_LOSS_NONE);
    expect_piece(log, gap(1, end - 99, 300, OCT_LOSS_NONE), 20, OCT_LOSS_RING_FULL);
    expect_piece(log, gap(1, end - 79, 300, OCT_LOSS_NONE), 30, OCT_LOSS_NONE);
    expect_piece(log, gap(1, end - 49, 300, OCT_LOSS_NONE), 110, OCT_LOSS_SOURCE);
    expect_piece(log, gap(1, end - 9, 30, OCT_LOSS_NONE), 30, OCT_LOSS_SOURCE);
    expect_piece(log, gap(1, end, 10, OCT_LOSS_NONE), 10, OCT_LOSS_SOURCE);
    expect_piece(log, gap(1, 0, 10, OCT_LOSS_NONE), 10, OCT_LOSS_SOURCE);
    expect_piece(log, gap(1, 40, 200, OCT_LOSS_NONE), 20, OCT_LOSS_SOURCE);
    expect_piece(log, gap(1, 60, 30, OCT_LOSS_NOT_RECORDED), 30, OCT_LOSS_NOT_RECORDED);
    tell(log, 2, 0, 10, OCT_LOSS_SOURCE); /* the next acquisition begins anew */
    expect_piece(log, gap(1, end - 9, 80, OCT_LOSS_NONE), 70, OCT_LOSS_SOURCE);
    expect_piece(log, gap(2, 0, 80, OCT_LOSS_NONE), 10, OCT_LOSS_SOURCE);
    oct_loss_log_destroy(log);
}

/* Against a walk from line to line. */
static void the_lines_of_a_gap_within_a_range_are_counted(void **state)
{
    const uint64_t at[] = {0, 1000, UINT64_MAX - 20, UINT64_MAX - 3};
    for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
        for (uint64_t n = 0; n < 8; n++)
            for (uint64_t first = at[i] - 12; first != at[i] + 12; first++)
                for (uint64_t m = 0; m < 12; m++) {
                    const struct oct_gap g = gap(1, at[i], n, OCT_LOSS_SOURCE);
                    uint64_t wanted = 0;
                    for (uint64_t k = 0; k < m; k++)
                        wanted += first + k - at[i] < n;
                    assert_int_equal(oct_gap_lines_within(&g, first, m), wanted);
                }
}

static void as_many_ranges_are_kept_as_bscans_may_wait(void **state)
{
    struct oct_loss_log *log = oct_loss_log_create(5000);
    assert_non_null(log);
    for (uint64_t i = 0; i < 5000; i++) {
        tell(log, 1, i * 30, 10, OCT_LOSS_DISK_SLOW);
        tell(log, 1, i * 30 + 10, 10, OCT_LOSS_RING_FULL); /* they do not push each other out */
    }
    for (uint64_t i = 0; i < 5000; i++) {
        expect_piece(log, gap(1, i * 30, 30, OCT_LOSS_SOURCE), 10, OCT_LOSS_DISK_SLOW);
        expect_piece(log, gap(1, i * 30 + 10, 20, OCT_LOSS_SOURCE), 10, OCT_LOSS_RING_FULL);
        expect_piece(log, gap(1, i * 30 + 20, 10, OCT_LOSS_SOURCE), 10, OCT_LOSS_SOURCE);
    }
    oct_loss_log_destroy(log);
    assert_null(oct_loss_log_create(UINT64_MAX / 64));
}

static void what_was_forgotten_is_never_the_source_s(void **state)
{
    struct oct_loss_log *log = oct_loss_log_create(0);
    assert_non_null(log);
    for (uint64_t i = 0; i < 5000; i++)
        tell(log, 2, i * 10, 1, OCT_LOSS_DISK_SLOW);
    tell(log, 2, 15, 3, OCT_LOSS_RING_FULL); /* known, whatever was forgotten */
    for (uint64_t i = 4000; i < 5000; i++) {
        expect_piece(log, gap(2, i * 10, 10, OCT_LOSS_SOURCE), 1, OCT_LOSS_DISK_SLOW);
        if (i > 4000)
            expect_piece(log, gap(2, i * 10 + 1, 5, OCT_LOSS_SOURCE), 5, OCT_LOSS_SOURCE);
    }
    expect_piece(log, gap(2, 0, 12, OCT_LOSS_SOURCE), 12, OCT_LOSS_DISK_SLOW);
    expect_piece(log, gap(2, 0, 20, OCT_LOSS_SOURCE), 15, OCT_LOSS_DISK_SLOW);
    expect_piece(log, gap(2, 15, 20, OCT_LOSS_SOURCE), 3, OCT_LOSS_RING_FULL);
    expect_piece(log, gap(1, 7, 7, OCT_LOSS_SOURCE), 7, OCT_LOSS_DISK_SLOW);
    expect_piece(log, gap(2, 0, 12, OCT_LOSS_NOT_RECORDED), 12, OCT_LOSS_NOT_RECORDED);
    expect_piece(log, gap(2, 50000, 9, OCT_LOSS_SOURCE), 9, OCT_LOSS_SOURCE);
    expect_piece(log, gap(3, 0, 9, OCT_LOSS_SOURCE), 9, OCT_LOSS_SOURCE);
    oct_loss_log_destroy(log);
}

static void a_full_gap_map_goes_on_counting(void **state)
{
    struct oct_volume_file file = {.path = (char[]){"x"}, .fd = -1, .direct_fd = -1};
    struct oct_volume_gaps gaps;
    const uint64_t columns[OCT_N_GAP_COLUMNS] = {4096, 8192, 12288, 16384};
    uint64_t lines = 0;
    assert_int_equal(oct_volume_gaps_init(&gaps, &file, columns, 5, NULL), OCT_OK);
    for (uint64_t i = 0; i < 20; i++) {
        struct oct_gap g = gap(1, i * 10, 2, i % 2 ? OCT_LOSS_SOURCE : OCT_LOSS_DISK_SLOW);
        oct_volume_gaps_add(&gaps, &g);
        g.first_line += 2; /* its neighbour joins it */
        g.n_lines = 1;
        oct_volume_gaps_add(&gaps, &g);
    }
    assert_int_equal(gaps.n_ranges, 5);
    for (uint32_t i = 0; i < 5; i++)
        lines += gaps.ranges[i].n_lines;
    assert_int_equal(lines, 60);
    assert_int_equal(gaps.ranges[3].n_lines, 3);
    assert_int_equal(gaps.ranges[3].reason, OCT_LOSS_SOURCE);
    assert_int_equal(gaps.ranges[4].first_line, 40);
    assert_int_equal(gaps.ranges[4].reason, OCT_LOSS_MORE);
    oct_volume_gaps_finish(&gaps);
    struct oct_geometry g = {.n_bscans = 3, .n_lines = 7};
    assert_int_equal(oct_gap_capacity(&g), 14);
    g.n_bscans = 100000;
    assert_int_equal(oct_gap_capacity(&g), 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_cut_where_the_reason_changes),
        cmocka_unit_test(ranges_go_on_beyond_the_last_line_number),
        cmocka_unit_test(the_lines_of_a_gap_within_a_range_are_counted),
        cmocka_unit_test(as_many_ranges_are_kept_as_bscans_may_wait),
        cmocka_unit_test(what_was_forgotten_is_never_the_source_s),
        cmocka_unit_test(a_full_gap_map_goes_on_counting),
    };
    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
