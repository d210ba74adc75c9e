#include "test/rig/pipeline_help.h"

#include "test/rig/tap.h"

#include <dirent.h>
#include <time.h>

uint64_t dice_roll(struct dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t dice_below(struct dice *dice, uint32_t n)
{
    return (uint32_t)((dice_roll(dice) >> 32) * n >> 32);
}

void sleep_us(uint64_t us)
{
    struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
    while (nanosleep(&t, &t) != 0)
        ;
}

struct oct_ring *open_ring(unsigned n_slots, size_t slot_bytes)
{
    struct oct_ring *ring;
    must(oct_ring_create(&ring, n_slots, slot_bytes, NULL, NULL, &failure));
    return ring;
}

struct oct_ring_reader *add_reader(struct oct_ring *ring, bool guaranteed, unsigned most_behind)
{
    struct oct_ring_reader *reader = oct_ring_reader_create(ring, guaranteed, most_behind);
    assert_non_null(reader);
    return reader;
}

unsigned count_entries(const char *folder)
{
    unsigned n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}
