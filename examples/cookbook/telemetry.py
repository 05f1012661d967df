"""Telemetry in the local model: which feature is used most, from devices that trust nobody."""

from __future__ import annotations

import numpy as np

from discreet import local

FEATURES = 64
DEVICES = 20_000
DAYS = 5


def make_devices(seed: int = 5) -> np.ndarray:
    """The feature that each device uses most; few change it within a week."""
    draw = np.random.default_rng(seed)
    weights = 1 / np.arange(1, FEATURES + 1)
    return draw.choice(FEATURES, DEVICES, p=weights / weights.sum())


def report_once(used: np.ndarray) -> local.Frequencies:
    """One report of each device: ``best`` chooses the randomizer for ε = 1 by its error."""
    choice = local.best(FEATURES, epsilon=1, n=DEVICES)
    print(choice)
    randomizer = choice.randomizer
    return randomizer.estimate(randomizer.release(used.tolist()))


def report_daily(used: np.ndarray) -> tuple[list[local.Frequencies], float]:
    """A report a day: what is kept on the device is randomised once, so a week costs no more."""
    daily = local.Memoised(FEATURES, permanent=2, one=1)
    devices = [daily.client(periods=1, rounds=DAYS) for _ in range(2_000)]
    answers = used[: len(devices)].tolist()
    estimates = [
        daily.estimate([device.report(a) for device, a in zip(devices, answers, strict=True)])
        for _ in range(DAYS)
    ]
    return estimates, float(max(device.lost.epsilon for device in devices))


def main() -> None:
    used = make_devices()
    once = report_once(used)
    truth = np.bincount(used, minlength=FEATURES)
    for feature in range(3):
        low, high = once.interval(feature)
        told = f"between {low:.0f} and {high:.0f} devices"
        print(f"feature {feature}: {told}, in truth {truth[feature]}")
    off = np.sqrt(np.mean((once.consistent("norm-sub") - truth) ** 2))
    print(f"root mean squared error {off:.0f} of {DEVICES} devices")
    estimates, lost = report_daily(used)
    print(f"{len(estimates)} reports a device cost ε = {lost:g}")


if __name__ == "__main__":
    main()
