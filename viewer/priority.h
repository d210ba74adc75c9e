/* The viewer gives way to the daemon where both run on the same cores. */
#ifndef OCT_VIEWER_PRIORITY_H
#define OCT_VIEWER_PRIORITY_H

/* Makes the process at least this nice (0 .. 19); call it before threads are started, which
 * inherit it. A process that is nicer already stays so. A kernel that refuses is no error: pictures
 * come all the same. */
void oct_view_step_back(unsigned nice);

#endif
