#include "test/rig/tap.h"

int main(void)
{
    return test_run() > 0;
}
