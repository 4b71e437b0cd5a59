"""Commands as people and scripts call them, for the tests of each."""

import csv

from typer.testing import CliRunner

from kerneltrail.cli.app import app

COLUMNS = ("--user", "user", "--order", "order", "--target", "y", "--batch-column", "batch")
"""Roles of the columns that `Cohort.write_csv` writes for simulated users."""


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def refused(result, *sentences):
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    text = " ".join(result.stderr.split()).replace(" │ │ ", " ")  # the frame around errors of usage
    for words in sentences:
        assert words in text


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
