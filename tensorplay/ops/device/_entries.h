/* The table from the layout of operands to what it was resolved to: numbers alone tell layouts apart, never an object.

   It is of one dictionary of plans. Whenever what a call resolves to may have changed, the context has another one. */

#ifndef TENSORPLAY_ENTRIES_H
#define TENSORPLAY_ENTRIES_H

#include "_exchange.h"
#include "_known.h"

#include <string.h>

/* Device and alignment; type, sizes and strides of each operand. */
enum { OF_EACH = 5, NUMBERS = 2 + OPERANDS * OF_EACH, SLOTS = 1024, PROBES = 8 };

typedef struct {
    int64_t numbers[NUMBERS];
} Layout;

typedef struct {
    Layout layout;
    int64_t left_bytes, right_bytes, out_bytes;
    PyObject *direct, *check, *tf32, *tally, *launch, *shape;
    /* In the tally, NULL where it is no slot. */
    PyObject **calls;
    Known known;
} Entry;

typedef struct {
    PyObject *plans;
    Py_ssize_t count;
    Entry entries[SLOTS];
} Entries;

static void
describe(const Tensor *tensor, int64_t *numbers)
{
    numbers[0] = tensor->dtype;
    numbers[1] = tensor->shape[0];
    numbers[2] = tensor->shape[1];
    numbers[3] = tensor->strides[0];
    numbers[4] = tensor->strides[1];
}

static int
are_together(const Tensor *one, const Tensor *other)
{
    return one->device_type == other->device_type && one->device == other->device;
}

/* 1 where operands have a layout, 0 where they have none; `out` is NULL for a result to be made. */
static int
layout_of(const Tensor *left, const Tensor *right, const Tensor *out, Layout *layout)
{
    if (!are_together(left, right) || (out != NULL && !are_together(left, out))) {
        return 0;
    }
    memset(layout, 0, sizeof(Layout));
    uintptr_t bits = (uintptr_t)left->data | (uintptr_t)right->data;
    int64_t *numbers = layout->numbers, *of_out = &numbers[2 + 2 * OF_EACH];
    describe(left, &numbers[2]);
    describe(right, &numbers[2 + OF_EACH]);
    if (out != NULL) {
        bits |= (uintptr_t)out->data;
        describe(out, of_out);
    } else {
        /* No tensor has such a size. */
        of_out[1] = -1;
    }
    numbers[0] = (int64_t)(((uint64_t)(uint32_t)left->device_type << 32) | (uint32_t)left->device);
    numbers[1] = (int64_t)(bits & 15);
    return 1;
}

/* Products that do not wait for one another, unlike those of a hash by steps. */
static size_t
home_of(const Layout *layout)
{
    uint64_t hash = 0, factor = UINT64_C(0x9E3779B97F4A7C15);
    for (int place = 0; place < NUMBERS; place++) {
        hash += (uint64_t)layout->numbers[place] * factor;
        factor = factor * 5 + 2;
    }
    return (size_t)((hash ^ (hash >> 32)) * UINT64_C(0xD6E8FEB86659FD93) >> 54) & (SLOTS - 1);
}

static Entry *
find_entry(Entries *self, const Layout *layout)
{
    size_t home = home_of(layout);
    for (size_t probe = 0; probe < PROBES; probe++) {
        Entry *entry = &self->entries[(home + probe) & (SLOTS - 1)];
        if (entry->direct == NULL) {
            return NULL;
        }
        if (memcmp(&entry->layout, layout, sizeof(Layout)) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* Gives a copy references of its own. */
static void
hold_entry(Entry *entry)
{
    Py_INCREF(entry->direct);
    Py_INCREF(entry->check);
    Py_INCREF(entry->tf32);
    Py_INCREF(entry->tally);
    Py_INCREF(entry->launch);
    Py_INCREF(entry->shape);
    for (int place = 0; place < OPERANDS; place++) {
        Py_XINCREF(entry->known.held[place]);
    }
}

static void
drop_entry(Entry *entry)
{
    Entry old = *entry;
    memset(entry, 0, sizeof(Entry));
    Py_XDECREF(old.direct);
    Py_XDECREF(old.check);
    Py_XDECREF(old.tf32);
    Py_XDECREF(old.tally);
    Py_XDECREF(old.launch);
    Py_XDECREF(old.shape);
    forget_known(&old.known);
}

static void
forget_entries(Entries *self)
{
    PyObject *plans = self->plans;
    self->plans = NULL;
    self->count = 0;
    for (int place = 0; place < SLOTS; place++) {
        drop_entry(&self->entries[place]);
    }
    Py_XDECREF(plans);
}

static int
visit_entries(const Entries *self, visitproc visit, void *arg)
{
    Py_VISIT(self->plans);
    for (int place = 0; place < SLOTS; place++) {
        const Entry *entry = &self->entries[place];
        Py_VISIT(entry->direct);
        Py_VISIT(entry->check);
        Py_VISIT(entry->tf32);
        Py_VISIT(entry->tally);
        Py_VISIT(entry->launch);
        Py_VISIT(entry->shape);
    }
    return 0;
}

/* Puts an entry where its layout's was, else where none is, else at its home in place of another's. */
static void
put_entry(Entries *self, PyObject *plans, const Entry *entry)
{
    if (plans != self->plans) {
        forget_entries(self);
        self->plans = Py_NewRef(plans);
    }
    Entry *place = find_entry(self, &entry->layout);
    size_t home = home_of(&entry->layout);
    for (size_t probe = 0; place == NULL && probe < PROBES; probe++) {
        Entry *next = &self->entries[(home + probe) & (SLOTS - 1)];
        place = next->direct == NULL ? next : NULL;
    }
    place = place != NULL ? place : &self->entries[home];
    Entry old = *place;
    self->count += old.direct == NULL;
    *place = *entry;
    drop_entry(&old);
}

static int
overlaps(const Entry *entry, const Tensor *left, const Tensor *right, const Tensor *out)
{
    int64_t from_left = (int64_t)((uintptr_t)left->data - (uintptr_t)out->data);
    int64_t from_right = (int64_t)((uintptr_t)right->data - (uintptr_t)out->data);
    return (-entry->left_bytes < from_left && from_left < entry->out_bytes) ||
           (-entry->right_bytes < from_right && from_right < entry->out_bytes);
}

#endif
