"""Experiments on real users, whose truth nobody knows: `heartsteps` and `fitbit`."""
