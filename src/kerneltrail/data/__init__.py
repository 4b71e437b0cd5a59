"""Users and cohorts: tables in, scaling, loaders of public data, simulators."""
