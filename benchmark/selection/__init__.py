"""How well kernels are chosen, beside other libraries and tuners: one part a module, and what the parts share.

A part has `items(setting)`, the names of what it measures one after another, and `measured(setting, items)`, which
yields one row of plain values for each.
"""
