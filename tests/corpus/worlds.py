"""Made-up data sets of different shape, the same on every run."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd

HOSPITAL = """
[tables.patients]
unit = "patient_id"
max_rows_per_unit = 1
[tables.patients.columns]
patient_id = "integer"
sex = { type = "text", values = ["f", "m"], nullable = false }
birth_date = { type = "date", bounds = [1930-01-01, 2015-12-31] }
city = { type = "text", values = ["Lyon", "Nantes", "Lille", "Brest"] }
insured = { type = "boolean", nullable = false }

[tables.admissions]
unit = "patient_id"
max_rows_per_unit = 6
[tables.admissions.columns]
patient_id = "integer"
ward = { type = "text", values = ["cardio", "ortho", "neuro", "general"] }
code = "text"
admitted = { type = "timestamp", bounds = [2023-01-01T00:00:00, 2025-06-30T00:00:00] }
discharged = { type = "timestamp", bounds = [2023-01-01T00:00:00, 2025-12-31T00:00:00] }
day = { type = "date", bounds = [2023-01-01, 2025-06-30] }
cost = { type = "decimal", bounds = [0, 20000] }
emergency = { type = "boolean", nullable = false }
doctor = "text"

[tables.wards]
public = true
unique = [["ward"]]
[tables.wards.columns]
ward = "text"
floor = { type = "integer", bounds = [0, 9] }
building = "text"

[tables.codes]
public = true
unique = [["code"]]
[tables.codes.columns]
code = "text"
chapter = "text"
severity = { type = "integer", bounds = [1, 5] }
"""

FLIGHTS = """
[tables.bookings]
unit = "customer_id"
max_rows_per_unit = 8
[tables.bookings.columns]
customer_id = "integer"
origin = { type = "text", values_from = "airports.iata" }
dest = { type = "text", values_from = "airports.iata" }
carrier = { type = "text", values = ["AF", "BA", "KL"] }
cabin = { type = "text", values = ["economy", "business"], nullable = false }
flight_date = { type = "date", bounds = [2024-01-01, 2024-12-31] }
departed = { type = "timestamp", bounds = [2024-01-01T00:00:00, 2025-01-01T00:00:00] }
arrived = { type = "timestamp", bounds = [2024-01-01T00:00:00, 2025-01-02T00:00:00] }
price = { type = "decimal", bounds = [0, 2000] }
seats = { type = "integer", bounds = [1, 9] }
delay = { type = "integer", bounds = [-30, 300] }

[tables.customers]
unit = "customer_id"
max_rows_per_unit = 1
[tables.customers.columns]
customer_id = "integer"
tier = { type = "text", values = ["basic", "silver", "gold"] }
country = { type = "text", values = ["FR", "GB", "NL"] }
since = { type = "date", bounds = [2010-01-01, 2024-01-01] }
age = { type = "integer", bounds = [18, 95] }

[tables.airports]
public = true
unique = [["iata"]]
[tables.airports.columns]
iata = "text"
city = "text"
country = "text"
runways = { type = "integer", bounds = [1, 9] }

[tables.carriers]
public = true
unique = [["carrier"]]
[tables.carriers.columns]
carrier = "text"
name = "text"
"""

RATINGS = """
[tables.ratings]
unit = "user_id"
max_rows_per_unit = 30
[tables.ratings.columns]
user_id = "integer"
movie_id = "integer"
stars = { type = "decimal", bounds = [0, 5] }
rated_at = { type = "timestamp", bounds = [2020-01-01T00:00:00, 2023-12-31T00:00:00] }
device = { type = "text", values = ["tv", "phone", "web"], nullable = false }

[tables.users]
unit = "user_id"
max_rows_per_unit = 1
[tables.users.columns]
user_id = "integer"
gender = { type = "text", values = ["f", "m", "x"], nullable = false }
age = { type = "integer", bounds = [12, 90] }
job = "text"
joined = { type = "date", bounds = [2015-01-01, 2020-01-01] }

