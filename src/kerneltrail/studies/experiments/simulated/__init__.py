"""Experiments on simulated users, of whom the true kernel is known."""
