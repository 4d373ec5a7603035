"""What this application offers: ``keygen``, ``sign``, and the verification of what was signed."""

from __future__ import annotations

from dpaudit.base.applications import offer
from dpaudit.signing import commands

offer("command", "keygen", commands.keygen)
offer("command", "sign", commands.sign)
offer("options of book export", "signing", commands.signer_of_export)
offer("options of verify", "signed", commands.verification_of)
