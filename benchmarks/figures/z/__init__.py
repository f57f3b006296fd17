"""The figures of z-anonymity (Jha et al., 2023)."""
