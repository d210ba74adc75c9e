/* Lines in over the wire: messages of two parts, as they are or nearly right, into the real
 * assembler; whatever comes, the accounting holds and every B-scan delivered is whole. */
#include "pipeline/base/crc32c.h"
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/assembler.h"
#include "test/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { N = 8, M = 5, V = 3, SLOTS = 4, MOST_MESSAGES = 64, MOST_PAYLOAD = 4096 };

struct rig {
    struct oct_geometry geometry;
    struct oct_ring *ring;
    struct oct_ring_reader *reader;
    struct oct_assembler *assembler;
    struct oct_ingest_counts *counts;
    struct oct_loss_log *losses;
    uint64_t missing; /* of the B-scans read */
};

static void open_rig(struct rig *r)
{
    struct oct_error err;
    *r = (struct rig){.losses = oct_loss_log_create(0)};
    fuzz_must(!oct_geometry_init(&r->geometry, N, M, V, 0, 0, OCT_SAMPLE_U8, &err));
    fuzz_must(
        !oct_ring_create(&r->ring, SLOTS, oct_raw_slot_bytes(&r->geometry), NULL, NULL, &err));
    r->reader = oct_ring_reader_create(r->ring, true, 0);
    fuzz_must(r->reader && !oct_assembler_create(&r->assembler, &r->geometry, r->ring, 0, &err));
    oct_assembler_set_losses(r->assembler, r->losses);
    r->counts = oct_assembler_counts(r->assembler);
}

static void close_rig(struct rig *r)
{
    oct_assembler_destroy(r->assembler);
    oct_ring_reader_destroy(r->reader);
    oct_ring_destroy(r->ring);
    oct_loss_log_destroy(r->losses);
}

static void check_frame(struct rig *r, const struct oct_raw_frame *frame)
{
    uint32_t missing = 0;
    for (uint32_t j = 0; j < M; j++) {
        fuzz_must(frame->line_valid[j] <= 1);
        if (frame->line_valid[j])
            continue;
        uint16_t room[N];
        const uint16_t *line = oct_raw_line(frame, &r->geometry, j, 0, N, room);
        missing++;
        for (uint32_t i = 0; i < N; i++)
            fuzz_must(line[i] == 0);
    }
    fuzz_must(missing == frame->info.missing_lines && missing < M);
    fuzz_must(frame->info.volume == frame->info.number / V);
    fuzz_must(frame->info.bscan == frame->info.number % V);
    r->missing += missing;
}

static void read_some(struct rig *r, unsigned most)
{
    uint64_t slot;
    while (most-- > 0 && oct_ring_read(r->reader, 0, &slot) == OCT_OK) {
        check_frame(r, oct_raw_slot(r->ring, slot, &r->geometry));
        oct_ring_release(r->reader);
    }
}

/* Mostly small steps, so that messages meet in the same B-scans. */
static uint64_t number(struct fuzz_input *in, uint64_t before)
{
    switch (fuzz_below(in, 8)) {
    case 0:
        return fuzz_take(in, 8);
    case 1:
        return UINT64_MAX - fuzz_take(in, 1);
    case 2:
        return UINT32_MAX - 8 + fuzz_take(in, 1);
    default:
        return before + (uint64_t)(int8_t)fuzz_take(in, 1);
    }
}

static void send_made(struct rig *r, struct fuzz_input *in, struct oct_lines_header *h)
{
    uint8_t header[OCT_LINES_HEADER_BYTES];
    const uint32_t how = fuzz_below(in, 256);
    h->sequence = how & 1 ? h->sequence + 1 : number(in, h->sequence);
    h->first_line = how & 2 ? h->first_line + h->n_lines : number(in, h->first_line);
    h->n_lines = how & 4 ? fuzz_below(in, 3 * M) : (uint32_t)number(in, 0);
    h->n_samples = how & 8 ? N : (uint32_t)fuzz_take(in, 4);
    h->format = how & 16 ? OCT_LINES_U16 : (uint16_t)fuzz_take(in, 1) % 5;
    h->flags = (uint16_t)(how & 32 ? 0 : fuzz_take(in, 1) % 4);
    h->epoch = how & 64 ? h->epoch : (uint32_t)fuzz_take(in, 1);
    h->time_ns = fuzz_take(in, 2);
    uint64_t announced = oct_lines_payload_bytes(h);
    size_t n =
        how & 128 && announced <= MOST_PAYLOAD ? (size_t)announced : fuzz_below(in, MOST_PAYLOAD);
    uint8_t *payload = malloc(n + 1);
    fuzz_must(payload != NULL);
    fuzz_fill(in, payload, n);
    h->crc32c = how & 1 ? 0 : oct_crc32c(payload, n);
    fuzz_must(oct_crc32c(payload, n) == oct_crc32c_portable(payload, n));
    oct_lines_encode(h, header);
    enum oct_bad bad = oct_assembler_take(r->assembler, header, sizeof(header), payload, n, 1);
    fuzz_must(bad != OCT_BAD_NONE || (n == announced && h->n_samples == N && h->flags < 4));
    free(payload);
}

static void send_raw(struct rig *r, struct fuzz_input *in)
{
    size_t header_bytes = fuzz_below(in, 8) ? OCT_LINES_HEADER_BYTES : fuzz_below(in, 100);
    size_t n = fuzz_below(in, 256);
    uint8_t *header = malloc(header_bytes + 1), *payload = malloc(n + 1);
    fuzz_must(header && payload);
    fuzz_fill(in, header, header_bytes);
    fuzz_fill(in, payload, n);
    oct_assembler_take(r->assembler, header, header_bytes, payload, n, 1);
    free(header);
    free(payload);
}

static void check_counts(const struct rig *r)
{
    const struct oct_ingest_counts *c = r->counts;
    fuzz_must(c->bscans_begun == c->bscans_delivered + c->bscans_dropped);
    fuzz_must(c->bscans_delivered == oct_ring_published(r->ring));
    fuzz_must(c->lines_received == c->bscans_delivered * M - r->missing);
    fuzz_must(c->lines_missing >= r->missing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct oct_lines_header h = {.epoch = 1};
    struct rig r;
    open_rig(&r);
    for (int i = 0; in.left > 0 && i < MOST_MESSAGES; i++) {
        switch (fuzz_below(&in, 8)) {
        case 0:
            send_raw(&r, &in);
            break;
        case 1:
            oct_assembler_flush(r.assembler, fuzz_below(&in, 2) != 0);
            break;
        case 2:
            oct_assembler_end(r.assembler);
            break;
        case 3:
            read_some(&r, 1 + fuzz_below(&in, SLOTS));
            break;
        default:
            send_made(&r, &in, &h);
        }
    }
    oct_assembler_end(r.assembler);
    read_some(&r, SLOTS);
    check_counts(&r);
    close_rig(&r);
    return 0;
}
