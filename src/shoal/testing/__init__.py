"""What it takes to know that an anonymizer is right: for ours, and for anybody's.

`shoal.testing.checks` holds the contract that every anonymizer keeps, `shoal.testing.strategies`
draws streams for it, `shoal.testing.streams` plays them, `shoal.testing.hostile` has the ones that
hurt; `shoal.testing.definitions` and `shoal.testing.definitions` judge groups by the definitions.
`shoal.testing.clocks` has a clock that stands still. Needs the extra ``shoal[testing]``.
"""
