#include "pipeline/volume/hdf5_copy.h"

#include "pipeline/volume/hdf5_lock.h"

#include <hdf5_hl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 32u
#define MOST_ATTRIBUTE_BYTES ((size_t)64 << 20)
#define NAME_BYTES 256

static enum oct_err refuse(const struct oct_hdf5_copy *c, const char *name, const char *what,
                           struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: %s: %s", c->path, name, what);
}

static enum oct_err refuse_hdf5(const struct oct_hdf5_copy *c, const char *name, const char *what,
                                struct oct_error *err)
{
    char reason[160];
    oct_hdf5_reason(reason, sizeof(reason));
    return oct_fail(err, OCT_E_IO, "%s: %s: %s: %s", c->path, name, what, reason);
}

static enum oct_err no_memory(const struct oct_hdf5_copy *c, struct oct_error *err)
{
    return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", c->path);
}

/* ---- objects ---- */

static const struct oct_hdf5_object *find(const struct oct_hdf5_copy *c, haddr_t address)
{
    for (size_t i = 0; i < c->n_objects; i++)
        if (c->objects[i].address == address)
            return &c->objects[i];
    return NULL;
}

static enum oct_err remember(struct oct_hdf5_copy *c, const char *name, const H5O_info_t *info,
                             struct oct_error *err)
{
    if (c->n_objects == c->room) {
        const size_t room = c->room ? 2 * c->room : 64;
        struct oct_hdf5_object *objects = realloc(c->objects, room * sizeof(*objects));
        if (!objects)
            return no_memory(c, err);
        c->objects = objects;
        c->room = room;
    }
    char *copy = strdup(name);
    if (!copy)
        return no_memory(c, err);
    c->objects[c->n_objects++] = (struct oct_hdf5_object){
        .name = copy, .address = info->addr, .is_dataset = info->type == H5O_TYPE_DATASET};
    return OCT_OK;
}

/* What would be lost or lie elsewhere. */
static enum oct_err check_dataset(const struct oct_hdf5_copy *c, const char *name, hid_t dataset,
                                  struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    const hid_t type = H5Dget_type(dataset), properties = H5Dget_create_plist(dataset);
    if (type < 0 || properties < 0)
        e = refuse_hdf5(c, name, "cannot be read", err);
    else if (H5Tdetect_class(type, H5T_REFERENCE) != 0)
        e = refuse(c, name, "its values point at other objects, and those are not copied", err);
    else if (H5Pget_layout(properties) == H5D_VIRTUAL || H5Pget_external_count(properties) != 0)
        e = refuse(c, name, "its values lie in other files: copy them into this one", err);
    OCT_HDF5_CLOSE(properties, type);
    return e;
}

static enum oct_err copy_as_it_is(const struct oct_hdf5_copy *c, const char *name,
                                  struct oct_error *err)
{
    const hid_t flags = H5Pcreate(H5P_OBJECT_COPY);
    const bool ok = flags >= 0 && H5Pset_copy_object(flags, H5O_COPY_WITHOUT_ATTR_FLAG) >= 0 &&
                    H5Ocopy(c->from, name, c->to, name, flags, H5P_DEFAULT) >= 0;
    const enum oct_err e = ok ? OCT_OK : refuse_hdf5(c, name, "cannot be copied", err);
    OCT_HDF5_CLOSE(flags);
    return e;
}

static enum oct_err copy_dataset(struct oct_hdf5_copy *c, const char *name, struct oct_error *err)
{
    bool is_made = false;
    const hid_t dataset = H5Dopen2(c->from, name, H5P_DEFAULT);
    if (dataset < 0)
        return refuse_hdf5(c, name, "cannot be opened", err);
    enum oct_err e = check_dataset(c, name, dataset, err);
    e = e ? e : c->make(c->context, name, dataset, &is_made, err);
    H5Dclose(dataset);
    return e || is_made ? e : copy_as_it_is(c, name, err);
}

static enum oct_err copy_group(struct oct_hdf5_copy *c, const char *name, unsigned depth,
                               struct oct_error *err);

