"""Shared kernels: arrays in, arrays out. Compiled when Numba is on, plain Python otherwise."""
