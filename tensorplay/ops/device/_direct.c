/* The hot path of `mm` on tensors: what a layout was resolved to is found, checked and launched in one call.

   Whatever is unusual, or not there yet, goes the long way, which also says what is wrong. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#include "_run.h"

static Entry *
entry_of(const Products *self, PyObject *plans, PyObject *const *arguments, Tensor *tensors)
{
    Layout layout;
    int is_given = arguments[3] != Py_None;
    for (int place = 0; place < 2 + is_given; place++) {
        if (!view_matrix(self->exchange, self->types, arguments[1 + place], &tensors[place])) {
            return NULL;
        }
    }
    if (plans != self->entries->plans ||
        !layout_of(&tensors[0], &tensors[1], is_given ? &tensors[2] : NULL, &layout)) {
        return NULL;
    }
    Entry *entry = find_entry(self->entries, &layout);
    if (entry != NULL && is_given && overlaps(entry, &tensors[0], &tensors[1], &tensors[2])) {
        return NULL;
    }
    return entry;
}

static PyObject *
multiply(PyObject *callable, PyObject *const *arguments, size_t flagged, PyObject *keywords)
{
    const Products *self = (const Products *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(flagged);
    if (count != 4 || (keywords != NULL && PyTuple_GET_SIZE(keywords) != 0)) {
        return PyErr_Format(PyExc_TypeError, "this takes context, a, b and out by place, not %zd arguments", count);
    }
    PyObject *plans = PyObject_GetAttr(arguments[0], constants.plans);
    if (plans == NULL) {
        return NULL;
    }
    Tensor views[OPERANDS];
    Entry *found = entry_of(self, plans, arguments, views);
    Py_DECREF(plans);
    PyObject *result = NULL;
    if (found != NULL) {
        Entry entry = *found;
        hold_entry(&entry);
        result = run_entry(self, &entry, arguments, views);
        drop_entry(&entry);
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    return PyObject_Vectorcall(self->long_way, arguments, 4, NULL);
}

static PyObject *
add(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    Products *self = (Products *)object;
    if (count != 5) {
        return PyErr_Format(PyExc_TypeError, "add takes plans, direct, a, b and out, not %zd arguments", count);
    }
    Entry made;
    memset(&made, 0, sizeof(Entry));
    if (read_entry(arguments[1], &made) < 0) {
        drop_entry(&made);
        return NULL;
    }
    Tensor tensors[OPERANDS];
    int is_given = arguments[4] != Py_None, are_matrices = 1;
    for (int place = 0; place < 2 + is_given; place++) {
        are_matrices &= view_matrix(self->exchange, self->types, arguments[2 + place], &tensors[place]);
    }
    if (are_matrices && layout_of(&tensors[0], &tensors[1], is_given ? &tensors[2] : NULL, &made.layout)) {
        put_entry(self->entries, arguments[0], &made);
        Py_RETURN_TRUE;
    }
    drop_entry(&made);
    Py_RETURN_FALSE;
}

static Py_ssize_t
length(PyObject *object)
{
    return ((Products *)object)->entries->count;
}

static int
traverse(PyObject *object, visitproc visit, void *arg)
{
    Products *self = (Products *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->types);
    Py_VISIT(self->note_written);
    Py_VISIT(self->long_way);
    int told = visit_flags(&self->flags, visit, arg);
    return told || self->entries == NULL ? told : visit_entries(self->entries, visit, arg);
}

static int
clear(PyObject *object)
{
    Products *self = (Products *)object;
    if (self->entries != NULL) {
        forget_entries(self->entries);
    }
    Py_CLEAR(self->types);
    Py_CLEAR(self->note_written);
    Py_CLEAR(self->long_way);
    clear_flags(&self->flags);
    return 0;
}

static void
deallocate(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear(object);
    PyMem_Free(((Products *)object)->entries);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
new_products(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *words[] = {"exchange", "types", "allows_tf32", "grad_is_enabled", "note_written", "long_way",
                            "launcher", NULL};
    PyObject *capsule, *types, *allows_tf32, *grad_is_enabled, *note_written, *long_way, *launcher;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO!OOOOO", words, &capsule, &PyTuple_Type, &types,
                                     &allows_tf32, &grad_is_enabled, &note_written, &long_way, &launcher)) {
        return NULL;
    }
    const Launcher *launches = launcher == Py_None ? NULL : PyCapsule_GetPointer(launcher, LAUNCHER_CAPSULE);
    if (launches == NULL && launcher != Py_None) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(types) == 0 || !PyType_Check(PyTuple_GET_ITEM(types, 0))) {
        PyErr_Format(PyExc_ValueError, "types is %R; allowed: a tuple of types, at least one", types);
        return NULL;
    }
    const Exchange *exchange = exchange_of(capsule);
    Products *self = exchange == NULL ? NULL : (Products *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = multiply;
    self->exchange = exchange;
    self->launcher = launches;
    self->types = Py_NewRef(types);
    self->note_written = Py_NewRef(note_written);
    self->long_way = Py_NewRef(long_way);
    self->entries = PyMem_Calloc(1, sizeof(Entries));
    if (self->entries == NULL) {
        PyErr_NoMemory();
    }
    if (self->entries == NULL || find_flags(&self->flags, (PyTypeObject *)PyTuple_GET_ITEM(types, 0), grad_is_enabled, allows_tf32) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

PyDoc_STRVAR(products_doc, "DirectProducts(exchange, types, allows_tf32, grad_is_enabled, note_written, long_way, launcher)\n--\n\n"
                           "Multiplies tensors of these types by what was added for their layout, else the long way.");
PyDoc_STRVAR(add_doc, "add(plans, direct, a, b, out, /)\n--\n\n"
                      "Let such tensors be multiplied by `direct` for as long as the context has these plans; False\n"
                      "where they are of other types, or no matrices in memory.");

static PyMethodDef methods[] = {
    {"add", (PyCFunction)(void (*)(void))add, METH_FASTCALL, add_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Products, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_new, new_products},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_dealloc, deallocate},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_sq_length, length},
    {Py_tp_doc, (void *)products_doc},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "tensorplay.ops.device._direct.DirectProducts",
    .basicsize = sizeof(Products),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = type_slots,
};

static int
make_constants(void)
{
    struct {
        PyObject **place;
        const char *text;
    } texts[] = {
        {&constants.plans, "plans"},
        {&constants.check, "check"},
        {&constants.tf32, "tf32"},
        {&constants.tally, "tally"},
        {&constants.launch, "launch"},
        {&constants.shape, "shape"},
        {&constants.calls, "calls"},
        {&constants.new_empty, "new_empty"},
        {&constants.recover, "recover"},
        {&constants.left_bytes, "left_bytes"},
        {&constants.right_bytes, "right_bytes"},
        {&constants.out_bytes, "out_bytes"},
    };
    for (size_t place = 0; place < sizeof(texts) / sizeof(texts[0]); place++) {
        if ((*texts[place].place = PyUnicode_InternFromString(texts[place].text)) == NULL) {
            return -1;
        }
    }
    constants.one = PyLong_FromLong(1);
    constants.none = PyLong_FromLong(0);
    constants.alpha = PyFloat_FromDouble(1.0);
    constants.beta = PyFloat_FromDouble(0.0);
    return constants.beta == NULL || constants.alpha == NULL || constants.none == NULL || constants.one == NULL ? -1
                                                                                                                : 0;
}

static int
add_type(PyObject *module)
{
    if (constants.plans == NULL && make_constants() < 0) {
        return -1;
    }
    PyObject *type = PyType_FromModuleAndSpec(module, &type_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    int failed = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_type},
#ifdef Py_mod_multiple_interpreters
    /* The constants are made once a process. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_direct",
    .m_doc = "The hot path of `mm` on tensors, in C.",
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__direct(void)
{
    return PyModuleDef_Init(&definition);
}
