"""The commands: run, init, show, list, analyze, report, page, serve, compare, trace, replay, paper, sweep, bench,
hunt, churn, zoo and doctor.

Exit codes: 0 all right; 1 the verdict is not "valid", or a run ended early; 2 the input cannot be used;
130 interrupted, by Ctrl-C or SIGTERM. Bad input is one message, never a traceback.
"""

import contextlib
import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from murmur_pubsub.errors import InputError, RunError
from murmuration.commands.analyze import analyze_runs, run_named
from murmuration.commands.console import RunProgress
from murmuration.commands.ending import CutShort, carry_out, result_at
from murmuration.commands.init import NEXT, StarterArgument, begin
from murmuration.commands.options import (
    ExecutorMemoryOption,
    JsonOption,
    MasterOption,
    PlainOption,
    RunFolderArgument,
    ScenarioArgument,
    paper_names,
)
from murmuration.commands.outcome import tell_missing, warn_of_lateness
from murmuration.runs.own_modules import find_own_modules
from murmuration.version import own_version
from spark_analysis.wording import emulated_words

application = typer.Typer(
    name="murmur",
    help="An emulation cluster for content-based publish/subscribe.",
    pretty_exceptions_enable=False,
)


def _examples(*commands: str) -> str:
    """What a command's help ends with."""
    return "\n\n".join(["Examples:", *commands])


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"murmur {own_version()}")
        raise typer.Exit


