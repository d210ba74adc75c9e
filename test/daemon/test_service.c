/* What the service manager is told: when the daemon counts as alive, and when a start hangs. */
#include "daemon/service.h"
#include "pipeline/base/clock.h"
#include "test/rig/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* engine, keeper, ingest, for_engine, for_keeper */
#define IS_ALIVE(...)                                                                              \
    oct_service_is_alive(&(struct oct_service_progress){__VA_ARGS__}, &seen, &life)
#define FEED()                                                                                     \
    life = (struct oct_service_life)                                                               \
    {                                                                                              \
        0                                                                                          \
    }

TEST(with_nothing_to_do_the_ingest_must_look)
{
    struct oct_service_progress seen = {0};
    struct oct_service_life life = {0};
    assert_true(IS_ALIVE(5, 5, 1, 0, 0));
    FEED();
    assert_false(IS_ALIVE(5, 5, 1, 0, 0));
    assert_true(IS_ALIVE(5, 5, 2, 0, 0));
    assert_true(IS_ALIVE(5, 5, 2, 0, 0)); /* as long as it was not told */
}

TEST(with_bscans_waiting_they_must_leave_the_engine)
{
    struct oct_service_progress seen = {0};
    struct oct_service_life life = {0};
    assert_true(IS_ALIVE(5, 5, 1, 3, 0));
    FEED();
    assert_false(IS_ALIVE(5, 6, 2, 3, 1)); /* what the others do is not enough */
    assert_true(IS_ALIVE(6, 6, 2, 3, 0));
    FEED();
    assert_false(IS_ALIVE(6, 6, 2, 3, 0));
    assert_true(IS_ALIVE(6, 6, 3, 0, 0)); /* none waits any more */
}

TEST(with_pictures_waiting_the_keeper_must_take_them)
{
    struct oct_service_progress seen = {0};
    struct oct_service_life life = {0};
    assert_true(IS_ALIVE(5, 5, 1, 0, 3));
    FEED();
    assert_false(IS_ALIVE(6, 5, 2, 0, 4));
    assert_false(IS_ALIVE(7, 5, 3, 9, 5)); /* however busy the engine is */
    assert_true(IS_ALIVE(7, 6, 3, 9, 4));  /* and neither need move again by now */
}

/* Each within the interval, not at one look: a slow engine and a keeper that waits for it. */
TEST(they_may_move_one_after_another)
{
    struct oct_service_progress seen = {0};
    struct oct_service_life life = {0};
    assert_true(IS_ALIVE(5, 5, 1, 3, 1));
    FEED();
    assert_false(IS_ALIVE(6, 5, 1, 3, 2));
    assert_true(IS_ALIVE(6, 6, 1, 3, 1));
    FEED();
    assert_false(IS_ALIVE(6, 7, 1, 3, 0));
    assert_true(IS_ALIVE(7, 7, 1, 2, 1));
}

/* Who waits for room looks for no lines meanwhile: that the others move is enough. */
TEST(the_ingest_may_wait_for_the_others)
{
    struct oct_service_progress seen = {0};
    struct oct_service_life life = {0};
    assert_true(IS_ALIVE(5, 5, 1, 3, 3));
    FEED();
    assert_true(IS_ALIVE(6, 6, 1, 3, 3));
    FEED();
    assert_false(IS_ALIVE(6, 6, 1, 0, 0));
}

/* ---- a start that hangs ---- */

struct manager {
    struct sockaddr_un at;
    int fd;
};

static int open_manager(void **state)
{
    static struct manager m;
    char here[sizeof(m.at.sun_path) - 8];
    m = (struct manager){.at = {.sun_family = AF_UNIX}};
    snprintf(m.at.sun_path, sizeof(m.at.sun_path), "%s/notify", getcwd(here, sizeof(here)));
    m.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(m.fd >= 0);
    assert_int_equal(bind(m.fd, (struct sockaddr *)&m.at, sizeof(m.at)), 0);
    setenv("NOTIFY_SOCKET", m.at.sun_path, 1);
    setenv("WATCHDOG_USEC", "4000", 1);
    *state = &m;
    return 0;
}

static int close_manager(void **state)
{
    struct manager *m = *state;
    close(m->fd);
    unlink(m->at.sun_path);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    return 0;
}

/* Whether WATCHDOG=1 has come since the last question. */
static bool was_fed(struct manager *m)
{
    char text[256];
    ssize_t n;
    bool fed = false;
    while ((n = recv(m->fd, text, sizeof(text) - 1, 0)) >= 0) {
        text[n] = '\0';
        fed |= strcmp(text, "WATCHDOG=1") == 0;
    }
    return fed;
}

static void look(struct oct_service *service, const struct oct_daemon *daemon)
{
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); /* more than WATCHDOG_USEC / 4 */
    oct_service_look_around(service, daemon);
}

TEST_WITH(a_start_that_hangs_is_not_reported_alive, open_manager, close_manager)
{
    struct manager *m = *state;
    const uint64_t limit_ns = OCT_SERVICE_BUILD_S * UINT64_C(1000000000);
    struct oct_service service;
    struct oct_daemon *daemon = calloc(1, sizeof(*daemon)); /* large */
    assert_non_null(daemon);
    daemon->state = OCT_STATE_STARTING;
    oct_service_init(&service);
    daemon->job.kind = OCT_JOB_BUILD;
    daemon->job.begun_ns = oct_clock_ns();
    look(&service, daemon);
    assert_true(was_fed(m));
    assert_false(service.told_hanging);
    daemon->job.begun_ns = oct_clock_ns() - limit_ns + limit_ns / 4;
    look(&service, daemon);
    assert_true(was_fed(m));
    daemon->job.begun_ns = oct_clock_ns() - limit_ns - 1;
    look(&service, daemon);
    look(&service, daemon);
    assert_false(was_fed(m));
    assert_true(service.told_hanging);
    daemon->job.kind = OCT_JOB_NONE; /* it has ended after all */
    look(&service, daemon);
    assert_true(was_fed(m));
    daemon->job.kind = OCT_JOB_RECORD; /* no other job has that limit: a disk may stall */
    look(&service, daemon);
    assert_true(was_fed(m));
    oct_service_finish(&service);
    free(daemon);
}
