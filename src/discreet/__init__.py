"""discreet: a differential-privacy curator."""

__version__ = "0.1.0"
