/* Runs what a layout was resolved to, once more like those that it was resolved for. */

#ifndef TENSORPLAY_RUN_H
#define TENSORPLAY_RUN_H

#include "../../backends/cublaslt/_launch.h"
#include "_entries.h"
#include "_flags.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const Exchange *exchange;
    /* Whose tensors share the exchange functions; a tuple of types. */
    PyObject *types;
    PyObject *note_written, *long_way;
    /* NULL where launches are called as Python calls them. */
    const Launcher *launcher;
    Flags flags;
    Entries *entries;
} Products;

static struct {
    PyObject *plans, *check, *tf32, *tally, *launch, *shape, *calls, *new_empty, *recover;
    PyObject *left_bytes, *right_bytes, *out_bytes, *one, *none, *alpha, *beta;
} constants;

static int
read_bytes(PyObject *direct, PyObject *name, int64_t *number)
{
    PyObject *found = PyObject_GetAttr(direct, name);
    if (found == NULL) {
        return -1;
    }
    *number = PyLong_AsLongLong(found);
    Py_DECREF(found);
    return *number == -1 && PyErr_Occurred() ? -1 : 0;
}

static int
read_entry(PyObject *direct, Entry *entry)
{
    PyObject **places[] = {&entry->check, &entry->tf32, &entry->tally, &entry->launch, &entry->shape};
    PyObject *words[] = {constants.check, constants.tf32, constants.tally, constants.launch, constants.shape};
    entry->direct = Py_NewRef(direct);
    for (size_t place = 0; place < sizeof(places) / sizeof(places[0]); place++) {
        if ((*places[place] = PyObject_GetAttr(direct, words[place])) == NULL) {
            return -1;
        }
    }
    PyObject *slot = _PyType_Lookup(Py_TYPE(entry->tally), constants.calls);
    if (slot != NULL && Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
        const PyMemberDef *member = ((PyMemberDescrObject *)slot)->d_member;
        int is_object = member->type == T_OBJECT_EX && !(member->flags & READONLY);
        entry->calls = is_object ? (PyObject **)((char *)entry->tally + member->offset) : NULL;
    }
    int failed = read_bytes(direct, constants.left_bytes, &entry->left_bytes) < 0 ||
                 read_bytes(direct, constants.right_bytes, &entry->right_bytes) < 0 ||
                 read_bytes(direct, constants.out_bytes, &entry->out_bytes) < 0;
    return failed ? -1 : 0;
}

/* Where the count is a slot of the tally's type, it is added to where it lies. */
static int
count_call(const Entry *entry)
{
    PyObject *tally = entry->tally;
    if (entry->calls != NULL && *entry->calls != NULL) {
        PyObject *sum = PyNumber_Add(*entry->calls, constants.one);
        if (sum == NULL) {
            return -1;
        }
        Py_SETREF(*entry->calls, sum);
        return 0;
    }
    PyObject *calls = PyObject_GetAttr(tally, constants.calls);
    PyObject *more = calls == NULL ? NULL : PyNumber_Add(calls, constants.one);
    int failed = more == NULL ? -1 : PyObject_SetAttr(tally, constants.calls, more);
    Py_XDECREF(calls);
    Py_XDECREF(more);
    return failed;
}

/* With an error set, returns 0 and clears it where the long way says it in our words, else -1. */
static int
is_unusual(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError) &&
        !PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_TypeError)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

/* 1 where values are those in memory and no gradient is recorded, 0 where not, -1 with an error that no tensor raises,
   such as a signal handler's. The library's own check is asked of lazily conjugated ones; it takes as long as all else. */
static int
are_plain(const Products *self, const Entry *entry, PyObject *const *tensors, const Tensor *views, Py_ssize_t count)
{
    int told;
    if (is_complex(&views[0])) {
        told = truth(PyObject_Vectorcall(entry->check, tensors, (size_t)count, NULL));
        return told < 0 ? is_unusual() : told;
    }
    told = would_record(&self->flags, tensors, count);
    if (told == 0 && !are_known(&entry->known, tensors, views, count)) {
        told = are_negated(&self->flags, tensors, count);
        Entry *there = told == 0 ? find_entry(self->entries, &entry->layout) : NULL;
        if (there != NULL) {
            note_known(&there->known, tensors, views, count);
        }
    }
    return told < 0 ? is_unusual() : !told;
}

