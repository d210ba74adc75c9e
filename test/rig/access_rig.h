/* A folder of keys and who comes in by them: for the tests of access. All of it fails the cmocka
 * test unless it works. */
#ifndef OCT_TEST_RIG_ACCESS_RIG_H
#define OCT_TEST_RIG_ACCESS_RIG_H

#include "pipeline/net/access.h"

#include <stdbool.h>
#include <stdint.h>

enum { ALICE, BOB, N_CLIENTS };

struct rig {
    struct oct_access *access;
    char folder[256], secret[300], allowed[300];
    char keys[N_CLIENTS][OCT_CURVE_KEY_BYTES];
};

/* Of cmocka: two keys in the folder, and access that has read it; *state is the rig. */
int make_rig(void **state);
int drop_rig(void **state);

struct oct_access_counts counts(const struct rig *rig);
void wait_for_allowed(const struct rig *rig, uint64_t n);

/* The files of keys. A spoiled one opens, and reading it is an error of the kernel's: EIO.
 * remove_key waits until it is out. */
void key_path(const struct rig *rig, int who, char path[400]);
void remove_key(const struct rig *rig, int who);
void write_key(const struct rig *rig, const char *name, const char *key);
void spoil_key(const struct rig *rig, int who);

bool comes_in(const struct rig *rig, const char *key);

struct connection {
    int ours, theirs; /* descriptors of the two ends */
    char pass[OCT_PASS_BYTES];
};

/* A connection that stands and whose handshake has succeeded. fd >= 0: over this descriptor. */
struct connection come_in(const struct rig *rig, int who, int fd);
bool is_cut(const struct connection *c);
void leave(struct connection *c);

/* Its descriptor will be another connection's: the thread that reads the folder must not get it
 * meanwhile. */
void leave_for_another(struct connection *c);

#endif