[tables.movies]
public = true
unique = [["movie_id"]]
[tables.movies.columns]
movie_id = "integer"
title = "text"
genre = "text"
year = { type = "integer", bounds = [1950, 2023] }
minutes = { type = "integer", bounds = [60, 240] }
"""


LIBRARY = """
[tables.loans]
unit = "reader_id"
max_rows_per_unit = 8
[tables.loans.columns]
reader_id = "integer"
loan_id = "integer"
isbn = "text"
branch = { type = "text", values = ["central", "harbour", "mill"], nullable = false }
genre = { type = "text", values = ["crime", "poetry", "travel", "science"], nullable = false }
borrowed = { type = "timestamp", bounds = [2025-01-01T00:00:00, 2025-12-31T23:59:59] }
returned = { type = "date", bounds = [2025-01-01, 2026-03-31] }
due = { type = "date", bounds = [2025-01-01, 2026-02-28], nullable = false }
renewals = { type = "integer", bounds = [0, 5], nullable = false }
fine = { type = "decimal", bounds = [0, 40], nullable = false }

[tables.readers]
unit = "reader_id"
max_rows_per_unit = 1
[tables.readers.columns]
reader_id = "integer"
joined = { type = "date", bounds = [2010-01-01, 2025-12-31], nullable = false }
birth_year = { type = "integer", bounds = [1930, 2020], nullable = false }
student = { type = "boolean", nullable = false }
postcode = { type = "text", values = ["N1", "N2", "S1"], nullable = false }

[tables.branches]
public = true
unique = [["branch"]]
[tables.branches.columns]
branch = "text"
district = "text"
seats = { type = "integer", bounds = [0, 500] }
"""

GYM = """
[tables.members]
unit = "member_id"
max_rows_per_unit = 1
[tables.members.columns]
member_id = "integer"
plan = { type = "text", values = ["basic", "plus", "vip"], nullable = false }
joined = { type = "date", bounds = [2019-01-01, 2025-12-31], nullable = false }
sex = { type = "text", values = ["F", "M"], nullable = false }
weight = { type = "decimal", bounds = [40, 160] }
club = { type = "text", values_from = "clubs.club", nullable = false }
email = "text"

[tables.checkins]
unit = "member_id"
max_rows_per_unit = 10
[tables.checkins.columns]
member_id = "integer"
checkin_id = "integer"
club = { type = "text", values_from = "clubs.club", nullable = false }
entered = { type = "timestamp", bounds = [2025-01-01T00:00:00, 2025-12-31T23:59:59] }
activity = { type = "text", values = ["weights", "swim", "yoga", "spin"], nullable = false }
minutes = { type = "integer", bounds = [0, 240], nullable = false }
calories = { type = "decimal", bounds = [0, 3000] }
guest = { type = "boolean", nullable = false }

[tables.payments]
unit = "member_id"
max_rows_per_unit = 4
[tables.payments.columns]
member_id = "integer"
paid_on = { type = "date", bounds = [2025-01-01, 2025-12-31], nullable = false }
amount = { type = "decimal", bounds = [0, 200], nullable = false }
status = { type = "text", values = ["paid", "failed"], nullable = false }

