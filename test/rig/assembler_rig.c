#include "test/rig/assembler_rig.h"

#include "pipeline/flow/slots.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdlib.h>

void open_assembler(struct assembler_rig *r, uint64_t patience_us)
{
    must(oct_geometry_init(&r->geometry, N, M, V, 0, 0, OCT_SAMPLE_U8, &failure));
    r->ring = open_ring(SLOTS, oct_raw_slot_bytes(&r->geometry));
    r->reader = add_reader(r->ring, true, 0);
    must(oct_assembler_create(&r->assembler, &r->geometry, r->ring, patience_us, &failure));
    r->counts = oct_assembler_counts(r->assembler);
}

void close_assembler(struct assembler_rig *r)
{
    oct_assembler_destroy(r->assembler);
    oct_ring_destroy(r->ring);
}

uint16_t assembler_sample(const struct oct_lines_header *h, uint64_t line, uint32_t i)
{
    struct dice dice = {h->epoch * 7919ull + h->sequence * 104729 + line * 131 + i};
    uint16_t value = (uint16_t)(dice_roll(&dice) | 1);
    return (uint16_t)(value & ((1u << oct_samples_bits(h->format)) - 1));
}

enum oct_bad send_message(struct assembler_rig *r, const struct oct_lines_header *h,
                          uint64_t arrival_ns)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    uint16_t *payload = malloc(h->n_lines * (size_t)N * 2 + 1);
    assert_non_null(payload);
    for (uint32_t j = 0; j < h->n_lines; j++)
        for (uint32_t i = 0; i < N; i++)
            payload[(size_t)j * N + i] = assembler_sample(h, h->first_line + j, i);
    assert_int_equal(oct_samples_pack(payload, payload, h->n_lines * (size_t)N, h->format), 0);
    oct_lines_encode(h, header);
    enum oct_bad bad = oct_assembler_take(r->assembler, header, sizeof(header), payload,
                                          (size_t)oct_lines_payload_bytes(h), arrival_ns);
    free(payload);
    return bad;
}
