from .covariances import cosines, outer, periodic_slopes, squared_slope
from .series import bessel_batch, bessel_size, gaussian_batch, one_series

__all__ = [
    "bessel_batch",
    "bessel_size",
    "cosines",
    "gaussian_batch",
    "one_series",
    "outer",
    "periodic_slopes",
    "squared_slope",
]
