"""Kerneltrail: online structural kernel selection for Gaussian processes in mobile health."""
