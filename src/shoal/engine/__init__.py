"""Engines: the contract of an anonymizer, and the families of engines that keep it."""
