#define _GNU_SOURCE /* O_PATH */
#include "pipeline/base/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void oct_stdio_reserve(void)
{
    /* Opened in the wrong direction: input for writing only, output for reading only. So a program
     * that writes its result to a closed standard output still gets an error. */
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; wanted++) {
        if (fcntl(wanted, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int fd = open("/dev/null", modes[wanted]); /* open() returns the lowest free number:
                                                      `wanted` */
        if (fd < 0)
            fd = open("/", O_PATH); /* a root without devices: any descriptor will do */
        (void)fd;
    }
}
