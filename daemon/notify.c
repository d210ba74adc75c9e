#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include "daemon/notify.h"

#include "pipeline/base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void oct_notify_init(struct oct_notify *notify)
{
    const char *name = getenv("NOTIFY_SOCKET");
    *notify = (struct oct_notify){.fd = -1, .to = {.sun_family = AF_UNIX}};
    if (!name || !*name)
        return;
    size_t n = strlen(name);
    if ((name[0] != '/' && name[0] != '@') || n < 2 || n >= sizeof(notify->to.sun_path)) {
        oct_log(OCT_LOG_WARNING, "NOTIFY_SOCKET is no path of a socket: nobody is notified");
        return;
    }
    memcpy(notify->to.sun_path, name, n);
    if (name[0] == '@')
        notify->to.sun_path[0] = '\0'; /* an abstract name ends by its length, not by a zero */
    notify->to_bytes = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + n);
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->fd < 0)
        oct_log(OCT_LOG_WARNING, "no socket for NOTIFY_SOCKET: %s", strerror(errno));
}

void oct_notify_finish(struct oct_notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

bool oct_notify_send(const struct oct_notify *notify, const char *text)
{
    if (notify->fd < 0)
        return true;
    ssize_t sent;
    do
        sent = sendto(notify->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                      (const struct sockaddr *)&notify->to, notify->to_bytes);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

uint64_t oct_notify_watchdog_us(void)
{
    const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    char *end;
    if (pid && *pid && strtoll(pid, NULL, 10) != (long long)getpid())
        return 0;
    if (!us || *us < '0' || *us > '9')
        return 0;
    errno = 0;
    unsigned long long value = strtoull(us, &end, 10);
    return errno || *end ? 0 : value;
}
