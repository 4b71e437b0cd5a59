"""Adapters: compositions to and from the kernels of other libraries, and traces for ArviZ.

Each module needs the extra of its library; the package itself needs none of them.
"""
