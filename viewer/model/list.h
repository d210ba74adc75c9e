/* A list of rows of which the window shows some. Pure. */
#ifndef OCT_VIEWER_MODEL_LIST_H
#define OCT_VIEWER_MODEL_LIST_H

struct oct_view_list {
    unsigned n, first; /* all of them; the first that is shown */
    unsigned chosen;   /* by keys, from 1; 0: none */
};

/* Scrolls by rows; chooses another row, `by` from the chosen one, and scrolls to it. n_rows: in
 * sight. */
void oct_view_list_scroll(struct oct_view_list *list, int by, unsigned n_rows);
void oct_view_list_move(struct oct_view_list *list, int by, unsigned n_rows);

#endif
