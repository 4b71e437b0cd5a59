"""`kerneltrail describe`: a kernel in plain words."""

from cli.invoke import run


def test_describe_says_what_a_kernel_means():
    result = run("describe", "PER[hour] + LIN[x]", "--target", "steps")
    assert result.exit_code == 0
    assert result.stdout.startswith("LIN[x] + PER[hour]\n")
    assert "Steps will" in result.stdout
    assert "PER[hour].period = 2.72" in result.stdout


def test_describe_of_nothing_is_noise():
    result = run("describe", "")
    assert result.exit_code == 0
    assert "noise alone" in result.stdout
