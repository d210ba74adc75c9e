/* JSON text written without allocations: the same bytes as cJSON's, and never more than there is
 * room for. */
#include "pipeline/base/json_text.h"
#include "test/rig/tap.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

static void assert_number_is_as_cjson_prints_it(double value)
{
    char ours[64], theirs[64];
    struct oct_json_text t;
    cJSON number = {.type = cJSON_Number, .valuedouble = value};
    assert_true(cJSON_PrintPreallocated(&number, theirs, sizeof(theirs), false));
    oct_json_begin(&t, ours, sizeof(ours));
    oct_json_double(&t, value);
    size_t n = oct_json_end(&t);
    assert_int_equal(n, strlen(ours));
    assert_string_equal(ours, theirs);
}

TEST(numbers_are_those_of_cjson)
{
    static const double some[] = {0,
                                  1,
                                  -1,
                                  0.1,
                                  0.1 + 0.2,
                                  1.0 / 3,
                                  -12.5,
                                  60,
                                  1e15,
                                  1e16,
                                  1e17,
                                  1.2345678901234567e17,
                                  1e300,
                                  -1e-300,
                                  DBL_MIN,
                                  5e-324,
                                  3.141592653589793,
                                  NAN,
                                  INFINITY,
                                  -INFINITY};
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        assert_number_is_as_cjson_prints_it(some[i]);
    for (int i = 0; i < 20000; i++) {
        double value;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        memcpy(&value, &random, sizeof(value));
        if (fabs(value) < 1e308)
            assert_number_is_as_cjson_prints_it(value);
        assert_number_is_as_cjson_prints_it((double)(random >> 40) / 1000);
    }
}

/* cJSON writes infinity for the largest. */
TEST(the_largest_numbers_read_back)
{
    static const double largest[] = {DBL_MAX, -DBL_MAX};
    for (int i = 0; i < 2; i++) {
        char text[64];
        struct oct_json_text t;
        oct_json_begin(&t, text, sizeof(text));
        oct_json_double(&t, largest[i]);
        assert_true(oct_json_end(&t) > 0);
        assert_true(strtod(text, NULL) == largest[i]);
    }
}

TEST(strings_are_those_of_cjson)
{
    char all[256], ours[2048], theirs[2048];
    struct oct_json_text t;
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    cJSON string = {.type = cJSON_String, .valuestring = all};
    assert_true(cJSON_PrintPreallocated(&string, theirs, sizeof(theirs), false));
    oct_json_begin(&t, ours, sizeof(ours));
    oct_json_string(&t, all);
    assert_true(oct_json_end(&t) > 0);
    assert_string_equal(ours, theirs);
}

static void write_all(struct oct_json_text *t)
{
    oct_json_raw(t, "{");
    oct_json_member_u64(t, "most", UINT64_MAX);
    oct_json_member_string(t, "a\"b", "{");
    oct_json_key(t, "list");
    oct_json_raw(t, "[");
    for (int i = 0; i < 3; i++) {
        oct_json_separate(t);
        oct_json_u64(t, (uint64_t)i);
    }
    oct_json_raw(t, "]");
    oct_json_member_double(t, "x", -0.5);
    oct_json_raw(t, "}");
}

static const char all_of_it[] =
    "{\"most\":18446744073709551615,\"a\\\"b\":\"{\",\"list\":[0,1,2],\"x\":-0.5}";

TEST(commas_stand_between_members_and_items)
{
    char text[256];
    struct oct_json_text t;
    oct_json_begin(&t, text, sizeof(text));
    write_all(&t);
    assert_int_equal(oct_json_end(&t), strlen(all_of_it));
    assert_string_equal(text, all_of_it);
}

TEST(what_does_not_fit_is_empty)
{
    const size_t whole = sizeof(all_of_it);
    for (size_t room = 0; room <= whole; room++) {
        char *text = malloc(whole + 1); /* exact, so that a sanitizer sees a byte beyond */
        struct oct_json_text t;
        assert_non_null(text);
        memset(text, 'x', whole + 1);
        oct_json_begin(&t, text, room);
        write_all(&t);
        assert_int_equal(oct_json_end(&t), room == whole ? whole - 1 : 0);
        if (room > 0)
            assert_string_equal(text, room == whole ? all_of_it : "");
        for (size_t i = room; i <= whole; i++)
            assert_int_equal(text[i], 'x');
        free(text);
    }
}
