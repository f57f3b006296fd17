"""Tools to test an anonymizer, Shoal's own or another.

`shoal.testing.checks` holds the contract that every anonymizer keeps, `shoal.testing.strategies`
draws streams for it, `shoal.testing.hostile` has adversarial ones, `shoal.testing.streams` plays
them, and `shoal.testing.definitions` judges groups by the definitions of the criteria. For runs:
`shoal.testing.clocks` has a manual clock, `shoal.testing.faults` kills processes at a chosen call,
`shoal.testing.broker` starts a Kafka broker. Needs the extra ``shoal[testing]``.
"""
