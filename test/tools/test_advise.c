/* octctl bench --advise: which part is called the wall, and what is said of it. */
#include "test/rig/tap.h"
#include "tools/bench/advise.h"

#include <string.h>

/* A laptop by GigE Vision: everything follows but what is written. */
static const struct oct_advise_part laptop[] = {
    {"lines in by shm", OCT_WALL_SHM, 3e6, false},
    {"lines in by tcp", OCT_WALL_TRANSPORT, 9e5, true},
    {"one copy by one core", OCT_WALL_MEMORY, 2e6, true},
    {"CPU", OCT_WALL_CPU, 2e5, true},
    {"GPU", OCT_WALL_GPU, 0, true},
    {"disk", OCT_WALL_DISK, 1.5e5, true},
    {"viewer", OCT_WALL_VIEWER, 5e4, true},
};
enum { N = sizeof(laptop) / sizeof(laptop[0]) };

TEST(the_wall_is_the_slowest_part_that_is_used)
{
    struct oct_advise_part parts[N];
    memcpy(parts, laptop, sizeof(parts));
    assert_int_equal(oct_advise_wall(parts, N), 5);
    parts[5].is_used = false; /* nothing is recorded */
    assert_int_equal(oct_advise_wall(parts, N), 3);
    parts[3].hz = 1e6;
    assert_int_equal(oct_advise_wall(parts, N), 1);
    parts[1].is_used = false;
    parts[0].is_used = true;
    assert_int_equal(oct_advise_wall(parts, N), 3);
    parts[3].hz = parts[2].hz; /* as slow: what is cheaper to change comes first */
    assert_int_equal(oct_advise_wall(parts, N), 2);
    for (int i = 0; i < N; i++)
        parts[i].hz = 0;
    assert_int_equal(oct_advise_wall(parts, N), -1);
    parts[6].hz = 1; /* a viewer holds up nobody */
    assert_int_equal(oct_advise_wall(parts, N), -1);
}

static void expect(enum oct_wall wall, struct oct_advise_facts facts, const char *word)
{
    char text[200];
    oct_advise_text(wall, &facts, text, sizeof(text));
    if (!strstr(text, word))
        fail_msg("'%s' does not say '%s'", text, word);
}

TEST(each_wall_has_something_to_change)
{
    const struct oct_advise_facts plain = {.line_rate_hz = 1e5, .bits = 16};
    struct oct_advise_facts f = plain;
    expect(OCT_WALL_TRANSPORT, f, "shm://");
    expect(OCT_WALL_SHM, f, "in place");
    expect(OCT_WALL_MEMORY, f, "memory");
    expect(OCT_WALL_CPU, f, "a GPU");
    expect(OCT_WALL_GPU, f, "pipeline.gpus");
    expect(OCT_WALL_DISK, f, "faster disk");
    f.bits = 12;
    expect(OCT_WALL_MEMORY, f, "Mono12p");
    expect(OCT_WALL_GPU, f, "Mono12p");
    expect(OCT_WALL_DISK, f, "as_sent");
    f.records_as_sent = true;
    expect(OCT_WALL_DISK, f, "faster disk");
    f.records_bscans = true;
    expect(OCT_WALL_DISK, f, "record.bscans");
    f.bits = 8;
    expect(OCT_WALL_GPU, f, "u8");
    f.is_f32 = true;
    expect(OCT_WALL_GPU, f, "output.sample");
    f.all_depths = true;
    expect(OCT_WALL_CPU, f, "crop_last");
    f.few_threads = true;
    expect(OCT_WALL_CPU, f, "threads");
    f.has_gpu = true;
    expect(OCT_WALL_CPU, f, "pipeline.backend");
}
