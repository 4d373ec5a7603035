"""Known defects of DP-SGD trainings with opacus, and what finds each of them.

``python -m audits.opacus`` prints the table: the defect, the method, what it found and its cost.
"""
