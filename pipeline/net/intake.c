#include "pipeline/net/intake.h"

#include "pipeline/net/descriptors.h"

#include <stdatomic.h>
#include <sys/socket.h>

#define SECOND_NS UINT64_C(1000000000)
#define NS_PER_BYTE (SECOND_NS / OCT_VIEWER_BYTES_S)
#define BURST_NS (NS_PER_BYTE * OCT_VIEWER_BYTES)
#define ALL_NS_PER_BYTE (SECOND_NS / OCT_VIEWERS_BYTES)

/* recv() (descriptors.c) has no argument that could lead to a place of ours. By descriptor, each of
 *     0                    not looked at
 *     IS_NEW | listener    accepted from this listener, no byte has come since it was marked
 *     t                    a viewer: what it has sent, at OCT_VIEWER_BYTES_S, lasts until t */
#define IS_NEW (UINT64_C(1) << 63)
static atomic_uint_fast64_t intake[OCT_DESCRIPTORS_MOST];
static atomic_uint_fast64_t cookies[OCT_DESCRIPTORS_MOST]; /* of those sockets */
static atomic_uint_fast64_t all_until_ns;                  /* t of all, at OCT_VIEWERS_BYTES */
static atomic_uint_fast64_t n_cut;

void oct_intake_note_cut(void)
{
    atomic_fetch_add(&n_cut, 1);
}

uint64_t oct_intake_viewers_cut(void)
{
    return atomic_load(&n_cut);
}

void oct_intake_begin(int fd, int listener)
{
    if (fd < 0 || fd >= OCT_DESCRIPTORS_MOST)
        return;
    atomic_store(&cookies[fd], oct_descriptors_cookie(fd));
    atomic_store(&intake[fd], IS_NEW | (uint64_t)listener);
}

/* Whether the connection is a viewer's. One whose listener is not marked yet is looked at again. */
static bool is_limited(int fd, uint64_t *until_ns)
{
    if (!(*until_ns & IS_NEW))
        return *until_ns != 0;
    enum oct_callers callers = oct_descriptors_callers((int)(*until_ns & ~IS_NEW));
    if (callers == OCT_CALLERS_UNKNOWN)
        return false;
    *until_ns = callers == OCT_CALLERS_VIEWERS; /* 1: long ago */
    atomic_store(&intake[fd], *until_ns);
    return callers == OCT_CALLERS_VIEWERS;
}

bool oct_intake_is_viewer(int fd, uint64_t cookie)
{
    if (fd < 0 || fd >= OCT_DESCRIPTORS_MOST || !cookie || atomic_load(&cookies[fd]) != cookie)
        return false;
    uint64_t until_ns = atomic_load(&intake[fd]);
    return is_limited(fd, &until_ns);
}

bool oct_intake_is_full(uint64_t now_ns)
{
    uint64_t until_ns = atomic_load(&all_until_ns);
    return until_ns > now_ns && until_ns - now_ns >= ALL_NS_PER_BYTE * OCT_VIEWERS_BYTES;
}

static void charge_all(size_t n_bytes, uint64_t now_ns)
{
    uint64_t before = atomic_load(&all_until_ns), after;
    do {
        after = (before < now_ns ? now_ns : before) + n_bytes * ALL_NS_PER_BYTE;
        if (after > now_ns + 2 * SECOND_NS)
            after = now_ns + 2 * SECOND_NS; /* however many there were, they are over soon */
    } while (!atomic_compare_exchange_weak(&all_until_ns, &before, after));
}

bool oct_intake_exceeds(int fd, size_t n_bytes, uint64_t now_ns)
{
    uint64_t until_ns = fd >= 0 && fd < OCT_DESCRIPTORS_MOST ? atomic_load(&intake[fd]) : 0;
    if (!until_ns || !is_limited(fd, &until_ns))
        return false;
    charge_all(n_bytes, now_ns);
    if (until_ns < now_ns)
        until_ns = now_ns;
    until_ns += n_bytes * NS_PER_BYTE;
    atomic_store(&intake[fd], until_ns);
    if (until_ns - now_ns <= BURST_NS)
        return false;
    shutdown(fd, SHUT_RDWR);
    oct_intake_note_cut();
    return true;
}
