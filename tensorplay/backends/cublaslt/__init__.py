"""The NVIDIA backend: cuBLASLt algorithms, cuBLAS and kernels of our own, on device pointers."""
