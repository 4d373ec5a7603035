"""What a user brings: subjects, plan files and project files, and how they are found."""

from dpaudit.project.data_files import read_data
from dpaudit.project.execution import Execution
from dpaudit.project.subject import AuditPair, Move, RunResult, Subject

__all__ = ["AuditPair", "Execution", "Move", "RunResult", "Subject", "read_data"]
