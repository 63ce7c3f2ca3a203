/* The key of a host product's look-up, made in one call: what `tensorplay.ops.keyed` looks plans up by.

   It holds numbers alone, never an address: the memory of an array or of a data type that is gone may come back as
   another's. What it does not describe gets None, and is looked up, or refused, by the Python that it stands in for. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_25_API_VERSION
#define NPY_TARGET_VERSION NPY_1_25_API_VERSION
#include <numpy/arrayobject.h>

/* Data type and size of an element, m, k, n, two strides of each operand. */
enum { MOST_NUMBERS = 11 };

static PyArrayObject *
matrix_of(PyObject *operand)
{
    /* The type itself: a subclass may mean anything by a product, and any object may lie about its class. */
    if (!PyArray_CheckExact(operand)) {
        return NULL;
    }
    PyArrayObject *array = (PyArrayObject *)operand;
    return PyArray_NDIM(array) == 2 && PyArray_ISALIGNED(array) ? array : NULL;
}

static int
is_inexact(int type)
{
    /* A type of a user's has its number for as long as the process lives; those with parameters are none of these. */
    return (type >= NPY_FLOAT && type <= NPY_CLONGDOUBLE) || type == NPY_HALF || PyTypeNum_ISUSERDEF(type);
}

static int
is_of(PyArrayObject *array, int type, npy_intp size)
{
    return PyArray_TYPE(array) == type && PyArray_ITEMSIZE(array) == size && PyArray_ISNOTSWAPPED(array);
}

static PyObject *
layout_key(PyObject *module, PyObject *const *operands, Py_ssize_t count)
{
    (void)module;
    if (count != 3) {
        return PyErr_Format(PyExc_TypeError, "layout_key takes a, b and out, not %zd arguments", count);
    }
    PyArrayObject *a = matrix_of(operands[0]);
    PyArrayObject *b = matrix_of(operands[1]);
    if (a == NULL || b == NULL) {
        Py_RETURN_NONE;
    }
    int type = PyArray_TYPE(a);
    npy_intp size = PyArray_ITEMSIZE(a);
    const npy_intp *left = PyArray_DIMS(a), *right = PyArray_DIMS(b);
    if (!is_inexact(type) || !is_of(a, type, size) || !is_of(b, type, size) || left[1] != right[0]) {
        Py_RETURN_NONE;
    }
    npy_intp key[MOST_NUMBERS] = {
        type,
        size,
        left[0],
        left[1],
        right[1],
        PyArray_STRIDES(a)[0],
        PyArray_STRIDES(a)[1],
        PyArray_STRIDES(b)[0],
        PyArray_STRIDES(b)[1],
    };
    /* One with a result is longer than one without. */
    Py_ssize_t numbers = MOST_NUMBERS - 2;
    if (operands[2] != Py_None) {
        PyArrayObject *out = matrix_of(operands[2]);
        if (out == NULL || !PyArray_ISWRITEABLE(out) || !is_of(out, type, size)) {
            Py_RETURN_NONE;
        }
        if (PyArray_DIMS(out)[0] != left[0] || PyArray_DIMS(out)[1] != right[1]) {
            Py_RETURN_NONE;
        }
        key[numbers++] = PyArray_STRIDES(out)[0];
        key[numbers++] = PyArray_STRIDES(out)[1];
    }
    return PyBytes_FromStringAndSize((const char *)key, numbers * (Py_ssize_t)sizeof(npy_intp));
}

PyDoc_STRVAR(layout_key_doc,
             "layout_key(a, b, out, /)\n--\n\n"
             "Return what tells the layout of these operands of `mm` from every other, None where Python is to look.");

static PyMethodDef functions[] = {
    {"layout_key", (PyCFunction)(void (*)(void))layout_key, METH_FASTCALL, layout_key_doc},
    {NULL, NULL, 0, NULL},
};

static int
load_numpy(PyObject *module)
{
    (void)module;
    if (_import_array() < 0) {
        /* One kind of error, whatever the reason: whoever imports this goes on without it. */
        if (!PyErr_ExceptionMatches(PyExc_ImportError)) {
            PyErr_Clear();
            PyErr_SetString(PyExc_ImportError, "tensorplay.ops._layout_key was built for another NumPy than this one");
        }
        return -1;
    }
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, load_numpy},
#ifdef Py_mod_multiple_interpreters
    /* NumPy's own limit. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_layout_key",
    .m_doc = "The key of a host product's look-up, in C.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__layout_key(void)
{
    return PyModuleDef_Init(&definition);
}