@application.callback(invoke_without_command=True)
def prepare(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Let protocols in the current folder be found by every command; without a command, print the help."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit
    find_own_modules()


@application.command(
    "run",
    epilog=_examples(
        "murmur run",
        "murmur run parity --plain --set links.loss=0.01",
        "murmur run scenario.yaml --runtime virtual --seed 2",
    ),
)
def run_command(
    scenario: ScenarioArgument = "default",
    runtime: Annotated[str | None, typer.Option(help="ray or virtual, instead of the scenario's.")] = None,
    changes: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key.")] = None,
    seed: Annotated[int | None, typer.Option(help="Instead of the scenario's.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make.")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster (HOST:PORT), instead of this host.")] = None,
    keep_inputs: Annotated[bool, typer.Option("--keep-inputs", help="For murmur replay.")] = False,
    store: Annotated[str | None, typer.Option(help="A URI for the journal, instead of the run folder.")] = None,
    master: MasterOption = None,
    executor_memory: ExecutorMemoryOption = None,
    analysis: Annotated[bool, typer.Option(help="Judge the run and write its report.")] = True,
    plain: PlainOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Serve its live page, until interrupted.")] = False,
    metrics: Annotated[
        str | None, typer.Option(metavar="[HOST:]PORT", help="Serve a live run's counts to Prometheus.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a scenario, judge it, and write its report."""
    from murmuration.runs.driver import execute
    from murmuration.runs.run_folder import default_folder, point_latest
    from murmuration.scenario.changes import KeyChange
    from murmuration.scenario.load import load_scenario

    options = {"runtime": runtime, "keep_inputs": keep_inputs or None, "seed": seed}
    given = [KeyChange((key,), value, f"--{key}") for key, value in options.items() if value is not None]
    find_own_modules(Path(scenario))
    loaded = load_scenario(Path(scenario), changes or (), given)
    if analysis and plain:
        from murmuration.commands.plain import check_plain

        check_plain(master, executor_memory)
    elif analysis:
        from spark_analysis.session import check_java

        check_java()
    folder = out or default_folder(loaded.scenario.name)
    with contextlib.ExitStack() as stack:
        watched = None
        if watch:
            from murmuration.commands.watch import watching

            watched = stack.enter_context(watching(folder))
        heard = None
        if metrics is not None:
            from murmuration.live.metrics import serving_metrics

            heard = stack.enter_context(serving_metrics(metrics, loaded.scenario)).hear
        try:
            with RunProgress(quiet=as_json) as progress:
                finished = execute(loaded, folder, progress.step, address, store, watched, heard)
        except (KeyboardInterrupt, OSError, RunError) as error:
            raise CutShort(folder, error) from None
        finally:
            if out is None:
                point_latest(folder)
        if not as_json:
            print("workload:", ", ".join(f"{name} {value}" for name, value in finished.workload.items()))
            print(f"emulated: {emulated_words(finished.manifest)}")
            warn_of_lateness(finished.manifest.lateness)
            tell_missing(finished.missing_journals)
        if analysis:
            analyze_runs([finished.folder], as_json, master, executor_memory, plain)
        elif as_json:
            print(json.dumps(run_named(finished.folder)))
        else:
            print(f"run folder: {finished.folder}")


@application.command("init", epilog=_examples("murmur init scenario", "murmur init protocol hop_acks"))
def init_command(
    what: StarterArgument,
    folder: Annotated[Path, typer.Argument(help="Where its files go.")] = Path(),
) -> None:
    """Write a scenario, a test suite or a protocol to begin with."""
    for path in begin(what, folder):
        print(path)
    print(f"next: {'' if folder == Path() else f'cd {folder} && '}{NEXT[what]}")


@application.command("show")
def show_command(scenario: ScenarioArgument) -> None:
    """Print a scenario as it is written."""
    from murmuration.scenario.load import load_scenario, scenario_path

    load_scenario(Path(scenario))
    print(scenario_path(Path(scenario)).read_text(), end="")


@application.command(
    "analyze",
    epilog=_examples(
        "murmur analyze runs/latest", "murmur analyze runs/* --json", "murmur analyze runs/latest --plain --parquet"
    ),
)
def analyze_command(
    run_folders: Annotated[list[Path], typer.Argument(help="One run folder or more.")],
    master: MasterOption = None,
    executor_memory: ExecutorMemoryOption = None,
    plain: PlainOption = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Copy the run's tables to RUN/tables as Parquet.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Judge runs and write their tables and reports; one Spark judges them all."""
    analyze_runs(run_folders, as_json, master, executor_memory, plain, parquet)


@application.command("gather")
def gather_command(
    run_folder: RunFolderArgument,
    address: Annotated[str, typer.Option(help="The Ray cluster (HOST:PORT) that played the run.")],
) -> None:
    """Fetch the journals of hosts that were away when the run ended and are back now."""
    from murmuration.runs.gathering import gather_again

    with RunProgress(quiet=False) as progress:
        missing = gather_again(run_folder, address, progress.step)
    tell_missing(missing)
    if missing:
        raise typer.Exit(1)


@application.command("report")
def report_command(run_folder: RunFolderArgument) -> None:
    """Write the report of an analysed run again."""
    from spark_analysis.main import report as write_report

    with result_at(run_folder / "report.html", None, "the folder of a run that can be written"):
        print(write_report(run_folder))


@application.command("page")
def page_command(
    run_folder: RunFolderArgument,
    out: Annotated[Path | None, typer.Option(help="The file (default: page.html in the run folder).")] = None,
) -> None:
    """Write the moving picture of a run, judged or not, as one HTML file that needs nothing else."""
    from murmur_page.frozen import write_page
    from murmur_page.recorded import recorded

    path = out or run_folder / "page.html"
    data = recorded(run_folder)
    with result_at(path, out):
        write_page(path, data)
    print(path)


@application.command("serve")
def serve_command(
    runs: Annotated[Path, typer.Argument(help="A folder with run folders, or one of them.")] = Path("runs"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="An address of this host that others can reach, instead of loopback.")
    ] = "127.0.0.1",
) -> None:
    """Serve the moving pictures of all runs in a folder, finished or running, until interrupted."""
    from murmuration.commands.serve import serve_runs

    serve_runs(runs, host, port)


@application.command("compare", epilog=_examples("murmur compare runs/flooding runs/forwarding"))
def compare_command(
    runs: Annotated[list[Path], typer.Argument(help="Two run folders or more.")],
    as_json: JsonOption = False,
) -> None:
    """Runs side by side: what they differ in, what they delivered, how fast, and what it cost."""
    from murmuration.commands.compare import print_comparison

    print_comparison(runs, as_json)


@application.command("trace", epilog=_examples("murmur trace runs/latest 0:31"))
def trace_command(
    run_folder: RunFolderArgument,
    event: Annotated[str, typer.Argument(help="PUBLISHER:NUMBER, as in analysis/findings.csv.")],
    out: Annotated[Path | None, typer.Option(help="The diagram: .svg, .png or .pdf.")] = None,
) -> None:
    """One event's way through the overlay, as text and as a Lamport diagram."""
    from murmuration.commands.trace import trace_event

    trace_event(run_folder, event, out)


@application.command(
    "replay", epilog=_examples("murmur run parity --keep-inputs --plain", "murmur replay runs/latest --node b1 --show")
)
def replay_command(
    run_folder: RunFolderArgument,
    node: Annotated[str, typer.Option(help="Which broker or client.")],
    incarnation: Annotated[int, typer.Option(min=0, help="0: the first; one more for each restart.")] = 0,
    show: Annotated[bool, typer.Option("--show", help="Print every input and its effects.")] = False,
    at: Annotated[str | None, typer.Option(help="Print its state at that time of the run, such as '2.5 s'.")] = None,
) -> None:
    """Run one node of a run with --keep-inputs again, step by step, and compare what it does."""
    from murmuration.commands.replay import replay_node, show_node_at

    if at is not None:
        show_node_at(run_folder, node, at)
    else:
        replay_node(run_folder, node, incarnation, show)


@application.command("paper", epilog=_examples("murmur paper irbr --quick"))
def paper_command(
    name: Annotated[str, typer.Argument(help="Which paper; `murmur list` names them.", autocompletion=paper_names)],
    quick: Annotated[bool, typer.Option("--quick", help="Scaled down, under a minute.")] = False,
    as_json: JsonOption = False,
    out: Annotated[Path | None, typer.Option(help="Where tables and plots go.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 1,
    workers: Annotated[int | None, typer.Option(help="Runs at once (default: one for each core).")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster, instead of this host.")] = None,
) -> None:
    """Make a paper's tables and figures again, beside the paper's; the same --out goes on where it was stopped."""
    from murmuration.commands.paper import reproduce_paper

    reproduce_paper(name, quick, seeds, workers, address, out, as_json)


@application.command("sweep", epilog=_examples("murmur sweep loss.yaml --out sweeps/loss"))
def sweep_command(
    sweep_file: Annotated[Path, typer.Argument(help="A sweep file: a scenario, and what runs differ in.")],
    workers: Annotated[int | None, typer.Option(help="Runs at once (default: one for each core).")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster, instead of this host.")] = None,
    out: Annotated[Path | None, typer.Option(help="The sweep's folder (default: sweeps/NAME).")] = None,
    analysis: Annotated[bool, typer.Option(help="Judge the runs; without, they are only played and kept.")] = True,
    plain: Annotated[
        bool, typer.Option("--plain", help="Judge in plain Python, where each run was played; no Java.")
    ] = False,
    keep_runs: Annotated[bool, typer.Option("--keep-runs", help="Keep the journals of valid runs too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Play a scenario with many parameters and seeds; the same command goes on where it was stopped."""
    from murmuration.commands.sweep import play_sweep

    if plain and not analysis:
        raise InputError("--plain", "--no-analysis beside it", "one of the two: without an analysis nothing judges")
    judge: Literal["spark", "plain"] | None = ("plain" if plain else "spark") if analysis else None
    play_sweep(sweep_file, workers, address, out, judge, keep_runs, as_json)


@application.command(
    "bench",
    epilog=_examples(
        "murmur bench --out bench --seeds 1",
        "murmur bench --only irbr/best_effort --only mine.protocol:ROUTING/best_effort --workload zipf",
        "murmur bench --cell zipf/killed/irbr/best_effort/1",
    ),
)
def bench_command(
    only: Annotated[
        list[str] | None, typer.Option(metavar="ROUTING/RELIABILITY", help="One or more (default: all that can run).")
    ] = None,
    workload: Annotated[list[str] | None, typer.Option(help="uniform, zipf, social, quotes (default: all).")] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="none, loss, killed, skype, generated (default: the last only if there is no Skype trace)."),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds, from 1 on.")] = 5,
    brokers: Annotated[int, typer.Option(help="How many brokers, and clients.")] = 120,
    workers: Annotated[int | None, typer.Option(help="Cells at once (default: one for each core).")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster, instead of this host.")] = None,
    out: Annotated[Path, typer.Option(help="The bench's folder.")] = Path("bench"),
    cell: Annotated[
        str | None,
        typer.Option(
            metavar="WORKLOAD/FAULT/ROUTING/RELIABILITY/SEED", help="Play nothing: print the scenario of this cell."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """All systems under the same workloads and faults, in one table; the same --out goes on where it was stopped."""
    from murmuration.bench.plan import BenchChoice
    from murmuration.commands.bench import play_bench, print_cell
    from murmuration.sweeps.tasks import Cores

    if cell is not None:
        print_cell(cell, brokers)
    else:
        choice = BenchChoice(only or (), workload or (), fault or (), seeds, brokers)
        play_bench(choice, Cores(workers, address), out, as_json)


@application.command(
    "hunt", epilog=_examples("murmur hunt --minutes 60", "murmur hunt --routing mine.protocol:ROUTING --schedules 5000")
)
def hunt_command(
    scenario: Annotated[
        Path | None, typer.Argument(help="A scenario file, or the name of a built-in one: only its faults are drawn.")
    ] = None,
    routing: Annotated[list[str] | None, typer.Option(help="One or more (default: all), by name or path.")] = None,
    reliability: Annotated[list[str] | None, typer.Option(help="The same.")] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(help="Other schedules: `backups`, `crossed`, `replaced`, `varied`."),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Hunt for so long.")] = None,
    schedules: Annotated[int | None, typer.Option(help="Hunt until so many were played in all.")] = None,
    workers: Annotated[int | None, typer.Option(help="Schedules at once (default: one for each core).")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster, instead of this host.")] = None,
    out: Annotated[Path | None, typer.Option(help="The hunt's folder (default: hunt; with a FILE, beside it).")] = None,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 1,
    guided: Annotated[bool, typer.Option("--guided/--unguided", help="Change schedules that reached much.")] = True,
    why: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Hunt nothing: when did this scenario become certain to fail?"),
    ] = None,
    live: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Hunt nothing: play this scenario on Ray as well, and compare.")
    ] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="PATH", help="package.module:NAME of one of your own.")
    ] = None,
    forks: Annotated[int, typer.Option(help="With --why: of each point in time.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Look for schedules of faults that break a protocol; the same --out goes on where it was stopped."""
    from murmuration.commands.hunt import ask_why, compare_live, go_hunting
    from murmuration.hunt.hunt import HuntLimits
    from murmuration.sweeps.tasks import Cores

    cores = Cores(workers, address)
    if why is not None and live is not None:
        raise InputError("--why", "--live beside it", "one of the two")
    if why is not None:
        ask_why(why, forks, cores, out, properties or [])
        return
    if live is not None:
        compare_live(live, out)
        return
    limits = HuntLimits(None if minutes is None else 60 * minutes, schedules)
    folder, asked = out or Path("hunt"), properties or []
    named = routing or [], reliability or [], variant or []
    go_hunting(scenario, *named, limits, cores, folder, seed, guided, asked, as_json)


@application.command("churn")
def churn_command(
    trace: Annotated[
        Path | None, typer.Argument(help="An .avt availability trace; none: only generated churn.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(help="Generated nodes (default: as many as the trace, or 2,000).")
    ] = None,
    days: Annotated[float | None, typer.Option(help="Generated days (default: as the trace, or 25).")] = None,
    seed: Annotated[int, typer.Option(help="Of the generated churn.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from that one on; each is a column.")] = 1,
    fit_days: Annotated[
        float | None,
        typer.Option(help="Fit to so many first days of the trace alone, and judge by the days that follow."),
    ] = None,
    keep_outages: Annotated[bool, typer.Option("--keep-outages", help="Do not mend the prober's outages.")] = False,
    out: Annotated[Path | None, typer.Option(help="Where to draw the population (a PNG file).")] = None,
    fit: Annotated[bool, typer.Option("--fit", help="Print the generator's tables for this trace instead.")] = False,
) -> None:
    """Statistics of an availability trace and of the generator beside it, and the population over time."""
    from murmuration.commands.churn import show_churn

    show_churn(trace, nodes, days, range(seed, seed + seeds), keep_outages, out, fit, fit_days)


@application.command("zoo")
def zoo_command(
    names: Annotated[
        list[str] | None, typer.Argument(help="Of saboteurs or honest ones, or package.module:SABOTEUR (none: all).")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Ask the judge in plain Python, without Spark.")] = False,
    out: Annotated[Path | None, typer.Option(help="Keep the runs in this folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Protocols that cheat: does the judge see what each of them does?"""
    from murmuration.commands.zoo import visit_zoo

    visit_zoo(names or [], plain, as_json, out)


@application.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """What there is to choose from: scenarios, protocols, workloads, overlays, papers."""
    from murmuration.commands.choices import print_choices

    print_choices(as_json)


@application.command("doctor")
def doctor_command(as_json: JsonOption = False) -> None:
    """Look for what is missing on this host, and say how to mend it."""
    from murmuration.commands.doctor import examine, print_findings

    findings = examine()
    print_findings(findings, as_json)
    if not all(finding.fine for finding in findings):
        raise typer.Exit(1)


def main() -> None:
    """The entry point: errors a person can mend become one message."""
    carry_out(application)


if __name__ == "__main__":
    main()
