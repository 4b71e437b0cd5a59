# %% [markdown]
# # From a pilot study to a trial
#
# A notebook in plain Python: run it cell by cell in an editor that knows `# %%`, or as a script. It reads a table with
# pandas, learns from pilot users, follows new users batch by batch as an app would, and looks at what came of it.
# The tables are simulated and ship with the package.

# %%
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import kerneltrail as kt
from kerneltrail.data.example import write_example

folder = Path(tempfile.mkdtemp())
pilot_file, new_file, _ = write_example(folder)

# %% [markdown]
# ## The pilot study
#
# One row per decision point. Look before you fit: how many rows, what is missing.

# %%
table = pd.read_csv(pilot_file, parse_dates=["time"])
print(table.groupby("user").size())
print(table.isna().sum())

# %%
pilot = kt.Cohort.from_table(
    table,
    user="user",
    order="time",
    target="log_steps",
    covariates=["hour", "temperature", "log_steps30pre"],
    action="send",
    availability="available",
    batch_size=40,
    missing="drop",
    target_scaling="standard",
    units={"hour": "hours", "temperature": "°C", "log_steps30pre": "log steps", "log_steps": "log steps"},
)
print(pilot.report)

# %% [markdown]
# ## Learn how kernels evolve
#
# A pool that a clinician would agree to: steps carry over, and the hour and the temperature matter smoothly. What a
# prompt adds is linear in the steps before (the reward model).

# %%
pool = kt.Pool.of("LIN[log_steps30pre] + SE[hour] + SE[temperature]")
model = kt.fit(pilot, pool=pool, reward=kt.Reward(("log_steps30pre",)), largest=2, chains=2, sweeps=200, seed=0)
for edge in model.edges:
    print(edge.parent or "root", "→", edge.child, edge.label)
print("R-hat of the log joint:", round(model.diagnostics.rhat["log_joint"], 3))

# %% [markdown]
# ## The trial begins: new users, batch by batch
#
# `Cohort.from_schema` takes a new table as the pilot's was taken: same columns, same scaling, same batches.

# %%
trial = kt.Cohort.from_schema(model.schema, pd.read_csv(new_file))
rows = []
for person in trial.raw:
    user = model.new_user(person.name)
    for t in range(1, person.batches + 1):
        batch = person.batch(t)
        ahead = user.predict(batch.X, action=batch.action)  # before the batch is seen
        user.update(batch.X, batch.y, action=batch.action)
        rows.append(
            {
                "user": person.name,
                "batch": t,
                "rows": user.rows,
                "kernel": user.composition.text,
                "probability": user.probabilities[user.composition],
                "rmse": float(np.sqrt(np.mean((batch.y - ahead.mean) ** 2))),
                "log_density": float(ahead.log_density(batch.y).mean()),
            }
        )
followed = pd.DataFrame(rows)
print(followed.round(3).to_string(index=False))

# %% [markdown]
# How well is the next batch predicted, on average over users?

# %%
print(followed.groupby("batch")[["rmse", "log_density", "probability"]].mean().round(3))

# %% [markdown]
# ## What was found for the last user, in words

# %%
for sentence in kt.explain(user):
    print("•", sentence)

# %% [markdown]
# ## What would a prompt add now?
#
# The advantage at two contexts: sitting still, and after a thousand steps; with 90 % intervals.

# %%
contexts = pd.DataFrame(
    {"hour": [12.5, 12.5], "temperature": [12.0, 12.0], "log_steps30pre": np.log([0.5, 1000.5])},
    index=["sitting still", "after 1000 steps"],
)
X = contexts[list(model.covariates)].to_numpy()
advantage = user.advantage(X)
contexts["advantage"] = advantage.mean
contexts["low"] = advantage.mean - 1.645 * np.sqrt(advantage.variance)
contexts["high"] = advantage.mean + 1.645 * np.sqrt(advantage.variance)
print(contexts.round(2))

# %% [markdown]
# ## Keep model and user
#
# Two files; the next request of the app loads them and goes on, to the bit.

# %%
model.save(folder / "pilot.trail")
user.save(folder / "last.user")
again = kt.load(folder / "pilot.trail").load_user(folder / "last.user")
assert again.probabilities == user.probabilities
print("kept:", sorted(path.name for path in folder.iterdir()))
