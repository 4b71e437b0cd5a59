"""Gaussian-process computations: evidence, gradients, MAP, posterior. The only linear algebra of the package."""
