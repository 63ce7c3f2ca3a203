/* The tensors that were last found to hold their values as they are: that a tensor is no lazily negated view of its memory
   takes as long to ask as all else, and does not change while it lies where it lies.

   They are held weakly, and only when they come twice in a row: most tensors do not live long enough to be worth it. */

#ifndef TENSORPLAY_KNOWN_H
#define TENSORPLAY_KNOWN_H

#include "_exchange.h"

#include <string.h>

enum { OPERANDS = 3 };

typedef struct {
    /* Only compared: what it points to may be gone. */
    const void *seen[OPERANDS];
    const void *addresses[OPERANDS];
    PyObject *held[OPERANDS];
} Known;

static int
is_held(PyObject *reference, const PyObject *object)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found = NULL;
    if (reference == NULL || PyWeakref_GetRef(reference, &found) <= 0) {
        PyErr_Clear();
        return 0;
    }
    Py_DECREF(found);
    return found == object;
#else
    return reference != NULL && PyWeakref_GET_OBJECT(reference) == object;
#endif
}

static int
are_known(const Known *self, PyObject *const *tensors, const Tensor *views, Py_ssize_t count)
{
    for (Py_ssize_t place = 0; place < count; place++) {
        if (self->addresses[place] != views[place].data || !is_held(self->held[place], tensors[place])) {
            return 0;
        }
    }
    return 1;
}

static void
forget_known(Known *self)
{
    Known old = *self;
    memset(self, 0, sizeof(Known));
    for (int place = 0; place < OPERANDS; place++) {
        Py_XDECREF(old.held[place]);
    }
}

/* Notes tensors that were asked and are their memory's values. */
static void
note_known(Known *self, PyObject *const *tensors, const Tensor *views, Py_ssize_t count)
{
    int is_again = 1;
    for (Py_ssize_t place = 0; place < count; place++) {
        is_again &= self->seen[place] == tensors[place];
    }
    forget_known(self);
    for (Py_ssize_t place = 0; place < count; place++) {
        self->seen[place] = tensors[place];
        self->addresses[place] = views[place].data;
        self->held[place] = is_again ? PyWeakref_NewRef(tensors[place], NULL) : NULL;
    }
    /* What cannot be held weakly is asked each time. */
    PyErr_Clear();
}

#endif
