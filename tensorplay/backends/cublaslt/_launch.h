/* How other extensions run a launch without making numbers of Python's of its operands. */

#ifndef TENSORPLAY_LAUNCH_H
#define TENSORPLAY_LAUNCH_H

#include <Python.h>

#define LAUNCHER_CAPSULE "tensorplay.backends.cublaslt._launch.launcher"

typedef struct {
    PyTypeObject *type;
    /* Of an object of the type exactly; -1 with an error set. */
    int (*run)(PyObject *launch, void *left, void *right, void *out, void *stream);
} Launcher;

#endif
