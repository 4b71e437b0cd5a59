from kerneltrail.data.heartsteps import COVARIATES, absent_covariates, heartsteps_pool


def table(covariates):
    pool = heartsteps_pool(covariates)
    return dict(zip(map(str, pool), pool.probabilities, strict=True))


def test_each_atom_on_each_covariate_and_the_products_that_can_be_made():
    found = table(COVARIATES)
    assert {f"{kind}[{name}]" for kind in ("LIN", "PER", "SE") for name in COVARIATES} < set(found)
    assert [text for text in found if "*" in text] == ["SE[hour]*SE[temperature]", "SE[hour]*SE[log_steps30pre]"]
    assert not any("*" in text for text in table(["hour", "dom"]))
    assert set(found) - set(map(str, heartsteps_pool(COVARIATES, ours=False))) == {"SE[hour]*SE[log_steps30pre]"}


def test_inclusion_probabilities_are_the_papers():
    found = table((*COVARIATES, "weather", "min"))
    assert found["PER[steps30pre]"] == 0.1
    for text in ("SE[steps30pre]", "PER[hour]", "SE[hour]", "SE[temperature]", "PER[temperature]", "SE[weather]"):
        assert found[text] == 0.05
    for text in ("PER[yday]", "SE[yday]", "LIN[min]", "SE[hour]*SE[weather]", "SE[hour]*SE[temperature]"):
        assert found[text] == 0.05
    assert found["LIN[hour]"] == found["PER[location]"] == found["LIN[steps30pre]"] == 0.03
    assert found["SE[hour]*SE[log_steps30pre]"] == 0.01


def test_what_the_paper_has_and_the_data_lack_is_named():
    assert absent_covariates(COVARIATES) == ("min", "weather", "precip_chance", "activity")
    assert absent_covariates(("hour", "steps30pre")) == (
        "min", "temperature", "weather", "precip_chance", "activity", "yday", "dom",
    )  # fmt: skip
