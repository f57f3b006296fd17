"""The parts of TIDE: a grid of whole numbers, growth, repair, insertion and prices."""
