/* What a list of exams says of a recording (viewer/model/exams.h), and the names of a folder. */
#ifndef OCT_VIEWER_PLAY_EXAMS_H
#define OCT_VIEWER_PLAY_EXAMS_H

#include "viewer/model/exams.h"

#include <stdbool.h>

/* Fills *exam from a file of a folder ("" or ending in '/'). False: it is no recording. Any
 * thread; takes as long as the disk does to open it and to read a B-scan. */
bool oct_play_exam_read(const char *folder, const char *name, struct oct_view_exam *exam);

#endif