[tables.clubs]
public = true
unique = [["club"]]
[tables.clubs.columns]
club = "text"
city = "text"
area = { type = "integer", bounds = [0, 9000] }
"""


def _days(first: date, count: np.ndarray) -> list[date]:
    return [first + timedelta(days=int(n)) for n in count]


def _moments(first: datetime, minutes: np.ndarray) -> list[datetime]:
    return [first + timedelta(minutes=int(n)) for n in minutes]


def _own(rng: np.random.Generator, people: int, most: int) -> np.ndarray:
    return np.repeat(np.arange(people), rng.integers(1, most + 1, people))


def hospital() -> dict[str, pd.DataFrame]:
    rng, people = np.random.default_rng(11), 900
    who = _own(rng, people, 6)
    n = who.size
    start = rng.choice(1_300_000, n, replace=False)  # no two moments are the same
    stay = rng.integers(60, 30_000, n)
    admitted = _moments(datetime(2023, 1, 1), start)
    codes = np.array(["I21", "I50", "S72", "G40", "J18"])
    return {
        "patients": pd.DataFrame(
            {
                "patient_id": np.arange(people),
                "sex": np.array(["f", "m"])[rng.integers(0, 2, people)],
                "birth_date": _days(date(1930, 1, 1), rng.integers(0, 31_000, people)),
                "city": np.array(["Lyon", "Nantes", "Lille", "Brest"])[rng.integers(0, 4, people)],
                "insured": rng.integers(0, 10, people) > 1,
            }
        ),
        "admissions": pd.DataFrame(
            {
                "patient_id": who,
                "ward": np.array(["cardio", "ortho", "neuro", "general"])[rng.integers(0, 4, n)],
                "code": codes[rng.integers(0, 5, n)],
                "admitted": admitted,
                "discharged": _moments(datetime(2023, 1, 1), start + stay),
                "day": [moment.date() for moment in admitted],
                "cost": np.round(rng.gamma(2.0, 6000.0, n).clip(0, 80000)) / 4,
                "emergency": rng.integers(0, 3, n) == 0,
                "doctor": np.array(["Dr. Adam", "Dr. Blanc", "Dr. Cros"])[rng.integers(0, 3, n)],
            }
        ),
        "wards": pd.DataFrame(
            {
                "ward": ["cardio", "ortho", "neuro", "general"],
                "floor": [1, 2, 2, 0],
                "building": ["north", "north", "south", "south"],
            }
        ),
        "codes": pd.DataFrame(
            {
                "code": codes,
                "chapter": ["heart", "heart", "injury", "nerves", "lungs"],
                "severity": [5, 4, 3, 2, 3],
            }
        ),
    }


def flights() -> dict[str, pd.DataFrame]:
    rng, people = np.random.default_rng(12), 800
    who = _own(rng, people, 8)
    n = who.size
    iata = np.array(["CDG", "LHR", "AMS", "NCE", "EDI", "LYS"])
    leave = rng.choice(520_000, n, replace=False)
    departed = _moments(datetime(2024, 1, 1), leave)
    return {
        "bookings": pd.DataFrame(
            {
                "customer_id": who,
                "origin": iata[rng.integers(0, 6, n)],
                "dest": iata[rng.integers(0, 6, n)],
                "carrier": np.array(["AF", "BA", "KL"])[rng.integers(0, 3, n)],
                "cabin": np.array(["economy", "business"])[
                    (rng.integers(0, 5, n) == 0).astype(int)
                ],
                "flight_date": [moment.date() for moment in departed],
                "departed": departed,
                "arrived": _moments(datetime(2024, 1, 1), leave + rng.integers(50, 900, n)),
                "price": np.round(rng.gamma(3.0, 90.0, n).clip(0, 2000), 2),
                "seats": rng.integers(1, 5, n),
                "delay": rng.integers(-20, 180, n),
            }
        ),
        "customers": pd.DataFrame(
            {
                "customer_id": np.arange(people),
                "tier": np.array(["basic", "silver", "gold"])[rng.integers(0, 3, people)],
                "country": np.array(["FR", "GB", "NL"])[rng.integers(0, 3, people)],
                "since": _days(date(2010, 1, 1), rng.integers(0, 5000, people)),
                "age": rng.integers(18, 90, people),
            }
        ),
        "airports": pd.DataFrame(
            {
                "iata": iata,
                "city": ["Paris", "London", "Amsterdam", "Nice", "Edinburgh", "Lyon"],
                "country": ["FR", "GB", "NL", "FR", "GB", "FR"],
                "runways": [4, 2, 6, 2, 1, 2],
            }
        ),
        "carriers": pd.DataFrame(
            {"carrier": ["AF", "BA", "KL"], "name": ["Air France", "British Airways", "KLM"]}
        ),
    }


def ratings() -> dict[str, pd.DataFrame]:
    rng, people = np.random.default_rng(13), 300
    who = _own(rng, people, 30)
    n = who.size
    movies = 40
    genres = np.array(["drama", "comedy", "action", "horror"])
    return {
        "ratings": pd.DataFrame(
            {
                "user_id": who,
                "movie_id": rng.integers(1, movies + 1, n),
                "stars": rng.integers(1, 11, n) / 2,
                "rated_at": _moments(datetime(2020, 1, 1), rng.choice(2_000_000, n, replace=False)),
                "device": np.array(["tv", "phone", "web"])[rng.integers(0, 3, n)],
            }
        ),
        "users": pd.DataFrame(
            {
                "user_id": np.arange(people),
                "gender": np.array(["f", "m", "x"])[rng.integers(0, 3, people)],
                "age": rng.integers(12, 90, people),
                "job": np.array(["nurse", "clerk", "cook"])[rng.integers(0, 3, people)],
                "joined": _days(date(2015, 1, 1), rng.integers(0, 1800, people)),
            }
        ),
        "movies": pd.DataFrame(
            {
                "movie_id": np.arange(1, movies + 1),
                "title": [f"Film {i}" for i in range(1, movies + 1)],
                "genre": genres[np.arange(movies) % 4],
                "year": 1960 + (np.arange(movies) * 7) % 60,
                "minutes": 70 + (np.arange(movies) * 13) % 120,
            }
        ),
    }


def library() -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(11)
    people = 1500
    who = _own(rng, people, 8)
    n = who.size
    borrowed = _moments(datetime(2025, 1, 1), rng.choice(520_000, n, replace=False))
    kept = rng.integers(1, 60, n)
    back = [day.date() + timedelta(days=int(k)) for day, k in zip(borrowed, kept, strict=True)]
    out = rng.random(n) < 0.05
    return {
        "loans": pd.DataFrame(
            {
                "reader_id": who,
                "loan_id": np.arange(n),
                "isbn": rng.integers(100, 130, n).astype(str),
                "branch": rng.choice(["central", "harbour", "mill"], n, p=[0.5, 0.3, 0.2]),
                "genre": rng.choice(
                    ["crime", "poetry", "travel", "science"], n, p=[0.4, 0.1, 0.2, 0.3]
                ),
                "borrowed": borrowed,
                "returned": [None if o else day for o, day in zip(out, back, strict=True)],
                "due": [day.date() + timedelta(days=28) for day in borrowed],
                "renewals": rng.integers(0, 4, n),
                "fine": np.round(np.maximum(0, kept - 28) * 0.25, 2),
            }
        ),
        "readers": pd.DataFrame(
            {
                "reader_id": np.arange(people),
                "joined": _days(date(2010, 1, 1), rng.integers(0, 5800, people)),
                "birth_year": rng.integers(1940, 2016, people),
                "student": rng.random(people) < 0.3,
                "postcode": rng.choice(["N1", "N2", "S1"], people),
            }
        ),
        "branches": pd.DataFrame(
            {
                "branch": ["central", "harbour", "mill"],
                "district": ["city", "docks", "city"],
                "seats": [200, 60, 35],
            }
        ),
    }


def gym() -> dict[str, pd.DataFrame]:
    rng, people = np.random.default_rng(5), 700
    clubs = np.array(["Riverside", "Station", "Old Mill", "Park"])
    who = np.repeat(np.arange(people), rng.integers(0, 11, people))
    payers = np.repeat(np.arange(people), rng.integers(0, 5, people))
    n, paid = who.size, payers.size
    calories = np.round(rng.uniform(50, 1500, n))
    calories[::13] = np.nan
    weight = np.round(rng.uniform(45, 150, people), 1)
    weight[::17] = np.nan
    days = rng.permutation(np.tile(np.arange(365), paid // 365 + 1))[:paid]
    return {
        "members": pd.DataFrame(
            {
                "member_id": np.arange(people),
                "plan": rng.choice(["basic", "plus", "vip"], people),
                "joined": _days(date(2019, 1, 1), rng.integers(0, 2500, people)),
                "sex": rng.choice(["F", "M"], people),
                "weight": weight,
                "club": clubs[rng.integers(0, 4, people)],
                "email": [
                    f"user{i}@{'mail.example' if i % 3 else 'post.example'}" for i in range(people)
                ],
            }
        ),
        "checkins": pd.DataFrame(
            {
                "member_id": who,
                "checkin_id": np.arange(n),
                "club": clubs[rng.integers(0, 4, n)],
                "entered": _moments(datetime(2025, 1, 1), rng.choice(500_000, n, replace=False)),
                "activity": rng.choice(["weights", "swim", "yoga", "spin"], n),
                "minutes": rng.integers(5, 200, n),
                "calories": calories,
                "guest": rng.random(n) < 0.1,
            }
        ),
        "payments": pd.DataFrame(
            {
                "member_id": payers,
                "paid_on": _days(date(2025, 1, 1), days),
                "amount": np.round(rng.uniform(10, 150, paid), 2),
                "status": np.where(rng.random(paid) < 0.9, "paid", "failed"),
            }
        ),
        "clubs": pd.DataFrame(
            {
                "club": clubs,
                "city": ["Leeds", "Leeds", "York", "Hull"],
                "area": [1200, 800, 650, 2000],
            }
        ),
    }


WORLDS = {
    "gym": (GYM, gym),
    "hospital": (HOSPITAL, hospital),
    "flights": (FLIGHTS, flights),
    "ratings": (RATINGS, ratings),
    "library": (LIBRARY, library),
}
