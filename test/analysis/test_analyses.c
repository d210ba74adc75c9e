/* The table of analyses. */
#include "analysis/analyses.h"
#include "test/rig/tap.h"

#include <string.h>

static void names_are_found(void **state)
{
    char text[256];
    assert_null(oct_analysis_find("enfac"));
    assert_null(oct_analysis_find(""));
    oct_analysis_names(text, sizeof(text));
    for (unsigned i = 0; i < oct_n_analyses; i++) {
        assert_non_null(strstr(text, oct_analyses[i]->name));
        assert_ptr_equal(oct_analysis_find(oct_analyses[i]->name), oct_analyses[i]);
    }
    assert_null(strchr(text, ' ')); /* it can be pasted into a configuration */
    char little[5];
    oct_analysis_names(little, sizeof(little));
    assert_int_equal(strlen(little), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
