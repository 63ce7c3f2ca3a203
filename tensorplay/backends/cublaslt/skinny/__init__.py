"""Skinny products, of at most 16 rows or columns, on kernels of our own: each element of the weight is read once.

They are bound by memory alone: tile, split, width of a load and loads in flight are what there is to search.
"""
