"""The steps of `gpu_check.py`."""
