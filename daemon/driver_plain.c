#include "daemon/driver_plain.h"

#include <inttypes.h>
#include <stdio.h>

/* Faults whose words need no numbers. */
static const char *const without_numbers[OCT_N_DRIVER_FAULTS] = {
    [OCT_BAD_PARTS] = "the camera's messages are not as octd expects them",
    [OCT_BAD_HEADER_SIZE] = "the camera's messages are not as octd expects them",
    [OCT_BAD_MAGIC] = "the camera's messages are not as octd expects them",
    [OCT_BAD_VERSION] = "the camera's program is of another version than octd",
    [OCT_BAD_RESERVED] = "the camera's messages are not as octd expects them",
    [OCT_BAD_CRC] = "the camera's lines arrive damaged: their check sum is wrong",
    [OCT_BAD_SLOT] = "the camera's lines are not where the camera says that they are",
    [OCT_BAD_SCAN] = "the camera has not followed the change of the scan",
    [OCT_BAD_EPOCH] = "two cameras send at once: the lines of one are left out",
    [OCT_DRIVER_RESENT] = "the camera sends the same lines again and again",
    [OCT_DRIVER_SEQUENCE_STUCK] = "the camera's messages all have the same number",
    [OCT_DRIVER_LINE_STUCK] = "the camera's lines all have the same number",
    [OCT_DRIVER_STARTS_AGAIN] = "the camera begins anew with each message",
    [OCT_DRIVER_LINE_WENT_BACK] = "the camera counts its lines anew without beginning anew",
    [OCT_DRIVER_EPOCH_AGAIN] = "the camera's program began anew without saying so",
    [OCT_DRIVER_BYTE_SWAPPED] = "the camera's samples have their bits in a wrong order",
    [OCT_DRIVER_FLOAT] = "the camera sends numbers with a point, whole ones are expected",
    [OCT_DRIVER_NO_PUSH] = "what connects to octd in the camera's place is no camera",
};

void oct_driver_plain(unsigned fault, const struct oct_driver_message *m,
                      const struct oct_config *config, char *text, size_t n_bytes)
{
    const struct oct_lines_header *h = &m->header;

    switch (fault) {
    case OCT_BAD_SAMPLES:
        snprintf(text, n_bytes,
                 "the camera sends lines of %" PRIu32 " samples, %" PRIu32 " are expected",
                 h->n_samples, config->camera.samples);
        break;
    case OCT_BAD_LINES:
        if (h->n_lines == 0)
            snprintf(text, n_bytes, "the camera sends messages without lines");
        else
            snprintf(text, n_bytes, "the camera's line numbers jump far ahead, to %" PRIu64,
                     h->first_line);
        break;
    case OCT_BAD_FORMAT:
        if (!oct_samples_fit(h->format, h->n_samples))
            snprintf(text, n_bytes, "the camera packs an odd number of samples, %u, a line",
                     (unsigned)h->n_samples);
        else
            snprintf(text, n_bytes,
                     m->format ? "the camera sends samples of kind %u, before they were of another"
                               : "the camera sends samples of kind %u, which octd cannot read",
                     (unsigned)h->format);
        break;
    case OCT_BAD_PAYLOAD_SIZE:
        snprintf(text, n_bytes,
                 "the camera sends %" PRIu64 " bytes of lines, %" PRIu64 " are expected",
                 m->payload_bytes, oct_lines_payload_bytes(h));
        break;
    case OCT_DRIVER_SEQUENCE_JUMPS:
        snprintf(text, n_bytes,
                 "the numbers of the camera's messages rise by %" PRIu64 ", 1 is expected",
                 h->sequence - m->before_sequence);
        break;
    case OCT_DRIVER_LINE_OVERLAPS:
    case OCT_DRIVER_LINE_COUNTS_SAMPLES:
        snprintf(text, n_bytes,
                 "the numbers of the camera's lines rise by %" PRIu64 " a message, %" PRIu32
                 " are expected",
                 h->first_line - m->before_line, m->before_n_lines);
        break;
    default: {
        const char *words = fault < OCT_N_DRIVER_FAULTS ? without_numbers[fault] : NULL;
        snprintf(text, n_bytes, "%s", words ? words : "");
    }
    }
}
