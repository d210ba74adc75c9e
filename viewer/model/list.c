#include "viewer/model/list.h"

void oct_view_list_scroll(struct oct_view_list *list, int by, unsigned n_rows)
{
    const int last = list->n > n_rows ? (int)(list->n - n_rows) : 0, to = (int)list->first + by;
    list->first = (unsigned)(to < 0 ? 0 : to > last ? last : to);
}

void oct_view_list_move(struct oct_view_list *list, int by, unsigned n_rows)
{
    int to = (int)list->chosen + by;
    if (list->n == 0)
        return;
    if (list->chosen == 0 && by != 0) /* the first, or the first in sight */
        to = (int)list->first + 1;
    to = to < 1 ? 1 : to > (int)list->n ? (int)list->n : to;
    list->chosen = (unsigned)to;
    if (list->chosen <= list->first)
        list->first = list->chosen - 1;
    else if (list->chosen > list->first + n_rows)
        list->first = list->chosen - n_rows;
}