/* An object that was met before gets a second name. */
static enum oct_err copy_object(struct oct_hdf5_copy *c, const char *name, unsigned depth,
                                struct oct_error *err)
{
    H5O_info_t info;
    if (H5Oget_info_by_name2(c->from, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return refuse_hdf5(c, name, "cannot be read", err);
    const struct oct_hdf5_object *before = find(c, info.addr);
    if (before)
        return H5Lcreate_hard(c->to, before->name, c->to, name, H5P_DEFAULT, H5P_DEFAULT) >= 0
                   ? OCT_OK
                   : refuse_hdf5(c, name, "cannot be linked", err);
    enum oct_err e = remember(c, name, &info, err);
    if (e)
        return e;
    if (info.type == H5O_TYPE_DATASET)
        return copy_dataset(c, name, err);
    if (info.type != H5O_TYPE_GROUP)
        return copy_as_it_is(c, name, err);
    const hid_t group = H5Gcreate2(c->to, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (group < 0)
        return refuse_hdf5(c, name, "cannot be made", err);
    H5Gclose(group);
    return copy_group(c, name, depth + 1, err);
}

static enum oct_err copy_soft(const struct oct_hdf5_copy *c, const char *name, size_t n_bytes,
                              struct oct_error *err)
{
    char *target = calloc(n_bytes + 1, 1);
    if (!target)
        return no_memory(c, err);
    const bool ok = H5Lget_val(c->from, name, target, n_bytes, H5P_DEFAULT) >= 0 &&
                    H5Lcreate_soft(target, c->to, name, H5P_DEFAULT, H5P_DEFAULT) >= 0;
    free(target);
    return ok ? OCT_OK : refuse_hdf5(c, name, "cannot be linked", err);
}

struct walk {
    struct oct_hdf5_copy *copy;
    const char *group;
    unsigned depth;
    enum oct_err e;
    struct oct_error *err;
};

/* H5Literate's. */
static herr_t take_link(hid_t group, const char *link_name, const H5L_info_t *link, void *context)
{
    struct walk *w = context;
    struct oct_hdf5_copy *c = w->copy;
    const size_t n = strlen(w->group) + strlen(link_name) + 2;
    char *name = malloc(n);
    (void)group;
    if (!name) {
        w->e = no_memory(c, w->err);
        return -1;
    }
    snprintf(name, n, "%s/%s", w->group, link_name);
    if (link->type == H5L_TYPE_HARD)
        w->e = copy_object(c, name, w->depth, w->err);
    else if (link->type == H5L_TYPE_SOFT && link->u.val_size < 4096)
        w->e = copy_soft(c, name, link->u.val_size, w->err);
    else
        w->e = refuse(c, name, "it is a link into another file: copy it into this one", w->err);
    free(name);
    return w->e ? -1 : 0;
}

/* name: "" is the root. */
static enum oct_err copy_group(struct oct_hdf5_copy *c, const char *name, unsigned depth,
                               struct oct_error *err)
{
    struct walk w = {.copy = c, .group = name, .depth = depth, .err = err};
    if (depth > MOST_DEPTH)
        return refuse(c, name, "groups are nested too deeply", err);
    const hid_t group = H5Gopen2(c->from, name[0] ? name : "/", H5P_DEFAULT);
    if (group < 0)
        return refuse_hdf5(c, name, "cannot be opened", err);
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, take_link, &w) < 0 && !w.e)
        w.e = refuse_hdf5(c, name, "cannot be listed", err);
    H5Gclose(group);
    return w.e;
}

enum oct_err oct_hdf5_copy_objects(struct oct_hdf5_copy *copy, struct oct_error *err)
{
    H5O_info_t root;
    if (H5Oget_info_by_name2(copy->from, "/", &root, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return refuse_hdf5(copy, "/", "cannot be read", err);
    const enum oct_err e = remember(copy, "/", &root, err);
    return e ? e : copy_group(copy, "", 0, err);
}

void oct_hdf5_copy_finish(struct oct_hdf5_copy *copy)
{
    for (size_t i = 0; i < copy->n_objects; i++)
        free(copy->objects[i].name);
    free(copy->objects);
    copy->objects = NULL;
    copy->n_objects = copy->room = 0;
}

/* ---- attributes ---- */

struct attributes {
    const struct oct_hdf5_copy *copy;
    const char *object;
    hid_t to;
    bool is_scale;
    enum oct_err e;
    struct oct_error *err;
};

/* Those of dimension scales, which point at objects, are made anew. */
static bool is_of_scales(const struct attributes *a, const char *name)
{
    return strcmp(name, "DIMENSION_LIST") == 0 || strcmp(name, "REFERENCE_LIST") == 0 ||
           (a->is_scale && (strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0));
}

/* type: a copy, so that it may belong to the other file. */
static enum oct_err copy_value(const struct attributes *a, const char *name, hid_t from, hid_t type,
                               hid_t space, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    const hssize_t n_values = H5Sget_simple_extent_npoints(space);
    const size_t value_bytes = H5Tget_size(type);
    if (n_values < 0 || value_bytes == 0 || (uint64_t)n_values > MOST_ATTRIBUTE_BYTES / value_bytes)
        return refuse(a->copy, a->object, "an attribute is damaged, or larger than 64 MiB", err);
    void *values = calloc((size_t)n_values + 1, value_bytes);
    if (!values)
        return no_memory(a->copy, err);
    const hid_t to = H5Acreate2(a->to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (to < 0 ||
        (n_values > 0 && (H5Aread(from, type, values) < 0 || H5Awrite(to, type, values) < 0)))
        e = refuse_hdf5(a->copy, a->object, "an attribute cannot be copied", err);
    if (H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tdetect_class(type, H5T_STRING) > 0)
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
    OCT_HDF5_CLOSE(to);
    free(values);
    return e;
}

/* H5Aiterate's. */
static herr_t take_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    struct attributes *a = context;
    (void)info;
    if (is_of_scales(a, name))
        return 0;
    const hid_t from = H5Aopen(object, name, H5P_DEFAULT);
    const hid_t stored = from < 0 ? H5I_INVALID_HID : H5Aget_type(from);
    const hid_t type = stored < 0 ? H5I_INVALID_HID : H5Tcopy(stored);
    const hid_t space = from < 0 ? H5I_INVALID_HID : H5Aget_space(from);
    if (type < 0 || space < 0)
        a->e = refuse_hdf5(a->copy, a->object, "an attribute cannot be read", a->err);
    else if (H5Tdetect_class(type, H5T_REFERENCE) != 0)
        a->e = refuse(a->copy, a->object,
                      "an attribute points at other objects, and those are not copied", a->err);
    else
        a->e = copy_value(a, name, from, type, space, a->err);
    OCT_HDF5_CLOSE(space, type, stored, from);
    return a->e ? -1 : 0;
}

/* ---- scales ---- */

struct scales {
    const struct oct_hdf5_copy *copy;
    hid_t to;
    bool failed;
};

/* H5DSiterate_scales'. */
static herr_t take_scale(hid_t dataset, unsigned axis, hid_t scale, void *context)
{
    struct scales *s = context;
    H5O_info_t info;
    (void)dataset;
    const struct oct_hdf5_object *object =
        H5Oget_info2(scale, &info, H5O_INFO_BASIC) < 0 ? NULL : find(s->copy, info.addr);
    const hid_t to = object ? H5Dopen2(s->copy->to, object->name, H5P_DEFAULT) : H5I_INVALID_HID;
    const bool ok = to >= 0 && H5DSattach_scale(s->to, to, axis) >= 0;
    OCT_HDF5_CLOSE(to);
    s->failed |= object && !ok;
    return ok ? 0 : -1;
}

static enum oct_err name_scale(const struct oct_hdf5_copy *c, const char *name, hid_t from,
                               hid_t to, struct oct_error *err)
{
    char scale_name[NAME_BYTES] = "";
    if (H5DSget_scale_name(from, scale_name, sizeof(scale_name)) < 0 ||
        H5DSset_scale(to, scale_name[0] ? scale_name : NULL) < 0)
        return refuse_hdf5(c, name, "its dimension scale cannot be copied", err);
    return OCT_OK;
}

static enum oct_err attach_scales(const struct oct_hdf5_copy *c, const char *name, hid_t from,
                                  hid_t to, struct oct_error *err)
{
    const hid_t space = H5Dget_space(from);
    const int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space);
    struct scales s = {.copy = c, .to = to};
    OCT_HDF5_CLOSE(space);
    if (H5Aexists(from, "DIMENSION_LIST") <= 0)
        return OCT_OK;
    /* A list that points at nothing, which a copy by other programs leaves, holds no scale. */
    for (int axis = 0; axis < rank; axis++)
        if (H5DSget_num_scales(from, (unsigned)axis) > 0)
            (void)H5DSiterate_scales(from, (unsigned)axis, NULL, take_scale, &s);
    return !s.failed ? OCT_OK : refuse_hdf5(c, name, "its dimension scales cannot be copied", err);
}

/* ---- all of them ---- */

static enum oct_err copy_attributes_of(const struct oct_hdf5_copy *c,
                                       const struct oct_hdf5_object *object, struct oct_error *err)
{
    const hid_t from = H5Oopen(c->from, object->name, H5P_DEFAULT);
    const hid_t to = H5Oopen(c->to, object->name, H5P_DEFAULT);
    struct attributes a = {.copy = c, .object = object->name, .to = to, .err = err};
    if (from < 0 || to < 0)
        a.e = refuse_hdf5(c, object->name, "cannot be opened", err);
    a.is_scale = !a.e && object->is_dataset && H5DSis_scale(from) > 0;
    if (a.is_scale)
        a.e = name_scale(c, object->name, from, to, err);
    if (!a.e && H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, NULL, take_attribute, &a) < 0 && !a.e)
        a.e = refuse_hdf5(c, object->name, "its attributes cannot be listed", err);
    OCT_HDF5_CLOSE(to, from);
    return a.e;
}

static enum oct_err copy_scales_of(const struct oct_hdf5_copy *c,
                                   const struct oct_hdf5_object *object, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    const hid_t from = H5Dopen2(c->from, object->name, H5P_DEFAULT);
    const hid_t to = H5Dopen2(c->to, object->name, H5P_DEFAULT);
    if (from < 0 || to < 0)
        e = refuse_hdf5(c, object->name, "cannot be opened", err);
    else
        e = attach_scales(c, object->name, from, to, err);
    OCT_HDF5_CLOSE(to, from);
    return e;
}

enum oct_err oct_hdf5_copy_attributes(struct oct_hdf5_copy *copy, struct oct_error *err)
{
    enum oct_err e = OCT_OK;
    for (size_t i = 0; i < copy->n_objects && !e; i++)
        e = copy_attributes_of(copy, &copy->objects[i], err);
    for (size_t i = 0; i < copy->n_objects && !e; i++)
        if (copy->objects[i].is_dataset)
            e = copy_scales_of(copy, &copy->objects[i], err);
    return e;
}
