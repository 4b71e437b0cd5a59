import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from kerneltrail.data import Cohort, User
from kerneltrail.errors import ConfigError, KerneltrailError
from kerneltrail.gp import Reward
from kerneltrail.kernels import Pool, Priors, log_normal, normal
from kerneltrail.trajectory.configuration import Config, read_config
from kerneltrail.trajectory.map_table import MapSettings
from kerneltrail.trajectory.settings import Settings

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"
NAMES = ("hour", "steps30pre", "temperature")


def cohort(scaling="group", names=NAMES):
    rows = [[float(i + j) for j in range(len(names))] for i in range(4)]
    users = [User("a", names, rows, [0.0, 1.0, 2.0, 1.0], [2, 4], action=[0, 1, 1, 0])]
    return Cohort.from_users(users, scaling=scaling)


def build(text, **options):
    return Config.parse(text).build(cohort(**options))


def refused(text, *words, format="yaml"):
    with pytest.raises(ConfigError) as caught:
        Config.parse(text, format=format, source="fit.yaml").build(cohort())
    assert isinstance(caught.value, KerneltrailError)
    assert str(caught.value).startswith("fit.yaml")
    for word in words:
        assert word in str(caught.value)


class TestDocumentation:
    def example(self, language):
        return re.search(rf"```{language}\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]

    def test_the_full_example_builds_what_it_says(self):
        parts = Config.parse(self.example("yaml")).build(cohort())
        pool, priors = parts["pool"], parts["priors"]
        odds = {str(product): p for product, p in zip(pool.products, pool.probabilities, strict=True)}
        assert odds["PER[steps30pre]"] == 0.2
        assert odds["SE[temperature]"] == 0.05
        assert odds["LIN[hour]*SE[steps30pre]"] == 0.025
        assert odds["PER[hour]*SE[temperature]"] == 0.025
        assert "LIN[temperature]" not in odds
        assert priors.of("noise") == log_normal(0.0, variance=0.5)
        assert priors.of("location") == normal(0.5, scale=0.3)
        assert priors.of("lengthscale", "hour") == log_normal(-1.5, scale=0.5)
        assert priors.of("lengthscale", "steps30pre") == Priors.heartsteps().of("lengthscale")
        assert parts["reward"] == Reward(("hour",))
        assert parts["settings"] == Settings(options={"plate": {"steps": 8}}).resolved(False)

    def test_the_full_example_states_every_key(self):
        stated = yaml.safe_load(self.example("yaml"))
        assert set(stated) == set(Config.model_fields)
        for name, field in Config.model_fields.items():
            if name not in ("preset", "settings", "reward"):
                assert set(stated[name]) == set(field.annotation.model_fields)
        assert set(stated["settings"]) == {field.name for field in fields(Settings)}
        assert set(stated["settings"]["maps"]) == {field.name for field in fields(MapSettings)}
        assert set(stated["reward"]) == {field.name for field in fields(Reward)} - {
            "variances",
            "typical",
            "slopes",
            "covariance",
        }  # which are learnt

    def test_the_toml_example_builds_what_it_says(self):
        parts = Config.parse(self.example("toml"), format="toml").build(cohort())
        assert parts["pool"] == Pool.of("LIN[hour]") | Pool.of("PER[hour]", probability=0.3)
        assert parts["settings"] == Settings.published(alpha=0.5, maps=MapSettings(starts=1))
        assert parts["reward"] is None

    def test_the_table_of_settings_has_every_key_with_its_default(self):
        told = dict(re.findall(r"^\| `([a-z_.]+)` \|.*\| `([^`]*)` \|$", DOCS.read_text(), re.MULTILINE))
        known = Settings().to_json()
        known |= {f"maps.{name}": value for name, value in known.pop("maps").items()}
        assert {name: yaml.safe_load(told[name]) if name in told else None for name in known} == {
            name: str(value) if name in ("maps.tol", "maps.accuracy") else value for name, value in known.items()
        }

    def test_how_the_published_preset_differs_is_told(self):
        published, default = Settings.published().to_json(), Settings().to_json()
        text = " ".join(DOCS.read_text().split())
        for name, value in published.items():
            if value != default[name]:
                told = f"[{', '.join(value)}]" if isinstance(value, list) else value
                assert f"`{name}: {told}`" in text


class TestDefaults:
    def test_nothing_said_is_every_atom_on_every_covariate(self):
        parts = build("")
        assert parts["pool"] == Pool.atoms(NAMES)
        assert parts["settings"] == Settings().resolved(False)
        assert parts["reward"] is None

    @pytest.mark.parametrize(("scaling", "priors"), [("group", Priors.heartsteps()), ("none", Priors.synthetic())])
    def test_priors_follow_the_scaling(self, scaling, priors):
        assert build("", scaling=scaling)["priors"] == priors
        assert build("priors: {preset: synthetic}", scaling=scaling)["priors"] == Priors.synthetic()

    def test_what_the_file_states_stands_above_the_preset_and_changes_above_the_file(self):
        config = Config.parse("preset: published\nsettings: {chains: 3, maps: {starts: 5}}")
        assert config.settings_value() == Settings.published(chains=3, maps=MapSettings(starts=5))
        assert config.settings_value(chains=1).chains == 1
        assert config.with_preset("default").settings_value() == Settings(chains=3, maps=MapSettings(starts=5))


class TestPool:
    def test_a_list_alone_is_the_pool(self):
        assert build("pool: {kernels: ['SE[hour] + LIN[hour]']}")["pool"] == Pool.of("LIN[hour]", "SE[hour]")

    def test_a_list_is_added_to_what_is_generated(self):
        pool = build("pool: {kinds: [SE], kernels: [{kernel: 'SE[hour]', probability: 0.4}, 'LIN[hour]']}")["pool"]
        assert pool == Pool.atoms(NAMES, kinds=["SE"]).with_probabilities({"SE[hour]": 0.4}) | Pool.of("LIN[hour]")

    def test_the_papers_pool_with_the_printed_probabilities(self):
        pool = build("pool: {preset: paper, covariates: [hour], inclusion: {compound: 0.25}}")["pool"]
        assert pool == Pool.paper("hour", compound=0.25)

    def test_the_papers_pool_is_offered_on_every_covariate_chosen(self):
        assert build("pool: {preset: paper}")["pool"] == Pool.paper("hour") | Pool.paper("steps30pre") | Pool.paper(
            "temperature"
        )

    def test_noise_alone(self):
        assert build("pool: {allow_empty: true}")["pool"].allow_empty

    def test_a_library_is_listed_in_text(self):
        library = "{library: ['LIN[hour]', 'PER[hour] + SE[hour]']}"
        parts = build(f"preset: published\nsettings: {{options: {{published_seat: {library}}}}}")
        assert list(parts["settings"].options["published_seat"]["library"]) == [0b1, 0b110]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pool: {order: 255}", ["products of up to 255 of 9 atoms are more than 10,000; lower the order"]),
        ("pool: {order: 9999999999999}", ["more than 10,000"]),
        ("pol: {}", ["unknown key 'pol' at the top", "did you mean 'pool'?"]),
        ("pool: {inclusion: {simpel: 0.1}}", ["unknown key 'simpel' in pool.inclusion", "'simple'"]),
        ("settings: {chain: 4}", ["unknown key 'chain' in settings", "'chains'"]),
        ("settings: {maps: {acuracy: 1}}", ["unknown key 'acuracy' in settings.maps", "'accuracy'"]),
        ("priors: {types: {noise: {mean: 1, varianse: 1}}}", ["'varianse' in priors.types.noise", "'variance'"]),
        ("reward: {feature: [hour]}", ["unknown key 'feature' in reward", "'features'"]),
        ("pool: {kernels: ['SE[hour]', {kernel: 'SE[hour]', chance: 1}]}", ["'chance' in pool.kernels[item 2]"]),
        ("settings: {chains: four}", ["settings.chains must be a whole number, got 'four'"]),
        ("settings: {chains: 2.5}", ["settings.chains must be a whole number"]),
        ("settings: {chains: true}", ["settings.chains must be a whole number"]),
        ("settings: {alpha: '1'}", ["settings.alpha must be a number, got '1'"]),
        ("settings: {moves: seat}", ["settings.moves must be a list"]),
        ("settings: 3", ["settings must be keys with values"]),
        ("pool: {allow_empty: 1}", ["pool.allow_empty must be true or false"]),
        ("pool: {kernels: [3]}", ["pool.kernels[item 1] must be keys with values"]),
        ("pool: {kernels: [{probability: 0.1}]}", ["pool.kernels[item 1] lacks the key 'kernel'"]),
        ("pool: {order: 0}", ["pool.order", "greater than or equal to 1"]),
        ("preset: fast", ["preset must be 'default' or 'published', got 'fast'"]),
        ("settings: {evidence: nested}", ["settings.evidence names 'nested'", "there are laplace, group, empirical"]),
        ("settings: {moves: [seats]}", ["settings.moves names 'seats'", "'seat'"]),
        ("settings: {options: {plates: {}}}", ["settings.options names 'plates'", "'plate'"]),
        ("settings: {options: {plate: {stps: 1}}}", ["settings.options.plate names 'stps'", "'steps'"]),
        ("settings: {options: {plate: {steps: 0}}}", ["'steps' of move 'plate' must be at least 1"]),
        ("settings: {options: {seat: {fresh: 1}}}", ["settings.options.seat names 'fresh'", "there are none"]),
        (
            "preset: published\nsettings: {options: {published_seat: {library: ['SE[day]']}}}",
            ["SE[day] is not in the pool"],
        ),
        ("preset: published\nsettings: {options: {published_seat: {library: 3}}}", ["a library is a list of kernels"]),
        ("settings: {sweeps: 1}", ["settings: sweeps must be at least 8"]),
        ("settings: {alpha: 0}", ["settings.alpha"]),
        ("settings: {keep: 1.5}", ["settings.keep", "between 0 and 1"]),
        ("priors: {types: {noise: {mean: 1}}}", ["priors.types.noise: say either variance or scale"]),
        ("priors: {types: {noise: {mean: 1, scale: 1, variance: 1}}}", ["say either variance or scale"]),
        ("priors: {types: {lenghtscale: {mean: 1, scale: 1}}}", ["priors.types names 'lenghtscale'", "'lengthscale'"]),
        ("priors: {covariates: {hours: {period: {mean: 1, scale: 1}}}}", ["'hours'", "did you mean 'hour'?"]),
        ("priors: {covariates: {hour: {noise: {mean: 1, scale: 1}}}}", ["noise belongs to no covariate"]),
        ("priors: {types: {noise: {mean: 1, variance: -1}}}", ["variance above 0"]),
        ("pool: {covariates: [hours]}", ["pool.covariates names 'hours'", "did you mean 'hour'?"]),
        ("pool: {kinds: [SQ]}", ["pool.kinds names 'SQ'"]),
        ("pool: {kernels: ['SE[temprature]']}", ["pool reads 'temprature'", "did you mean 'temperature'?"]),
        ("pool: {kernels: ['SEE[hour]']}", ["unknown kernel 'SEE'", "did you mean SE?"]),
        ("pool: {kernels: [{kernel: 'SE[hour]', probability: 0.0}]}", ["strictly between 0 and 1"]),
        ("pool: {inclusion: {overrides: {'SE[hour] + LIN[hour]': 0.1}}}", ["is not one product of this pool"]),
        ("pool: {preset: paper, order: 2}", ["the preset 'paper' has its own"]),
        ("reward: {features: [ours]}", ["reward.features names 'ours'", "did you mean 'hour'?"]),
        ("reward: {advantage_variance: 0}", ["advantage_variance > 0"]),
        ("reward: {intercept: false}", ["no advantage", "settings.constant"]),
        ("a: 1\na: 2", ["line 2", "the key 'a' stands twice"]),
        ("? [a]\n: 1", ["a key must be a name"]),
        ("settings: [", ["line 1"]),
        ("!!python/object/apply:os.system [ls]", ["could not determine a constructor"]),
        ("- a", ["must hold keys with values"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(text, words):
    refused(text, *words)


def test_a_reward_model_needs_actions():
    users = [User("a", ("hour",), [[1.0], [2.0]], [0.0, 1.0], [2])]
    with pytest.raises(ConfigError, match="needs the action's column"):
        Config.parse("reward: {}").build(Cohort.from_users(users))


def test_several_mistakes_are_told_at_once():
    refused("pol: 1\nsettings: {chains: x}", "'pol'", "settings.chains")


def test_toml_mistakes(tmp_path):
    refused("a = ", "cannot be read as TOML", format="toml")
    refused("[settings]\nchain = 4", "unknown key 'chain' in settings", format="toml")


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "text"),
        [("a.yaml", "settings: {seed: 3}"), ("a.yml", "settings:\n  seed: 3"), ("a.TOML", "[settings]\nseed = 3")],
    )
    def test_the_ending_says_the_format(self, tmp_path, name, text):
        (tmp_path / name).write_text(text)
        assert read_config(tmp_path / name).settings_value().seed == 3

    def test_a_number_with_an_exponent_is_a_number(self, tmp_path):
        (tmp_path / "a.yaml").write_text("settings: {alpha: 1e-3, maps: {tol: 2E-7}}")
        settings = read_config(tmp_path / "a.yaml").settings_value()
        assert (settings.alpha, settings.maps.tol) == (1e-3, 2e-7)

    def test_errors_name_the_file(self, tmp_path):
        path = tmp_path / "my fit.yaml"
        path.write_text("settings: {chian: 3}")
        with pytest.raises(ConfigError, match=r"my fit\.yaml: unknown key 'chian' in settings; did you mean 'chains'"):
            read_config(path)

    def test_files_that_are_none(self, tmp_path):
        with pytest.raises(ConfigError, match="there is no file"):
            read_config(tmp_path / "none.yaml")
        with pytest.raises(ConfigError, match=r"must be a \.yaml, \.yml or \.toml file"):
            read_config(tmp_path / "fit.json")
        (tmp_path / "latin.yaml").write_bytes(b"preset: \xe9")
        with pytest.raises(ConfigError, match="not text in UTF-8"):
            read_config(tmp_path / "latin.yaml")
        (tmp_path / "folder.yaml").mkdir()
        with pytest.raises(ConfigError, match="cannot be read"):
            read_config(tmp_path / "folder.yaml")
