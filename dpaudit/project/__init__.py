"""What a user brings: subjects, plan files and project files, and how they are found."""

from dpaudit.project.audit_request import Execution
from dpaudit.project.subject import AuditPair, Move, RunResult, Subject, read_data

__all__ = ["AuditPair", "Execution", "Move", "RunResult", "Subject", "read_data"]
