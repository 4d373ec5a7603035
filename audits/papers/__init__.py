"""Certificates and reports of the algorithms of the four papers.

``python -m audits.papers`` certifies and attacks what ``audits/dpaudit.toml`` lists, adds the
attacks that were made for one algorithm alone, and writes ``reports/``.
"""
