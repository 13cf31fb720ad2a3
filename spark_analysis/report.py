"""The report of a run: one HTML file that needs nothing else, made from the tables of an analysis."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from murmur_page.frozen import FrozenPicture, content_policy, freeze
from murmur_page.recorded import recorded
from murmur_pubsub.faults import FaultKind
from murmur_pubsub.run_manifest import RunManifest, read_manifest
from murmur_pubsub.verdict_file import DAMAGE
from murmur_pubsub.whole_files import check_files, write_text
from spark_analysis import plots, wording
from spark_analysis.found_picture import found_picture
from spark_analysis.tables import FINDINGS_IN_CSV_MAX, SMALL_TABLES, AnalysisFolder

TEMPLATES = Path(__file__).parent / "templates"
FINDINGS_SHOWN = 50
"""Above it the report warns that delays of a live run are not to be trusted."""
_HEADLINES = {
    "valid": "Valid: every subscriber got what it had to get, and nothing else.",
    "invalid": "Invalid: deliveries went wrong.",
    "unknown": "Unknown: this run does not show whether deliveries were right.",
}

_EXCUSED = "Valid: faults explain what went wrong, and nothing else did."
_AT_MOST_ONCE = "Valid: nothing came twice and nothing that should not; what is missing or late may be."


def _headline(verdict: Mapping[str, Any]) -> str:
    if verdict["verdict"] != "valid":
        return _HEADLINES[verdict["verdict"]]
    if verdict["missing"] + verdict["out_of_order"] > verdict["explained"]:
        return _AT_MOST_ONCE
    return _EXCUSED if verdict["explained"] else _HEADLINES["valid"]


def fill_template(template: str, folder: Path = TEMPLATES, **values: Any) -> str:
    """A page of the template in the folder with these values, and the words of `spark_analysis.wording` as filters; a
    template of another folder may include those of reports."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, TEMPLATES]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {name: getattr(wording, name) for name in ("count", "share", "duration", "size", "rate")}
    return environment.get_template(template).render(**values)


def figure_script(*others: str) -> dict[str, Any]:
    """The script of the figures, and the policy of a page that runs it and these others, and asks nothing of any
    network."""
    own = TEMPLATES.joinpath("figures.js").read_text(encoding="utf-8")
    return {"script": own, "policy": content_policy(own, *others)}


def check_report(run: Path) -> None:
    """Raise `InputError` if a report cannot be written there later."""
    check_files([_place(run)])


def write_report(run: Path) -> Path:
    """Write `RUN/report.html` from `RUN/analysis`; raises `InputError` if the run has not been analysed."""
    manifest = read_manifest(run)
    folder = AnalysisFolder(run)
    verdict = folder.verdict()
    path = _place(run)
    if verdict["finding"] == DAMAGE:
        damages = _records(folder.read(DAMAGE))
        page = fill_template("damaged.html.j2", manifest=manifest, verdict=verdict, damages=damages)
        write_text(path, page)
        return path
    tables = {name: folder.read(name) for name in (*SMALL_TABLES, "faults")}
    summary = folder.summary()
    findings = folder.read_findings()
    scenario = run / "scenario.yaml"
    live = _live(run, manifest, findings)
    page = fill_template(
        "report.html.j2",
        manifest=manifest,
        verdict=verdict,
        always=("missing", "duplicate", "spurious", "out_of_order"),
        headline=_headline(verdict),
        figures=_figures(manifest, tables, summary),
        facts=_facts(verdict, tables),
        messages=_records(tables["messages_by_kind"]),
        drops=_records(tables["drops"]),
        protocol=_records(tables["protocol_records"]),
        measured={measure.topic: measure.words for measure in manifest.measures},
        forwarding=_first(tables["forwarding"]),
        hop_latency=_first(tables["hop_latency"]),
        hops_recorded=bool(tables["traffic"]["sent"].any()),
        lag=_lag(manifest, tables["lag"]),
        late=None if manifest.lateness.sound_percentile is None else wording.late_words(manifest.lateness),
        live=live,
        findings=_shown(findings),
        faults=_records(tables["faults"].astype(object).where(tables["faults"].notna(), None)),
        findings_in_csv=len(findings),
        findings_in_csv_max=FINDINGS_IN_CSV_MAX,
        environment=_environment(manifest),
        scenario=scenario.read_text(encoding="utf-8", errors="replace") if scenario.exists() else None,
        **figure_script(*(() if live is None else live.scripts)),
    )
    write_text(path, page)
    return path


def _place(run: Path) -> Path:
    return run / "report.html"


