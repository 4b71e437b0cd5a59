"""Bridges: compositions to and from the kernels of other libraries. None of those is needed to import this."""
