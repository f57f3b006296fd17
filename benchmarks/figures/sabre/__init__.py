"""The figures of the thesis on SABRE: t-closeness for tables."""
