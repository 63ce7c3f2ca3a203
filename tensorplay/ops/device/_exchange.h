/* What a tensor is, read through DLPack's exchange functions for C: https://dmlc.github.io/dlpack/latest/c_api.html.

   A library offers them on its tensors' type, as `__dlpack_c_exchange_api__`. One call gives address, type, sizes and
   strides, for a third of what one attribute costs in Python. */

#ifndef TENSORPLAY_EXCHANGE_H
#define TENSORPLAY_EXCHANGE_H

#include <Python.h>
#include <stdint.h>

enum { DLPACK_MAJOR = 1 };

/* DLTensor: the data type's code, bits and lanes are one number here. */
typedef struct {
    void *data;
    int32_t device_type, device;
    int32_t ndim;
    uint32_t dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;

/* DLPackExchangeAPI: functions that are not called here have no types here. */
typedef struct Exchange {
    uint32_t major, minor;
    struct Exchange *older;
    void *allocate, *from_object, *to_object;
    int (*view)(void *object, Tensor *tensor);
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
} Exchange;

/* NULL with an error set where the capsule holds none, or another DLPack's. */
static const Exchange *
exchange_of(PyObject *capsule)
{
    const Exchange *exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (exchange == NULL) {
        return NULL;
    }
    while (exchange != NULL && exchange->major != DLPACK_MAJOR) {
        exchange = exchange->older;
    }
    if (exchange == NULL || exchange->view == NULL || exchange->current_stream == NULL) {
        PyErr_SetString(PyExc_ValueError, "these exchange functions are not DLPack 1's, or lack some of them");
        return NULL;
    }
    return exchange;
}

/* Which of the types an object is of, -1 for none: a subclass may mean anything by its values. */
static int
place_of(PyObject *types, const PyObject *object)
{
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(types); place++) {
        if ((PyObject *)Py_TYPE(object) == PyTuple_GET_ITEM(types, place)) {
            return (int)place;
        }
    }
    return -1;
}

/* Returns as `place_of` does for a matrix in memory, and -1 for another thing. No error is left. What is pointed to is
   the object's own, and may be gone once other Python code has run. */
static int
view_matrix(const Exchange *exchange, PyObject *types, PyObject *object, Tensor *tensor)
{
    int place = place_of(types, object);
    if (place < 0) {
        return -1;
    }
    if (exchange->view(object, tensor) != 0) {
        PyErr_Clear();
        return -1;
    }
    if (tensor->ndim != 2 || tensor->data == NULL || tensor->strides == NULL) {
        return -1;
    }
    tensor->data = (char *)tensor->data + tensor->byte_offset;
    return place;
}

#endif
