#include "pipeline/ingest/loans.h"

#include <stdlib.h>

struct loan {
    enum { NOTHING, A_MESSAGE, A_SHARED_SLOT } what;
    zmq_msg_t message;
    struct oct_shm_store *store;
    uint32_t shared_slot;
};

struct oct_loans {
    unsigned n_slots;
    struct loan loans[];
};

struct oct_loans *oct_loans_create(unsigned n_slots)
{
    struct oct_loans *l = calloc(1, sizeof(*l) + n_slots * sizeof(l->loans[0]));
    if (l)
        l->n_slots = n_slots;
    return l;
}

void oct_loans_destroy(struct oct_loans *l)
{
    for (unsigned k = 0; l && k < l->n_slots; k++)
        oct_loans_give_back(l, k);
    free(l);
}

void oct_loans_add_message(struct oct_loans *l, uint64_t slot, zmq_msg_t *payload)
{
    struct loan *loan = &l->loans[slot % l->n_slots];
    loan->what = A_MESSAGE;
    zmq_msg_init(&loan->message);
    zmq_msg_move(&loan->message, payload);
}

void oct_loans_add_shared(struct oct_loans *l, uint64_t slot, struct oct_shm_store *store,
                          const struct oct_shm_block *block)
{
    struct loan *loan = &l->loans[slot % l->n_slots];
    loan->what = A_SHARED_SLOT;
    loan->store = store;
    loan->shared_slot = block->slot;
    oct_shm_store_keep(store, block);
}

void oct_loans_give_back(struct oct_loans *l, uint64_t slot)
{
    struct loan *loan = &l->loans[slot % l->n_slots];
    if (loan->what == A_MESSAGE)
        zmq_msg_close(&loan->message);
    else if (loan->what == A_SHARED_SLOT)
        oct_shm_store_give_back(loan->store, loan->shared_slot);
    loan->what = NOTHING;
}
