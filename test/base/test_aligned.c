/* Aligned memory: where it begins, how far it may be accessed, and what exceeds a size_t. */
#include "test/rig/tap.h"

#include "pipeline/base/aligned.h"

#include <stdlib.h>
#include <string.h>

static void memory_is_aligned_and_whole_units_may_be_accessed(void **state)
{
    static const size_t alignments[] = {64, 4096};
    for (size_t i = 0; i < 2; i++) {
        unsigned char *memory = oct_aligned_alloc(alignments[i], 13, 5);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % alignments[i], 0);
        memset(memory, 0x5a, (65 + alignments[i] - 1) / alignments[i] * alignments[i]);
        free(memory);
    }
}

static void calloc_zeroes_the_rounding_too(void **state)
{
    void *before = oct_aligned_alloc(64, 1, 65);
    assert_non_null(before);
    memset(before, 0x5a, 128);
    free(before); /* most likely handed out again */
    unsigned char *memory = oct_aligned_calloc(64, 1, 65);
    assert_non_null(memory);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(memory[i], 0);
    free(memory);
}

static void nothing_is_one_unit(void **state)
{
    void *memory = oct_aligned_calloc(64, 0, 8);
    assert_non_null(memory);
    memset(memory, 1, 64);
    free(memory);
}

/* Each product or its rounding wraps to a small number. */
static void what_exceeds_a_size_is_refused(void **state)
{
    assert_null(oct_aligned_alloc(64, SIZE_MAX / 2 + 2, 2));
    assert_null(oct_aligned_calloc(64, (size_t)1 << 33, (size_t)1 << 33));
    assert_null(oct_aligned_alloc(64, SIZE_MAX - 10, 1));
    assert_null(oct_aligned_calloc(4096, SIZE_MAX, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_aligned_and_whole_units_may_be_accessed),
        cmocka_unit_test(calloc_zeroes_the_rounding_too),
        cmocka_unit_test(nothing_is_one_unit),
        cmocka_unit_test(what_exceeds_a_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