/* Of float32 products, whether TF32 is allowed as it was; otherwise as above. */
static int
is_precision(const Products *self, PyObject *tf32)
{
    if (tf32 == Py_None) {
        return 1;
    }
    PyObject *allowed = ask(&self->flags.allows_tf32);
    int is_same = allowed == tf32;
    Py_XDECREF(allowed);
    return allowed == NULL ? is_unusual() : is_same;
}

/* With an error set: the first choice runs for a failed launch, or says whose fault it was. Takes left, right, out and
   the stream as numbers. */
static int
recover(PyObject *context, PyObject *direct, PyObject *const *addresses)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(error, traceback);
    }
    PyObject *none = constants.none;
    PyObject *arguments[] = {context, direct, error, addresses[0],    addresses[1],   addresses[2],
                             none,    none,   constants.alpha, constants.beta, addresses[3]};
    PyObject *done = PyObject_VectorcallMethod(constants.recover, arguments, 11, NULL);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Takes left, right, out and the stream. */
static int
launch(const Products *self, PyObject *context, const Entry *entry, void *const *given)
{
    int is_ours = self->launcher != NULL && Py_IS_TYPE(entry->launch, self->launcher->type);
    if (is_ours && self->launcher->run(entry->launch, given[0], given[1], given[2], given[3]) == 0) {
        return 0;
    }
    PyObject *addresses[4] = {NULL, NULL, NULL, NULL}, *type, *error, *traceback;
    int failed = 0;
    PyErr_Fetch(&type, &error, &traceback);
    for (int place = 0; place < 4 && !failed; place++) {
        addresses[place] = PyLong_FromVoidPtr(given[place]);
        failed = addresses[place] == NULL;
    }
    if (failed) {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    } else {
        PyErr_Restore(type, error, traceback);
        PyObject *done = is_ours ? NULL : PyObject_Vectorcall(entry->launch, addresses, 4, NULL);
        failed = done == NULL && recover(context, entry->direct, addresses) < 0;
        Py_XDECREF(done);
    }
    for (int place = 0; place < 4; place++) {
        Py_XDECREF(addresses[place]);
    }
    return failed ? -1 : 0;
}

static int
note_written(const Products *self, PyObject *result)
{
    PyObject *results = PyTuple_Pack(1, result);
    PyObject *noted = results == NULL ? NULL : PyObject_CallOneArg(self->note_written, results);
    Py_XDECREF(results);
    Py_XDECREF(noted);
    return noted == NULL ? -1 : 0;
}

/* Runs what an entry holds. `entry` is a copy with references of its own, since the table may be emptied meanwhile;
   the view of a result to be made is not filled yet. NULL without an error stands for the long way. */
static PyObject *
run_entry(const Products *self, const Entry *entry, PyObject *const *arguments, Tensor *views)
{
    int is_given = arguments[3] != Py_None;
    int32_t device_type = views[0].device_type, device = views[0].device;
    void *stream;
    if (are_plain(self, entry, arguments + 1, views, 2 + is_given) <= 0 || is_precision(self, entry->tf32) <= 0) {
        return NULL;
    }
    PyObject *result = is_given ? Py_NewRef(arguments[3])
                                : PyObject_CallMethodOneArg(arguments[1], constants.new_empty, entry->shape);
    if (result == NULL) {
        return NULL;
    }
    int failed = !is_given && !view_matrix(self->exchange, self->types, result, &views[2]);
    failed = failed || count_call(entry) < 0 ||
             self->exchange->current_stream(device_type, device, &stream) != 0;
    if (!failed) {
        void *const given[] = {views[0].data, views[1].data, views[2].data, stream};
        failed = launch(self, arguments[0], entry, given) < 0 || (is_given && note_written(self, result) < 0);
    }
    if (failed) {
        Py_CLEAR(result);
    }
    return result;
}

#endif
