/* Lowers the viewer's priority, so that it gives way to a daemon on the same cores. */
#ifndef OCT_VIEWER_PRIORITY_H
#define OCT_VIEWER_PRIORITY_H

/* Makes the process at least this nice (0 .. 19); call it before threads are started, which
 * inherit it. A process that is nicer already stays so. A refusal of the kernel is ignored: the
 * viewer works without. */
void oct_view_step_back(unsigned nice);

#endif
