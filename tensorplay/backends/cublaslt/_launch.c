/* A plan's launch, in one call: `cublasLtMatmul` itself with everything but the operands made ready before.

   The library's binding turns sixteen Python numbers into these arguments anew each time. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#include "_launch.h"

typedef int (*Matmul)(void *handle, void *operation, const void *alpha, const void *left, void *left_layout,
                      const void *right, void *right_layout, const void *beta, const void *addend, void *addend_layout,
                      void *result, void *result_layout, const void *algorithm, void *workspace, size_t workspace_bytes,
                      void *stream);
typedef int (*CurrentContext)(void **context);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Matmul matmul;
    void *handle, *operation, *alpha, *a, *b, *beta, *c, *d, *algorithm;
    size_t workspace_bytes;
    CurrentContext current_context;
    void *context;
    PyObject *workspace, *refused, *elsewhere, *owner;
} Launch;

static int
as_address(PyObject *number, void **address)
{
    *address = PyLong_AsVoidPtr(number);
    return *address == NULL && PyErr_Occurred() ? -1 : 0;
}

static int
is_elsewhere(const Launch *self)
{
    void *context = NULL;
    return self->current_context != NULL && (self->current_context(&context) != 0 || context != self->context);
}

/* Calls with addresses as numbers; takes nothing but what it makes. */
static PyObject *
called(PyObject *callable, void *const *addresses, Py_ssize_t count)
{
    PyObject *numbers[4] = {NULL, NULL, NULL, NULL}, *result = NULL;
    Py_ssize_t made = 0;
    while (made < count && (numbers[made] = PyLong_FromVoidPtr(addresses[made])) != NULL) {
        made++;
    }
    if (made == count) {
        result = PyObject_Vectorcall(callable, numbers, (size_t)count, NULL);
    }
    for (Py_ssize_t place = 0; place < made; place++) {
        Py_DECREF(numbers[place]);
    }
    return result;
}

static int
ask_workspace(const Launch *self, void *stream, void **address)
{
    void *arguments[] = {stream, (void *)self->workspace_bytes};
    PyObject *found = called(self->workspace, arguments, 2);
    if (found == NULL) {
        return -1;
    }
    int failed = as_address(found, address);
    Py_DECREF(found);
    return failed;
}

static int
run(PyObject *object, void *left, void *right, void *out, void *stream)
{
    const Launch *self = (const Launch *)object;
    void *scratch = NULL;
    if (is_elsewhere(self)) {
        void *const arguments[] = {left, right, out, stream};
        PyObject *done = called(self->elsewhere, arguments, 4);
        Py_XDECREF(done);
        return done == NULL ? -1 : 0;
    }
    if (self->workspace_bytes && ask_workspace(self, stream, &scratch) < 0) {
        return -1;
    }
    int status;
    /* The call waits where the device has as many launches waiting as it takes. */
    Py_BEGIN_ALLOW_THREADS
    status = self->matmul(self->handle, self->operation, self->alpha, right, self->a, left, self->b, self->beta, out,
                          self->c, out, self->d, self->algorithm, scratch, self->workspace_bytes, stream);
    Py_END_ALLOW_THREADS
    if (status != 0) {
        PyObject *told = PyObject_CallFunction(self->refused, "i", status);
        if (told != NULL) {
            Py_DECREF(told);
            PyErr_Format(PyExc_SystemError, "`refused` returned for status %d; it must raise", status);
        }
        return -1;
    }
    return 0;
}

