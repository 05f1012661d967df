"""The lab: attacks that justify the noise, run against unprotected systems and against ours."""
