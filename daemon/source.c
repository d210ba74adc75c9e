#include "daemon/source.h"

#include "pipeline/base/log.h"

#include <inttypes.h>

static void note_loss(struct oct_source *source, const struct oct_ingest_counts *counts,
                      uint64_t volume_lines)
{
    uint64_t line = counts->next_line % volume_lines;
    if (line == 0)
        return;
    source->lost = true;
    source->n_losses++;
    oct_log(OCT_LOG_WARNING,
            "the sender fell silent %" PRIu64 " A-lines into a volume of %" PRIu64
            " (epoch %u): lines are taken as soon as it or another comes",
            line, volume_lines, (unsigned)counts->epoch);
}

static void note_resynchronised(struct oct_source *source, const struct oct_ingest_counts *counts)
{
    uint64_t n = counts->resynchronised;
    if (n > source->n_resynchronised)
        oct_log(OCT_LOG_WARNING,
                "the sender's line numbers (epoch %u) jumped ahead, and went on from where they "
                "were: lines in between came late, and a new acquisition begins",
                (unsigned)counts->epoch);
    source->n_resynchronised = n;
}

void oct_source_look(struct oct_source *source, const struct oct_ingest_counts *counts,
                     uint64_t quiet_ns, uint64_t volume_lines, uint64_t now_ns)
{
    uint64_t n_messages = counts->messages;
    bool over = counts->over, came = n_messages != source->n_messages;

    if (came) {
        source->n_messages = n_messages;
        source->heard_ns = now_ns;
        if (source->lost)
            oct_log(OCT_LOG_INFO, "lines come again (epoch %u)", (unsigned)counts->epoch);
    }
    note_resynchronised(source, counts);
    bool silent = now_ns - source->heard_ns > quiet_ns;
    if (source->streaming && silent && !over)
        note_loss(source, counts, volume_lines);
    if (came || over)
        source->lost = false;
    source->streaming = n_messages > 0 && !silent && !over;
}
