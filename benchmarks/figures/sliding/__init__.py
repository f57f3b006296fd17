"""The figures of the thesis on SABRE_W: t-closeness for the windows of a stream."""
