/* Runs what a layout was resolved to, for operands like those that it was resolved for. */

#ifndef TENSORPLAY_RUN_H
#define TENSORPLAY_RUN_H

#include "../../backends/cublaslt/_launch.h"
#include "_table.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const Exchange *exchange;
    /* Whose tensors share the exchange functions; a tuple of types. */
    PyObject *types;
    PyObject *allows_tf32, *note_written, *long_way;
    /* NULL where launches are called as Python calls them. */
    const Launcher *launcher;
} Products;

static struct {
    PyObject *plans, *table, *calls, *new_empty, *recover, *one, *zero, *alpha, *beta;
} constants;

/* Where the count is a slot of the tally's type, it is added to where it lies. */
static int
count_call(const Known *known)
{
    PyObject **place = known->calls;
    if (place != NULL && *place != NULL && PyLong_CheckExact(*place)) {
        PyObject *sum = PyNumber_Add(*place, constants.one);
        if (sum == NULL) {
            return -1;
        }
        Py_SETREF(*place, sum);
        return 0;
    }
    PyObject *calls = PyObject_GetAttr(known->tally, constants.calls);
    PyObject *more = calls == NULL ? NULL : PyNumber_Add(calls, constants.one);
    int failed = more == NULL ? -1 : PyObject_SetAttr(known->tally, constants.calls, more);
    Py_XDECREF(calls);
    Py_XDECREF(more);
    return failed;
}

/* Whether a question's answer is what it was, which takes the reference; -1 with an error that no tensor raises, such as
   a signal handler's. For the others the long way has words of ours. */
static int
is_as_it_was(PyObject *answer, const PyObject *wanted)
{
    if (answer != NULL) {
        int is_same = answer == wanted;
        Py_DECREF(answer);
        return is_same;
    }
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError) &&
        !PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_TypeError)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

/* 1 where tensors and switches are as they were, 0 where not, -1 with an error. What a layout does not tell of tensors,
   such as a gradient that would be recorded or a lazy sign, the library's own check looks at. */
static int
is_unchanged(const Products *self, const Known *known, PyObject *const *tensors, size_t count)
{
    int told = is_as_it_was(PyObject_Vectorcall(known->check, tensors, count, NULL), Py_True);
    if (told <= 0 || known->tf32 == Py_None) {
        return told;
    }
    return is_as_it_was(PyObject_CallNoArgs(self->allows_tf32), known->tf32);
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
    PyObject *zero = constants.zero;
    PyObject *arguments[] = {context, direct, error,           addresses[0],   addresses[1], addresses[2],
                             zero,    zero,   constants.alpha, constants.beta, addresses[3]};
    /* As in an `except`: the error is the context of whatever is raised meanwhile. Of this frame's own, since what
       PyErr_GetExcInfo tells may be that of whoever drives a generator. */
    _PyErr_StackItem *handled = PyThreadState_Get()->exc_info;
    PyObject *outer = handled->exc_value;
    handled->exc_value = error;
    PyObject *done = PyObject_VectorcallMethod(constants.recover, arguments, 11, NULL);
    handled->exc_value = outer;
    Py_DECREF(error);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* With numbers of Python's; after a launch that has failed without them, with its error set, `callable` is NULL. */
static int
launch_with_numbers(PyObject *context, const Known *known, PyObject *callable, void *const *given)
{
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
        PyObject *done = callable == NULL ? NULL : PyObject_Vectorcall(callable, addresses, 4, NULL);
        failed = done == NULL && recover(context, known->direct, addresses) < 0;
        Py_XDECREF(done);
    }
    for (int place = 0; place < 4; place++) {
        Py_XDECREF(addresses[place]);
    }
    return failed ? -1 : 0;
}

/* Takes left, right, out and the stream. */
static int
launch(const Products *self, PyObject *context, const Known *known, void *const *given)
{
    if (self->launcher == NULL || !Py_IS_TYPE(known->launch, self->launcher->type)) {
        return launch_with_numbers(context, known, known->launch, given);
    }
    if (self->launcher->run(known->launch, given[0], given[1], given[2], given[3]) == 0) {
        return 0;
    }
    return launch_with_numbers(context, known, NULL, given);
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

/* Runs what is known, which the caller holds, since any code may run meanwhile. Takes context, a, b and out; the view of a
   result that is to be made is not filled. NULL without an error stands for the long way. */
static PyObject *
run_known(const Products *self, const Known *known, PyObject *const *arguments, Operands *operands)
{
    Tensor *views = operands->views;
    /* What views point to is read no more; the rest of them is their own. */
    int32_t device_type = views[0].device_type, device = views[0].device;
    int is_given = operands->has_result;
    void *stream;
    PyObject *result = is_given ? Py_NewRef(arguments[3])
                                : PyObject_CallMethodOneArg(arguments[1], constants.new_empty, known->shape);
    if (result == NULL) {
        return NULL;
    }
    int failed = !is_given && view_matrix(self->exchange, self->types, result, &views[2]) < 0;
    failed = failed || count_call(known) < 0 || self->exchange->current_stream(device_type, device, &stream) != 0;
    if (!failed) {
        void *const given[] = {views[0].data, views[1].data, views[2].data, stream};
        failed = launch(self, arguments[0], known, given) < 0 || (is_given && note_written(self, result) < 0);
    }
    if (failed) {
        Py_CLEAR(result);
    }
    return result;
}

#endif
