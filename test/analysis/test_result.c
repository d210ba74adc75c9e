/* Results: sentences, JSON and CSV of one table of fields, with what is not known. */
#include "formats/result_files.h"
#include "test/rig/tap.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const hows[] = {"found", "followed", NULL};

struct sample {
    uint64_t frames, none;
    uint32_t track;
    double ncc, unknown, tiny, um[2];
    bool has_um, is_split;
    int how;
    const char *file, *nothing;
};

#define S struct sample
static const struct oct_result_field rows[] = {
    {OCT_RESULT("frames", S, frames)},
    {OCT_RESULT("none", S, none), .zero_is_none = true},
    {OCT_RESULT("track", S, track), .not_in = OCT_RESULT_JSON},
    {OCT_RESULT("before.ncc", S, ncc), .unit = "1"},
    {OCT_RESULT("before.unknown", S, unknown)},
    {OCT_RESULT("tiny", S, tiny), .not_in = OCT_RESULT_CSV},
    {OCT_RESULT("has_um", S, has_um)},
    {OCT_RESULT("is_split", S, is_split), .not_in = OCT_RESULT_CSV},
    {OCT_RESULT_NAMED("how", S, how, hows)},
    {OCT_RESULT("file", S, file)},
    {OCT_RESULT("nothing", S, nothing), .is_optional = true},
    {OCT_RESULT_LIST("um", S, um), .not_in = OCT_RESULT_CSV},
};
#undef S
static const struct oct_result_fields fields = OCT_RESULT_FIELDS(rows);

static const struct sample sample = {.frames = 3,
                                     .track = 1,
                                     .ncc = 0.98765,
                                     .unknown = NAN,
                                     .tiny = -0.001,
                                     .um = {2, NAN},
                                     .has_um = true,
                                     .how = 1,
                                     .file = "a,b"};

static void sentences_say_what_is_known(void **state)
{
    static const char *const cases[][2] = {
        {"{frames} frame{frames:s}, {track} track{track:s}", "3 frames, 1 track"},
        {"{before.ncc:.2f} {before.ncc:.3g} {100*before.ncc:.1f} %", "0.99 0.988 98.8 %"},
        {"{tiny:.2f} {tiny:.3f}", "0.00 -0.001"},
        {"{how} in {file}", "followed in a,b"},
        {"a[, {before.unknown:.2f} px][, {before.ncc:.1f}] b", "a, 1.0 b"},
        {"a[ {has_um?}um][ {has_um!}px][ {is_split?}split][ {is_split!}whole]", "a um whole"},
        {"[{nothing} ][{none} ][{before.ncc:.0f} and {before.unknown:.0f}]end", "end"},
        {"{before.unknown:.2f}, {nothing}, {none}", "-, -, -"},
        {"{{}} [[]] {frames}", "{} [] 3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = NULL;
        size_t n;
        FILE *file = open_memstream(&text, &n);
        oct_result_print(file, cases[i][0], &fields, &sample);
        fclose(file);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

static void json_has_objects_and_null(void **state)
{
    cJSON *tree = cJSON_CreateObject();
    const struct oct_result_rows one = OCT_RESULT_ROWS(fields, &sample, 1);
    (void)state;
    oct_result_json(tree, &fields, &sample);
    char *text = cJSON_PrintUnformatted(tree);
    assert_string_equal(text, "{\"frames\":3,\"none\":null,\"before\":{\"ncc\":0.98765,\"unknown\":"
                              "null},\"tiny\":-0.001,\"has_um\":true,\"is_split\":false,\"how\":"
                              "\"followed\",\"file\":\"a,b\",\"um\":[2,null]}");
    free(text);
    cJSON_Delete(tree);
    tree = cJSON_CreateObject();
    oct_result_json_rows(tree, "rows", &one);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(tree, "rows")), 1);
    cJSON_Delete(tree);
}

static void fill_track(const void *context, uint64_t i, void *row)
{
    *(struct sample *)row = *(const struct sample *)context;
    ((struct sample *)row)->track = (uint32_t)i;
}

static void csv_has_a_line_a_row(void **state)
{
    static const char path[] = "result.csv";
    const struct oct_result_rows two = {.fields = &fields,
                                        .n = 2,
                                        .row_bytes = sizeof(sample),
                                        .fill = fill_track,
                                        .context = &sample};
    char text[512] = "";
    (void)state;
    unlink(path);
    assert_int_equal(oct_result_csv(path, false, &two, NULL), OCT_OK);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, "frames,none,track,before.ncc,before.unknown,has_um,how,file,nothing"
                              "\n3,,0,0.98765,,1,followed,\"a,b\",\n"
                              "3,,1,0.98765,,1,followed,\"a,b\",\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_say_what_is_known),
        cmocka_unit_test(json_has_objects_and_null),
        cmocka_unit_test(csv_has_a_line_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
