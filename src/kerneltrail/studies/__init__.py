"""Experiments, benchmarks and the demonstration: they use the package, and only the command line uses them."""
