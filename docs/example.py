"""A tour of the Python API, cell by cell (editors run a `# %%` cell).

Run it whole with `.venv/bin/python docs/example.py`; it takes a few seconds and leaves nothing behind.
"""

# %% A scenario: read a file, look at it, change it. Values are checked when they are assigned.
from pathlib import Path

import polars as pl

import firstflight
from firstflight.engines.model import SlowStart, compute, first_rounds, from_scenario

examples = Path(__file__).parents[1] / "examples"
scenario = firstflight.load_scenario(examples / "transfer-20-segments.toml")
print(scenario.name, scenario.duration, scenario.tcp.initial_window)
try:
    scenario.tcp.initial_window = 0
except firstflight.RequestError as error:
    print("refused:", error)

# %% Run it. Records are Polars frames; without out="DIR" they live as long as the run.
run = firstflight.run(scenario, replicates=1)
print(run.transfers.select("first_byte_time_s", "completion_time_s", "segments_sent").collect())

# %% Change one thing at a time: completion time by initial window, simulated and by the model engine.
rows = []
for iw in (1, 3, 10, 32):
    changed = scenario.replace("tcp.initial_window", iw)
    for engine in ("simulate", "model"):
        transfers = firstflight.run(changed, engine=engine, replicates=1).transfers.collect()
        rows.append({"iw": iw, "engine": engine, "completion_time_s": transfers["completion_time_s"].item()})
print(pl.DataFrame(rows).pivot("engine", index="iw", values="completion_time_s"))

# %% The model computes every segment; the equations explain the time.
outcome = compute(from_scenario(scenario))
print([f"{time / 1e6:.1f} ms: {delivered} B" for time, delivered in outcome.deliveries][:4])
case = SlowStart(size_bytes=29_200, mss_bytes=1460, initial_window=3, round_trip_s=0.1, rate_bps=10e6)
print(f"{case.stalls} stalls, {1e3 * case.stalled_s:.1f} ms; IW 10 gains {1e3 * case.gain_s(10):.1f} ms")
print("segments by round, IW 3 and 10:", first_rounds(3, 5), first_rounds(10, 5))

# %% Several clients, several replicates: what a larger window does for web pages next to a download.
home = firstflight.load_scenario(examples / "home.toml")
home.duration = firstflight.Duration("30s")
for iw in (3, 10):
    pages = firstflight.run(home.replace("tcp.initial_window", iw), replicates=3).pages
    median = pages.filter(pl.col("completed") == 1).group_by("replicate").agg(pl.col("completion_time_s").median())
    print(f"IW {iw}: median page in {median.select(pl.col('completion_time_s').mean()).collect().item():.3f} s")

# %% A study, or some cells of it: its tables, claims and answer.
study = firstflight.study("rfc6928-rounds")
done = firstflight.run(study, only={"segments": [10, 32, 79]})
print(study.tables(done)[0].frame.filter(pl.col("metric") == "round_trips"))
for claim in study.claims(done):
    if claim.verdict == "differs":
        print(f"{claim.text} Found {claim.found:g}. {claim.reason}")
