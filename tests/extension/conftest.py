"""Certificates of every kind as fixtures."""

from report_certificates import certificate, certificates, hostile_text

__all__ = ["certificate", "certificates", "hostile_text"]
