"""The trial before the trial: designs and policies tried on simulated participants (``kerneltrail[simulate]``)."""