static PyObject *
launch(PyObject *callable, PyObject *const *arguments, size_t flagged, PyObject *names)
{
    void *addresses[4];
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (count != 4 || (names != NULL && PyTuple_GET_SIZE(names) != 0)) {
        return PyErr_Format(PyExc_TypeError, "a launch takes left, right, out and stream by place, not %zd arguments",
                            count);
    }
    for (int place = 0; place < 4; place++) {
        if (as_address(arguments[place], &addresses[place]) < 0) {
            return NULL;
        }
    }
    if (run(callable, addresses[0], addresses[1], addresses[2], addresses[3]) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
new_launch(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    static char *keywords[] = {"matmul",    "arguments", "workspace", "workspace_bytes", "refused",
                               "elsewhere", "current",   "context",   "owner",           NULL};
    PyObject *matmul, *ready, *workspace, *refused, *elsewhere, *current, *context, *owner;
    Py_ssize_t workspace_bytes;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "OO!OnOOOOO", keywords, &matmul, &PyTuple_Type, &ready,
                                     &workspace, &workspace_bytes, &refused, &elsewhere, &current, &context, &owner)) {
        return NULL;
    }
    if (workspace_bytes < 0 || PyTuple_GET_SIZE(ready) != 9) {
        PyErr_Format(PyExc_ValueError, "workspace_bytes is %zd and %zd arguments are ready; allowed: from 0 up, and 9",
                     workspace_bytes, PyTuple_GET_SIZE(ready));
        return NULL;
    }
    Launch *self = (Launch *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = launch;
    self->workspace_bytes = (size_t)workspace_bytes;
    self->workspace = Py_NewRef(workspace);
    self->refused = Py_NewRef(refused);
    self->elsewhere = Py_NewRef(elsewhere);
    self->owner = Py_NewRef(owner);
    void **places[] = {&self->handle, &self->operation, &self->alpha, &self->a,        &self->b,
                       &self->beta,   &self->c,         &self->d,     &self->algorithm};
    for (Py_ssize_t place = 0; place < 9; place++) {
        if (as_address(PyTuple_GET_ITEM(ready, place), places[place]) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    }
    void *matmul_at, *current_at;
    if (as_address(matmul, &matmul_at) < 0 || as_address(current, &current_at) < 0 ||
        as_address(context, &self->context) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    if (matmul_at == NULL) {
        Py_DECREF(self);
        PyErr_SetString(PyExc_ValueError, "matmul is 0; it must be the address of cublasLtMatmul");
        return NULL;
    }
    /* What POSIX says of functions and pointers. */
    *(void **)&self->matmul = matmul_at;
    *(void **)&self->current_context = current_at;
    return (PyObject *)self;
}

static int
traverse(PyObject *object, visitproc visit, void *arg)
{
    Launch *self = (Launch *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->workspace);
    Py_VISIT(self->refused);
    Py_VISIT(self->elsewhere);
    Py_VISIT(self->owner);
    return 0;
}

static int
clear(PyObject *object)
{
    Launch *self = (Launch *)object;
    Py_CLEAR(self->workspace);
    Py_CLEAR(self->refused);
    Py_CLEAR(self->elsewhere);
    Py_CLEAR(self->owner);
    return 0;
}

static void
deallocate(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(launch_doc,
             "Launch(matmul, arguments, workspace, workspace_bytes, refused, elsewhere, current, context, owner)\n"
             "--\n\n"
             "Calls cublasLtMatmul with the addresses of left, right and out, and a stream.");

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launch, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_new, new_launch},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, deallocate},
    {Py_tp_members, members},
    {Py_tp_doc, (void *)launch_doc},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "tensorplay.backends.cublaslt._launch.Launch",
    .basicsize = sizeof(Launch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = type_slots,
};

static Launcher launcher;

static int
add_type(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &type_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    launcher.type = (PyTypeObject *)type;
    launcher.run = run;
    PyObject *capsule = PyCapsule_New(&launcher, LAUNCHER_CAPSULE, NULL);
    int failed = capsule == NULL || PyModule_AddObjectRef(module, "launcher", capsule) < 0 ||
                 PyModule_AddType(module, (PyTypeObject *)type) < 0;
    Py_XDECREF(capsule);
    /* The type is never given back: whoever has the capsule compares with it. */
    return failed ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_type},
#ifdef Py_mod_multiple_interpreters
    /* There is one launcher a process. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_launch",
    .m_doc = "A plan's launch, in C.",
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__launch(void)
{
    return PyModuleDef_Init(&definition);
}
