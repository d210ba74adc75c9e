#include "test/rig/cuda_rig.h"

#include "pipeline/base/clock.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

double seconds(void)
{
    return (double)oct_clock_ns() * 1e-9;
}

void check_nothing_left(void)
{
    assert_int_equal(cuda_host_bytes_in_use(), 0);
    assert_int_equal(cuda_host_n_objects(), 0);
}

void wait_until_nothing_left(void)
{
    for (int i = 0; i < 1000 && (cuda_host_bytes_in_use() || cuda_host_n_objects()); i++)
        sleep_us(10000);
    check_nothing_left();
}

void let_go(void)
{
    cuda_host_reset(1, MEMORY);
    wait_until_nothing_left();
    sleep_us(20000); /* what a thread took last would show */
    check_nothing_left();
}
