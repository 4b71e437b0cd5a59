"""A model as text: its graph in DOT."""

import re
from dataclasses import replace

from kerneltrail.kernels import Pool
from kerneltrail.report import model_text
from kerneltrail.report.graph_structure import Graph, wrapped
from trajectory.small import small_model


def test_dot_has_every_kernel_and_every_arrow_with_its_count():
    model = small_model()
    graph, text = Graph.of(model.pool, model.paths), model_text.model_dot(model)
    assert text.startswith("digraph kernels {\n")
    assert text.endswith("}\n")
    boxes = re.findall(r'^  n(\d+) \[label="(.*?)"', text, re.MULTILINE)
    assert [name.replace("\\n", "\n") for _, name in boxes] == [wrapped(name) for name in graph.names]
    assert [int(number) for number, _ in boxes] == list(range(len(graph.names)))
    links = re.findall(r'n(\d+) -> n(\d+) \[label="(\d+/\d+)", weight=(\d+)\]', text)
    assert links == [(str(link.parent), str(link.child), link.label, str(link.count)) for link in graph.links]
    bold = {int(number) for number in re.findall(r"n(\d+) \[.*rounded,bold", text)}
    assert bold == graph.key


def test_dot_stands_the_kernels_of_a_batch_beside_each_other():
    assert "{rank=same; n0}" in model_text.model_dot(small_model())


def test_dot_keeps_names_that_hold_quotes(monkeypatch):
    quoted = Graph(('say "a\\b"',), (0,), ())
    monkeypatch.setattr(model_text, "Graph", type("One", (), {"of": staticmethod(lambda pool, paths: quoted)}))
    assert r'n0 [label="say \"a\\b\""]' in model_text.model_dot(small_model())


def test_the_empty_composition_has_a_name():
    lines = model_text.graph_lines(Pool.of("LIN[x]", "SE[x]"), ((0, 1), (2, 2)))
    assert "├─ 1/2 (noise alone)" in lines


def test_a_limit_that_binds_is_said_and_only_then():
    model = small_model()
    assert [path[-1].bit_count() for path in model.paths] == [2, 2, 2]
    told = {n: model_text.limit_text(replace(model, settings=replace(model.settings, largest=n))) for n in (2, 3)}
    assert told[2].startswith(
        "Most pilot users end at kernels of 2 products, the most that the setting `largest` allows."
    )
    assert told[3] == ""
    assert len(model.pool) > 3
