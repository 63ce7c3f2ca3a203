/* What is known of the layout of operands, and how a layout is described: numbers alone tell layouts apart, never an
   object. */

#ifndef TENSORPLAY_ENTRIES_H
#define TENSORPLAY_ENTRIES_H

#include "_exchange.h"

#include <string.h>
#include <structmember.h>

/* Device, types and alignment; data type, sizes and strides of each operand. */
enum { OPERANDS = 3, OF_EACH = 5, NUMBERS = 2 + OPERANDS * OF_EACH };

typedef struct {
    int64_t numbers[NUMBERS];
} Layout;

typedef struct {
    /* What was resolved, and what of it is read in each call; `calls` lies in the tally, NULL where it is no slot. */
    PyObject *direct, *check, *tf32, *tally, *launch, *shape;
    PyObject **calls;
} Known;

typedef struct {
    Layout layout;
    int64_t left_bytes, right_bytes, out_bytes;
    Known known;
} Entry;

/* Left, right and the result, with the places of their types; without a result it is to be made. */
typedef struct {
    Tensor views[OPERANDS];
    int types[OPERANDS];
    int has_result;
} Operands;

/* 1 where the objects are matrices that belong together, 0 where they are not; `out` is None for a result to be made. */
static int
view_operands(const Exchange *exchange, PyObject *types, PyObject *const *objects, Operands *operands)
{
    operands->has_result = objects[2] != Py_None;
    for (int place = 0; place < 2 + operands->has_result; place++) {
        const Tensor *first = &operands->views[0], *next = &operands->views[place];
        operands->types[place] = view_matrix(exchange, types, objects[place], &operands->views[place]);
        if (operands->types[place] < 0 || next->device_type != first->device_type || next->device != first->device) {
            return 0;
        }
    }
    return 1;
}

static void
describe(const Operands *operands, Layout *layout)
{
    memset(layout, 0, sizeof(Layout));
    int64_t *numbers = layout->numbers;
    const Tensor *first = &operands->views[0];
    uintptr_t bits = 0;
    uint64_t types = 0;
    for (int place = 0; place < 2 + operands->has_result; place++) {
        const Tensor *tensor = &operands->views[place];
        int64_t *of_this = &numbers[2 + place * OF_EACH];
        bits |= (uintptr_t)tensor->data;
        types = types << 8 | (uint64_t)(operands->types[place] + 1);
        of_this[0] = tensor->dtype;
        of_this[1] = tensor->shape[0];
        of_this[2] = tensor->shape[1];
        of_this[3] = tensor->strides[0];
        of_this[4] = tensor->strides[1];
    }
    numbers[0] = (int64_t)((uint64_t)(uint32_t)first->device_type << 32 | (uint32_t)first->device);
    numbers[1] = (int64_t)(types << 4 | (bits & 15));
}

/* A sum of products, which do not wait for one another as those of a hash by steps do. */
static uint64_t
hash_of(const Layout *layout)
{
    uint64_t hash = 0, factor = UINT64_C(0x9E3779B97F4A7C15);
    for (int place = 0; place < NUMBERS; place++) {
        hash += (uint64_t)layout->numbers[place] * factor;
        factor = factor * 5 + 2;
    }
    return (hash ^ (hash >> 32)) * UINT64_C(0xD6E8FEB86659FD93) >> 32;
}

static void
hold(const Known *known)
{
    Py_INCREF(known->direct);
    Py_INCREF(known->check);
    Py_INCREF(known->tf32);
    Py_INCREF(known->tally);
    Py_INCREF(known->launch);
    Py_INCREF(known->shape);
}

static void
drop(const Known *known)
{
    Py_XDECREF(known->direct);
    Py_XDECREF(known->check);
    Py_XDECREF(known->tf32);
    Py_XDECREF(known->tally);
    Py_XDECREF(known->launch);
    Py_XDECREF(known->shape);
}

/* Whether the result shares memory with an operand. */
static int
overlaps(const Entry *entry, const Operands *operands)
{
    uintptr_t out = (uintptr_t)operands->views[2].data;
    int64_t from_left = (int64_t)((uintptr_t)operands->views[0].data - out);
    int64_t from_right = (int64_t)((uintptr_t)operands->views[1].data - out);
    return (-entry->left_bytes < from_left && from_left < entry->out_bytes) ||
           (-entry->right_bytes < from_right && from_right < entry->out_bytes);
}

static int
read_bytes(PyObject *direct, const char *name, int64_t *number)
{
    PyObject *found = PyObject_GetAttrString(direct, name);
    if (found == NULL) {
        return -1;
    }
    *number = PyLong_AsLongLong(found);
    Py_DECREF(found);
    return *number == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Where the count lies, if it is a slot of the tally's own type. */
static PyObject **
calls_of(PyObject *tally)
{
    PyObject *name = PyUnicode_InternFromString("calls");
    PyObject *slot = name == NULL ? NULL : _PyType_Lookup(Py_TYPE(tally), name);
    Py_XDECREF(name);
    if (slot == NULL || !Py_IS_TYPE(slot, &PyMemberDescr_Type) ||
        !PyType_IsSubtype(Py_TYPE(tally), PyDescr_TYPE(slot))) {
        PyErr_Clear();
        return NULL;
    }
    const PyMemberDef *member = ((PyMemberDescrObject *)slot)->d_member;
    int is_object = member->type == T_OBJECT_EX && !(member->flags & READONLY);
    return is_object ? (PyObject **)((char *)tally + member->offset) : NULL;
}

/* Fills all but the layout and the check of an entry; what it holds is to be dropped after an error, too. */
static int
read_direct(PyObject *direct, Entry *entry)
{
    Known *known = &entry->known;
    known->direct = Py_NewRef(direct);
    if ((known->tf32 = PyObject_GetAttrString(direct, "tf32")) == NULL ||
        (known->tally = PyObject_GetAttrString(direct, "tally")) == NULL ||
        (known->launch = PyObject_GetAttrString(direct, "launch")) == NULL ||
        (known->shape = PyObject_GetAttrString(direct, "shape")) == NULL) {
        return -1;
    }
    known->calls = calls_of(known->tally);
    int failed = read_bytes(direct, "left_bytes", &entry->left_bytes) < 0 ||
                 read_bytes(direct, "right_bytes", &entry->right_bytes) < 0 ||
                 read_bytes(direct, "out_bytes", &entry->out_bytes) < 0;
    return failed ? -1 : 0;
}

#endif
