"""The mathematics of loss: what a release costs, how costs add, what may still be spent."""
