"""Products of arrays in device memory, whatever library they belong to; results are of the same library."""
