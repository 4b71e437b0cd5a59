"""Findings about a table, as a part of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from kerneltrail.data import Finding
from kerneltrail.data.checks.page import sentence
from kerneltrail.report.page import Block

HEADINGS = {"error": "What cannot be used", "warning": "What is probably a mistake", "note": "What is worth knowing"}


@dataclass(frozen=True)
class Findings(Block):
    """Findings of one severity: what was seen, and below it what to do."""

    template: ClassVar[str] = "findings.html.jinja"
    severity: str
    findings: Sequence[Finding]

    @property
    def heading(self) -> str:
        """What they have in common."""
        return HEADINGS[self.severity]

    @staticmethod
    def sentence(finding: Finding) -> str:
        """What was seen, as a sentence that begins like one."""
        text = sentence(finding.message)
        return text[:1].upper() + text[1:]
