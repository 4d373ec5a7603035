"""What this application offers: ``observe``."""

from __future__ import annotations

from dpaudit.base.applications import offer
from dpaudit.observing import commands

offer("command", "observe", commands.observe)