def _live(run: Path, manifest: RunManifest, findings: pd.DataFrame) -> FrozenPicture | None:
    """The run as a moving picture; None if its journal is not in the run's folder."""
    if manifest.journal is not None:
        return None
    return freeze(recorded(run) | found_picture(run, manifest, findings))


def _figures(
    manifest: RunManifest, tables: Mapping[str, pd.DataFrame], summary: dict[str, Any]
) -> dict[str, str | None]:
    names = manifest.brokers
    return {
        "course": plots.course(tables["traffic"], tables["delivery_rate"], tables["phases"], tables["faults"], summary),
        "delay": plots.delay_cdf(tables["delivery_delay_cdf"], _first(tables["delivery_delay"]), "delivery delay"),
        "hops": plots.hop_cdf(tables["hop_count_cdf"]),
        "hop_latency": plots.delay_cdf(
            tables["hop_latency_cdf"], _first(tables["hop_latency"]), "time from send to receive"
        ),
        "load_cdf": plots.load_cdf(tables["load_cdf"]),
        "load": plots.load_by_broker(tables["brokers"]),
        "overlay": plots.overlay_graph(names, manifest.overlay.edges, tables["brokers"]),
    }


def _facts(verdict: Mapping[str, Any], tables: Mapping[str, pd.DataFrame]) -> list[tuple[str, str, str]]:
    """(number, what it is, remark) for the row of large numbers."""
    delay, rates, forwarding = (_first(tables[name]) for name in ("delivery_delay", "rates", "forwarding"))
    required = int(verdict["required"])
    made = required - int(verdict["missing"])
    facts = [
        (
            wording.count(verdict["published"]),
            "events published",
            wording.rate(rates["publications_per_second"]),
        ),
        (wording.count(verdict["delivered"]), "deliveries", wording.rate(rates["deliveries_per_second"])),
        (
            wording.share(made / required if required else None),
            "delivery rate",
            f"{wording.count(made)} of {wording.count(required)} required",
        ),
        (
            wording.duration(delay["p50_us"]),
            "delivery delay, median",
            f"p99 {wording.duration(delay['p99_us'])}",
        ),
    ]
    if forwarding["receptions"]:
        pure = wording.count(forwarding["pure_forwarders"])
        facts.append((wording.share(forwarding["yield"]), "yield", f"{pure} pure forwarders"))
    return facts


def _lag(manifest: RunManifest, lag: pd.DataFrame) -> list[dict[str, Any]]:
    """The nodes furthest behind emulated time, without those that a fault held up on purpose."""
    slowing = (FaultKind.STALL, FaultKind.SLOW)
    held_up = {name for fault in manifest.faults if fault.kind in slowing for name in fault.nodes}
    return _records(lag[~lag["name"].isin(held_up)].head(5))


def _shown(listed: pd.DataFrame) -> list[dict[str, Any]]:
    """The findings to print: as many of each kind as fit, so that a rare kind does not drown in a common one."""
    kinds = max(1, listed["finding"].nunique())
    return _records(listed.groupby("finding").head(FINDINGS_SHOWN // kinds).sort_values("finding", kind="stable"))


def _environment(manifest: RunManifest) -> list[tuple[str, str]]:
    brokers = len(manifest.brokers)
    clients = sum(node.role == "client" for node in manifest.nodes)
    told = [
        ("run", f"{manifest.name}, seed {manifest.seed}, {manifest.completeness}"),
        ("runtime", "live Ray actors" if manifest.runtime == "ray" else f"{manifest.runtime} time"),
        ("nodes", f"{brokers} brokers and {clients} clients, {len(manifest.overlay.edges)} links between brokers"),
        ("withdrawal grace", wording.duration(manifest.withdrawal_grace_us)),
        ("time dilation", f"{manifest.time_dilation:g}"),
        ("emulated time", wording.emulated_words(manifest)),
        ("murmur", manifest.version),
    ]
    host = manifest.host
    if host is not None:
        memory = wording.size(host.memory_bytes)
        told += [("cores", str(host.cores)), ("memory", memory), ("python", host.python), ("system", host.system)]
    told += [(f"workload: {key}", _plain(value)) for key, value in manifest.workload.items()]
    told += [(f"wall time, {phase}", wording.duration(1e6 * value)) for phase, value in manifest.wall_seconds.items()]
    return told


def _plain(value: Any) -> str:
    return f"{value:,}" if type(value) is int else f"{value:g}" if type(value) is float else str(value)


def _first(table: pd.DataFrame) -> dict[str, Any]:
    """The only row of a table; NaN, Spark's null in a frame, becomes None."""
    return {str(key): None if pd.isna(value) else value for key, value in table.iloc[0].to_dict().items()}


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]
