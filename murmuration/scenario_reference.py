"""The keys of a scenario as the reference has them, made from the models that check it."""

from collections.abc import Iterator
from typing import get_type_hints

from pydantic import BaseModel

from murmuration.field_reference import default_words, field_texts, value_words
from murmuration.scenario.schema import ChurnSection, Links, Scenario

_HEAD = ["| key | value | default | meaning |", "| --- | --- | --- | --- |"]
_LINKS = "`links`, `client_links`, `datagrams`"


def scenario_keys() -> str:
    """All keys, as Markdown: those of the scenario and its sections in one table, then those of a link, which several
    sections have, and those of churn, which few scenarios need."""
    lines = [*_HEAD, *_rows(Scenario, ""), ""]
    for words, section in ((_LINKS, Links), ("`churn`", ChurnSection)):
        lines += [f"**{words}**", "", *_HEAD, *_rows(section, ""), ""]
    return "\n".join(lines).rstrip() + "\n"


def _rows(model: type[BaseModel], prefix: str) -> Iterator[str]:
    hints, texts = get_type_hints(model, include_extras=True), field_texts(model)
    for name, field in model.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel) and below is not Links:
            yield from _rows(below, f"{prefix}{name}.")
            continue
        default = "required" if field.is_required() else default_words(field.default, hints[name])
        if isinstance(field.default, Links):
            default = "a perfect link"
        yield f"| `{prefix}{name}` | {value_words(hints[name])} | {default} | {texts[name]} |"
