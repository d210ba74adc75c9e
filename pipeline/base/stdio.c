#define _GNU_SOURCE /* O_PATH */
#include "pipeline/base/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void oct_stdio_reserve(void)
{
    /* The wrong way round: input that can be written only, output that can be read only. A program
     * that writes its result to a closed standard output shall still find that it has failed. */
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int wanted = STDIN_FILENO; wanted <= STDERR_FILENO; wanted++) {
        if (fcntl(wanted, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int fd = open("/dev/null", modes[wanted]); /* the lowest number is the one that is wanted */
        if (fd < 0)
            fd = open("/", O_PATH); /* a root without devices: any descriptor will do */
        (void)fd;
    }
}
