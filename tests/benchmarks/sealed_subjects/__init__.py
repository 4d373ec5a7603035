"""The subjects of the rehearsal's suites, written again so that they hold handles of the data."""
