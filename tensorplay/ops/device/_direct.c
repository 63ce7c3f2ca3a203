/* The hot path of `mm` on tensors: what a layout was resolved to is found, checked and launched in one call.

   Whatever is unusual, or not there yet, goes the long way, which also says what is wrong. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#include "_run.h"

/* Takes context, a, b and out. NULL without an error stands for the long way. */
static PyObject *
multiply_known(const Products *self, const Table *table, PyObject *const *arguments)
{
    Operands operands;
    Layout layout;
    if (!view_operands(self->exchange, self->types, arguments + 1, &operands)) {
        return NULL;
    }
    describe(&operands, &layout);
    for (int variant = 0; variant < MOST_VARIANTS; variant++) {
        /* Found anew each time: a check runs any code. */
        const Entry *entry = find_entry(table, &layout, variant);
        if (entry == NULL || (operands.has_result && overlaps(entry, &operands))) {
            return NULL;
        }
        Known known = entry->known;
        hold(&known);
        int told = is_unchanged(self, &known, arguments + 1, 2 + (size_t)operands.has_result);
        PyObject *result = told > 0 ? run_known(self, &known, arguments, &operands) : NULL;
        drop(&known);
        if (told != 0) {
            return result;
        }
    }
    return NULL;
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
    Table *table = table_of(plans, constants.table);
    Py_DECREF(plans);
    if (table != NULL) {
        PyObject *result = multiply_known(self, table, arguments);
        Py_DECREF(table);
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    return PyObject_Vectorcall(self->long_way, arguments, 4, NULL);
}

/* The variant of a layout that tensors are of, the next one where they are of none; -1 with an error. */
static int
variant_of(const Table *table, const Layout *layout, PyObject *const *tensors, size_t count)
{
    int variant = 0;
    const Entry *entry;
    while (variant < MOST_VARIANTS && (entry = find_entry(table, layout, variant)) != NULL) {
        PyObject *check = Py_NewRef(entry->known.check);
        int is_passed = is_as_it_was(PyObject_Vectorcall(check, tensors, count, NULL), Py_True);
        Py_DECREF(check);
        if (is_passed != 0) {
            return is_passed > 0 ? variant : -1;
        }
        variant++;
    }
    return variant;
}

/* 1 where an entry was put into the table of the plans, which takes its references; 0 where not, -1 with an error. The
   check is made last, since that takes longer than all else. */
static int
put(const Products *self, PyObject *plans, PyObject *make_check, PyObject *const *tensors, Entry *entry)
{
    Operands operands;
    if (!view_operands(self->exchange, self->types, tensors, &operands)) {
        return 0;
    }
    describe(&operands, &entry->layout);
    size_t count = 2 + (size_t)operands.has_result;
    Table *table = table_of(plans, constants.table);
    table = table != NULL ? table : give_table(plans, constants.table);
    if (table == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    int is_put = 0, variant = variant_of(table, &entry->layout, tensors, count);
    if (variant < 0) {
        is_put = -1;
    } else if (variant < MOST_VARIANTS && (find_entry(table, &entry->layout, variant) != NULL || !is_full(table))) {
        entry->known.check = PyObject_Vectorcall(make_check, tensors, count, NULL);
        is_put = entry->known.check == NULL ? -1 : put_entry(table, entry, variant);
    }
    Py_DECREF(table);
    return is_put;
}

static PyObject *
add(PyObject *object, PyObject *const *arguments, Py_ssize_t count)
{
    const Products *self = (const Products *)object;
    if (count != 6) {
        return PyErr_Format(PyExc_TypeError, "add takes plans, direct, make_check, a, b and out, not %zd arguments",
                            count);
    }
    Entry made;
    memset(&made, 0, sizeof(Entry));
    int is_put = read_direct(arguments[1], &made);
    is_put = is_put < 0 ? is_put : put(self, arguments[0], arguments[2], arguments + 3, &made);
    if (is_put <= 0) {
        drop(&made.known);
    }
    return is_put < 0 ? NULL : PyBool_FromLong(is_put);
}

static int
traverse(PyObject *object, visitproc visit, void *arg)
{
    Products *self = (Products *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->types);
    Py_VISIT(self->allows_tf32);
    Py_VISIT(self->note_written);
    Py_VISIT(self->long_way);
    return 0;
}

static int
clear(PyObject *object)
{
    Products *self = (Products *)object;
    Py_CLEAR(self->types);
    Py_CLEAR(self->allows_tf32);
    Py_CLEAR(self->note_written);
    Py_CLEAR(self->long_way);
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

static PyObject *
new_products(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *words[] = {"exchange", "types", "allows_tf32", "note_written", "long_way", "launcher", NULL};
    PyObject *capsule, *types, *allows_tf32, *note, *long_way, *launcher;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO!OOOO", words, &capsule, &PyTuple_Type, &types,
                                     &allows_tf32, &note, &long_way, &launcher)) {
        return NULL;
    }
    const Launcher *launches = launcher == Py_None ? NULL : PyCapsule_GetPointer(launcher, LAUNCHER_CAPSULE);
    if (launches == NULL && launcher != Py_None) {
        return NULL;
    }
    for (Py_ssize_t place = 0; place == 0 || place < PyTuple_GET_SIZE(types); place++) {
        if (place >= PyTuple_GET_SIZE(types) || !PyType_Check(PyTuple_GET_ITEM(types, place))) {
            return PyErr_Format(PyExc_ValueError, "types is %R; allowed: a tuple of types, at least one", types);
        }
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
    self->allows_tf32 = Py_NewRef(allows_tf32);
    self->note_written = Py_NewRef(note);
    self->long_way = Py_NewRef(long_way);
    return (PyObject *)self;
}

PyDoc_STRVAR(products_doc, "DirectProducts(exchange, types, allows_tf32, note_written, long_way, launcher)\n--\n\n"
                           "Multiplies tensors of these types by what was added for their layout, else the long way.");
PyDoc_STRVAR(add_doc, "add(plans, direct, make_check, a, b, out, /)\n--\n\n"
                      "Let such tensors be multiplied by `direct` for as long as the context has these plans, where the\n"
                      "check that `make_check` makes of them passes: it need not look at sizes and strides. False where\n"
                      "they are of other types, or no matrices in memory, or there is no room for more.");

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
        {&constants.plans, "plans"},         {&constants.table, "table"},     {&constants.calls, "calls"},
        {&constants.new_empty, "new_empty"}, {&constants.recover, "recover"},
    };
    for (size_t place = 0; place < sizeof(texts) / sizeof(texts[0]); place++) {
        if ((*texts[place].place = PyUnicode_InternFromString(texts[place].text)) == NULL) {
            return -1;
        }
    }
    constants.one = PyLong_FromLong(1);
    constants.zero = PyLong_FromLong(0);
    constants.alpha = PyFloat_FromDouble(1.0);
    constants.beta = PyFloat_FromDouble(0.0);
    int is_made = constants.one != NULL && constants.zero != NULL && constants.alpha != NULL && constants.beta != NULL;
    return is_made ? 0 : -1;
}

static int
add_type(PyObject *module)
{
    if (constants.beta == NULL && make_constants() < 0) {
        return -1;
    }
    PyObject *of_table = PyType_FromModuleAndSpec(module, &table_spec, NULL);
    PyObject *type = of_table == NULL ? NULL : PyType_FromModuleAndSpec(module, &type_spec, NULL);
    if (type == NULL) {
        Py_XDECREF(of_table);
        return -1;
    }
    /* Never given back: tables may outlive the module. */
    table_type = (PyTypeObject *)of_table;
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
