"""Telling two neighbours apart by what comes out: experiments with a stated error rate."""
