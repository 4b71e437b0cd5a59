"""After a trial: what acting changed, whether the policy came to differ between people, and the record for others.

Nothing is loaded here: `kerneltrail.trial.analysis.wcls` needs NumPy alone, and simulators use it thousands of times.
"""
