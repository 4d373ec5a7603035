"""Figures of the paper on federated Thompson sampling."""
