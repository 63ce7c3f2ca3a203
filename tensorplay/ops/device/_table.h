/* The table from layouts to what is known of them, as an object.

   It lies among the context's plans, under a key of its own, and goes with them: whenever what a call resolves to may
   have changed, the context has others. Nothing is ever taken out of it. */

#ifndef TENSORPLAY_TABLE_H
#define TENSORPLAY_TABLE_H

#include "_entries.h"

/* At most half of the slots are taken. Variants are tensors of one layout that differ in what their check looks at, such
   as whether they require a gradient. */
enum { FEWEST_SLOTS = 64, MOST_SLOTS = 1 << 15, MOST_VARIANTS = 8 };

typedef struct {
    PyObject_HEAD
    size_t count, slots;
    Entry *entries;
} Table;

static PyTypeObject *table_type;

/* The entry of a layout's variant, counted from 0, or the free one where the next variant would lie. */
static Entry *
place_in(Entry *entries, size_t slots, const Layout *layout, int variant)
{
    size_t place = (size_t)hash_of(layout);
    for (;; place++) {
        Entry *entry = &entries[place & (slots - 1)];
        if (entry->known.direct == NULL) {
            return entry;
        }
        if (memcmp(&entry->layout, layout, sizeof(Layout)) == 0 && variant-- == 0) {
            return entry;
        }
    }
}

/* NULL where a layout has no such variant. */
static const Entry *
find_entry(const Table *self, const Layout *layout, int variant)
{
    const Entry *entry = place_in(self->entries, self->slots, layout, variant);
    return entry->known.direct == NULL ? NULL : entry;
}

static int
is_full(const Table *self)
{
    return self->slots >= MOST_SLOTS && 2 * (self->count + 1) > self->slots;
}

static int
grow(Table *self)
{
    size_t slots = self->slots * 2;
    Entry *entries = PyMem_Calloc(slots, sizeof(Entry));
    if (entries == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t place = 0; place < self->slots; place++) {
        const Entry *entry = &self->entries[place];
        if (entry->known.direct != NULL) {
            *place_in(entries, slots, &entry->layout, MOST_VARIANTS) = *entry;
        }
    }
    PyMem_Free(self->entries);
    self->entries = entries;
    self->slots = slots;
    return 0;
}

/* 1 where an entry was put in as a variant, which takes its references; 0 where there is no room, -1 with an error. */
static int
put_entry(Table *self, const Entry *entry, int variant)
{
    int is_new = find_entry(self, &entry->layout, variant) == NULL;
    if (is_new && is_full(self)) {
        return 0;
    }
    if (is_new && 2 * (self->count + 1) > self->slots && grow(self) < 0) {
        return -1;
    }
    Entry *place = place_in(self->entries, self->slots, &entry->layout, variant);
    Known old = place->known;
    *place = *entry;
    self->count += (size_t)is_new;
    /* In the end: what goes may run any code. */
    drop(&old);
    return 1;
}

static Py_ssize_t
table_length(PyObject *object)
{
    return (Py_ssize_t)((Table *)object)->count;
}

static int
traverse_table(PyObject *object, visitproc visit, void *arg)
{
    const Table *self = (const Table *)object;
    Py_VISIT(Py_TYPE(object));
    for (size_t place = 0; place < self->slots; place++) {
        const Known *known = &self->entries[place].known;
        Py_VISIT(known->direct);
        Py_VISIT(known->check);
        Py_VISIT(known->tf32);
        Py_VISIT(known->tally);
        Py_VISIT(known->launch);
        Py_VISIT(known->shape);
    }
    return 0;
}

static void
deallocate_table(PyObject *object)
{
    Table *self = (Table *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    for (size_t place = 0; place < self->slots; place++) {
        drop(&self->entries[place].known);
    }
    PyMem_Free(self->entries);
    type->tp_free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(table_doc, "What is known of layouts; made by `DirectProducts.add`.");

/* Without a way to be cleared: the plans that hold it have one, and what it holds never leads back to it alone. */
static PyType_Slot table_slots[] = {
    {Py_tp_traverse, traverse_table}, {Py_tp_dealloc, deallocate_table},
    {Py_sq_length, table_length},     {Py_tp_doc, (void *)table_doc},
    {0, NULL},
};

static PyType_Spec table_spec = {
    .name = "tensorplay.ops.device._direct.Table",
    .basicsize = sizeof(Table),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = table_slots,
};

/* A reference to the table of plans, NULL where they have none; no error is left. */
static Table *
table_of(PyObject *plans, PyObject *key)
{
    PyObject *found = PyDict_CheckExact(plans) ? PyDict_GetItemWithError(plans, key) : NULL;
    PyErr_Clear();
    return found != NULL && Py_IS_TYPE(found, table_type) ? (Table *)Py_NewRef(found) : NULL;
}

/* A reference to a new table that plans were given. NULL without an error where they are no dictionary. */
static Table *
give_table(PyObject *plans, PyObject *key)
{
    if (!PyDict_CheckExact(plans)) {
        return NULL;
    }
    Entry *entries = PyMem_Calloc(FEWEST_SLOTS, sizeof(Entry));
    if (entries == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    Table *made = (Table *)table_type->tp_alloc(table_type, 0);
    if (made == NULL) {
        PyMem_Free(entries);
        return NULL;
    }
    made->entries = entries;
    made->slots = FEWEST_SLOTS;
    if (PyDict_SetItem(plans, key, (PyObject *)made) < 0) {
        Py_CLEAR(made);
    }
    return made;
}

#endif
