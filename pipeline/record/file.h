/* A file of a recording: one volume's. The recorder's thread owns it until it is left to the closer
 * (status.h). */
#ifndef OCT_PIPELINE_RECORD_FILE_H
#define OCT_PIPELINE_RECORD_FILE_H

#include "pipeline/volume/volume.h"

#include <stdbool.h>
#include <stdint.h>

struct oct_record_file {
    struct oct_volume_writer *writer; /* NULL: there is none */
    uint64_t number;                  /* of all files since the recorder began, from 1 on */
    uint32_t acquisition;
    uint64_t volume;
    uint32_t n_bscans;           /* of a whole one */
    uint32_t accepted;           /* B-scans given to it */
    uint32_t engine_lost;        /* of those, without a picture */
    uint64_t last_slot, last_id; /* the last of them: slot of the rings, info.id */
    uint64_t ended_ns;           /* when it had all its B-scans */
    bool is_cut;                 /* its volume ended before its last B-scan, and none follows it */
    uint64_t synced_ns;          /* last */
    uint64_t written, bytes;     /* counted as safe so far */
};

#endif
