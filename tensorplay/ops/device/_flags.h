/* What a tensor's layout does not tell: whether a gradient would be recorded, and whether its values are those in
   memory. Where the type has these as functions of C, they are called without the interpreter's way to them. */

#ifndef TENSORPLAY_FLAGS_H
#define TENSORPLAY_FLAGS_H

#include <Python.h>

/* What takes no arguments; `function` is NULL where it is called as Python calls it. */
typedef struct {
    PyObject *callable;
    PyCFunction function;
    PyObject *owner;
} Question;

typedef struct {
    getter requires_grad;
    void *closure;
    PyCFunction is_neg;
    /* What is asked where the functions are not there. */
    PyObject *requires_grad_name, *is_neg_name;
    Question grad_is_enabled, allows_tf32;
} Flags;

static Question
question_of(PyObject *callable)
{
    Question made = {Py_NewRef(callable), NULL, NULL};
    if (PyCFunction_CheckExact(callable) && PyCFunction_GetFlags(callable) == METH_NOARGS) {
        made.function = PyCFunction_GetFunction(callable);
        made.owner = PyCFunction_GetSelf(callable);
    }
    return made;
}

static PyObject *
ask(const Question *self)
{
    return self->function != NULL ? self->function(self->owner, NULL) : PyObject_CallNoArgs(self->callable);
}

static int
find_flags(Flags *self, PyTypeObject *type, PyObject *grad_is_enabled, PyObject *allows_tf32)
{
    self->grad_is_enabled = question_of(grad_is_enabled);
    self->allows_tf32 = question_of(allows_tf32);
    if ((self->requires_grad_name = PyUnicode_InternFromString("requires_grad")) == NULL ||
        (self->is_neg_name = PyUnicode_InternFromString("is_neg")) == NULL) {
        return -1;
    }
    PyObject *requires_grad = _PyType_Lookup(type, self->requires_grad_name);
    PyObject *is_neg = _PyType_Lookup(type, self->is_neg_name);
    if (requires_grad != NULL && Py_IS_TYPE(requires_grad, &PyGetSetDescr_Type)) {
        const PyGetSetDef *definition = ((PyGetSetDescrObject *)requires_grad)->d_getset;
        self->requires_grad = definition->get;
        self->closure = definition->closure;
    }
    if (is_neg != NULL && Py_IS_TYPE(is_neg, &PyMethodDescr_Type)) {
        const PyMethodDef *definition = ((PyMethodDescrObject *)is_neg)->d_method;
        self->is_neg = definition->ml_flags == METH_NOARGS ? definition->ml_meth : NULL;
    }
    return 0;
}

/* Takes the reference; -1 for none, and for what is neither True nor False. */
static int
truth(PyObject *found)
{
    int is_true = found == Py_True;
    int failed = found == NULL || (!is_true && found != Py_False);
    Py_XDECREF(found);
    return failed ? -1 : is_true;
}

/* 1 where any of the tensors is lazily negated, 0 where none is, -1 where that cannot be told. */
static int
are_negated(const Flags *self, PyObject *const *tensors, Py_ssize_t count)
{
    int is_negated = 0;
    for (Py_ssize_t place = 0; place < count && is_negated == 0; place++) {
        is_negated = truth(self->is_neg != NULL ? self->is_neg(tensors[place], NULL)
                                                : PyObject_CallMethodNoArgs(tensors[place], self->is_neg_name));
    }
    return is_negated;
}

/* 1 where a gradient would be recorded of any of the tensors, 0 where none would, -1 where that cannot be told. */
static int
would_record(const Flags *self, PyObject *const *tensors, Py_ssize_t count)
{
    int records = truth(ask(&self->grad_is_enabled));
    if (records <= 0) {
        return records;
    }
    int requires = 0;
    for (Py_ssize_t place = 0; place < count && requires == 0; place++) {
        requires = truth(self->requires_grad != NULL ? self->requires_grad(tensors[place], self->closure)
                                                     : PyObject_GetAttr(tensors[place], self->requires_grad_name));
    }
    return requires;
}

static int
visit_flags(const Flags *self, visitproc visit, void *arg)
{
    Py_VISIT(self->grad_is_enabled.callable);
    Py_VISIT(self->allows_tf32.callable);
    return 0;
}

static void
clear_flags(Flags *self)
{
    Py_CLEAR(self->requires_grad_name);
    Py_CLEAR(self->is_neg_name);
    self->grad_is_enabled.function = self->allows_tf32.function = NULL;
    Py_CLEAR(self->grad_is_enabled.callable);
    Py_CLEAR(self->allows_tf32.callable);
}

#endif
