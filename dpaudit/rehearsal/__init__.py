"""The code that runs is put to the test before it runs: neighbours derived from data, replayed."""
