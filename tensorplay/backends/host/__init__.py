"""The host backend: NumPy arrays multiplied by the BLAS libraries of this process, in ways that differ."""
