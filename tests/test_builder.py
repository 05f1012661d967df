"""Questions in Python are the questions of SQL, and are refused in the same words."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from golden_cases import SCHEMA

import discreet.question.builder as b
from discreet.errors import InvalidParameter, QuestionRefusal
from discreet.question.builder import col, count, function, lit, mean, table, total, when
from discreet.question.sql import parse

VISITS = table("visits", SCHEMA)
PATIENTS = table("patients", SCHEMA)
CITIES = table("cities", SCHEMA)
READINGS = table("readings", SCHEMA)

PAIRS = {
    "count": (
        VISITS.agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits",
    ),
    "the example of the design": (
        VISITS.where(col("age") >= 18).group_by("city").agg(n=count(), cost=mean("cost")),
        "SELECT city, COUNT(*) AS n, AVG(cost) AS cost FROM visits WHERE age >= 18 GROUP BY city",
    ),
    "every aggregate": (
        VISITS.agg(
            a=count("doctor"), b=b.count_if(col("paid")), c=b.count_distinct("patient_id"),
            d=total("cost"), e=b.variance("cost"), f=b.variance("cost", population=True),
            g=b.stddev("cost"), h=b.stddev("cost", population=True), i=b.median("cost"),
            j=b.quantile("cost", "1/3", 0.9), k=b.minimum("cost"), l=b.maximum("cost"),
            m=b.covariance("cost", "age"), n=b.correlation("cost", "age"),
            o=b.slope("cost", "age"), p=b.intercept("cost", "age"), q=b.mode("city"),
            r=b.top_k("city", 2), s=b.histogram("age", [0, 18, 65]),
            t=b.distance_to_sorted("cost", "age"), u=b.distance_to_clusters("age", 2, "1.5"),
            v=b.distance_to_dependency("city", "age", "doctor"),
        ),
        "SELECT COUNT(doctor) AS a, COUNTIF(paid) AS b, COUNT(DISTINCT patient_id) AS c,"
        " SUM(cost) AS d, VARIANCE(cost) AS e, VAR_POP(cost) AS f, STDDEV(cost) AS g,"
        " STDDEV_POP(cost) AS h, MEDIAN(cost) AS i, QUANTILE_CONT(cost, '1/3', 0.9) AS j,"
        " MIN(cost) AS k, MAX(cost) AS l, COVAR_SAMP(cost, age) AS m, CORR(cost, age) AS n,"
        " REGR_SLOPE(cost, age) AS o, REGR_INTERCEPT(cost, age) AS p, MODE(city) AS q,"
        " TOP_K(city, 2) AS r, HISTOGRAM(age, 0, 18, 65) AS s,"
        " DISTANCE_TO_SORTED(cost, age) AS t, DISTANCE_TO_CLUSTERS(age, 2, 1.5) AS u,"
        " DISTANCE_TO_DEPENDENCY(city, age, doctor) AS v FROM visits",
    ),
    "arithmetic": (
        VISITS.agg(x=total((col("cost") - 3) * 2 / (1 + col("age")) - (5 - col("age")))),
        "SELECT SUM((cost - 3) * 2 / (1 + age) - (5 - age)) AS x FROM visits",
    ),
    "conditions": (
        VISITS.where(
            col("city").is_in("york", "hull") & ~col("paid") | (col("note").like("a%")),
            col("age").between(18, 65), ~col("cost").is_null(), col("day") < date(2026, 1, 31),
            col("arrived") > datetime(2026, 1, 31, 12, 30), col("doctor") != "O'Brien",
        ).agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits WHERE (city IN ('york', 'hull') AND NOT paid"
        " OR note LIKE 'a%') AND age BETWEEN 18 AND 65 AND cost IS NOT NULL"
        " AND day < DATE '2026-01-31' AND arrived > TIMESTAMP '2026-01-31 12:30:00'"
        " AND doctor <> 'O''Brien'",
    ),
    "constants": (
        VISITS.where(
            col("cost") > 0.1, col("cost") > Decimal("2.50"), col("cost") > Fraction(1, 8),
            col("cost") > -3, col("age") > lit(7), col("paid") == True,  # noqa: E712
        ).agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits WHERE cost > 0.1 AND cost > 2.5 AND cost > 0.125"
        " AND cost > -3 AND age > 7 AND paid = TRUE",
    ),
    "keys": (
        VISITS.group_by(
            "city", decade=col("age") // 10, month=function("month", col("day")),
            stage=when(col("age") < 18, "child", "adult"),
        ).agg(n=count()),
        "SELECT city, age // 10 AS decade, MONTH(day) AS month,"
        " CASE WHEN age < 18 THEN 'child' ELSE 'adult' END AS stage, COUNT(*) AS n"
        " FROM visits GROUP BY 1, 2, 3, 4",
    ),
    "after the release": (
        VISITS.group_by("city").agg(n=count(), share=b.count_if(col("paid")) / count())
        .having(col("n") > 100).order_by(col("share").descending(), "city").limit(2),
        "SELECT city, COUNT(*) AS n, COUNTIF(paid) / COUNT(*) AS share FROM visits GROUP BY city"
        " HAVING COUNT(*) > 100 ORDER BY share DESC, city LIMIT 2",
    ),
    "filter and bounds": (
        VISITS.agg(
            a=total("cost").filter(col("paid")), b=total("income").bounded(per_group=(0, 100)),
            c=mean("income").bounded(per_row=(0, "2.5")), d=total(col("income").clip(0, 9)),
        ),
        "SELECT SUM(cost) FILTER (WHERE paid) AS a,"
        " SUM(income, contribution_bounds_per_group => (0, 100)) AS b,"
        " AVG(income, contribution_bounds_per_row => (0, 2.5)) AS c,"
        " SUM(GREATEST(LEAST(income, 9), 0)) AS d FROM visits",
    ),
    "limits": (
        VISITS.group_by("city").agg(n=count()).contributing(max_groups=2, max_rows_per_group=3),
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_groups_contributed = 2,"
        " max_rows_per_group = 3) city, COUNT(*) AS n FROM visits GROUP BY city",
    ),
    "public join": (
        VISITS.join(CITIES, on={"city": "name"}, how="left").group_by("region").agg(n=count()),
        "SELECT region, COUNT(*) AS n FROM visits LEFT JOIN cities ON city = name GROUP BY region",
    ),
    "unit join": (
        PATIENTS.join(
            VISITS.per_unit("patient_id", spent=total("cost")).named("s"), on="patient_id"
        ).group_by("sex").agg(mean=mean("spent")),
        "SELECT sex, AVG(spent) AS mean FROM patients JOIN (SELECT patient_id, SUM(cost) AS spent"
        " FROM visits GROUP BY patient_id) AS s ON patients.patient_id = s.patient_id"
        " GROUP BY sex",
    ),
    "filtered right side": (
        PATIENTS.join(VISITS.where(col("paid")).named("v"), on="patient_id").agg(n=count()),
        "SELECT COUNT(*) AS n FROM patients JOIN (SELECT * FROM visits WHERE paid) AS v"
        " ON patients.patient_id = v.patient_id",
    ),
    "three tables": (
        VISITS.named("v").join(PATIENTS.named("p"), on=["patient_id", "city"])
        .join(CITIES, on={"birth_year": "people"}).agg(n=count(VISITS.named("v")["cost"])),
        "SELECT COUNT(v.cost) AS n FROM visits v JOIN patients p ON v.patient_id = p.patient_id"
        " AND v.city = p.city JOIN cities ON birth_year = cities.people",
    ),
    "union": (
        VISITS.select("patient_id", "city").named("u")
        .union_all(PATIENTS.select("patient_id", "city").named("w"))
        .group_by("city").agg(n=count()),
        "SELECT city, COUNT(*) AS n FROM (SELECT * FROM (SELECT patient_id, city FROM visits) AS u"
        " UNION ALL SELECT * FROM (SELECT patient_id, city FROM patients) AS w) AS u GROUP BY city",
    ),
    "computed columns": (
        VISITS.select("city", double=col("cost") * 2).group_by("city").agg(mean=mean("double")),
        "SELECT city, AVG(double) AS mean FROM (SELECT city, cost * 2 AS double FROM visits)"
        " AS visits GROUP BY city",
    ),
    "casts": (
        VISITS.agg(a=mean(col("cost").cast("integer")), b=count(col("age").cast("text"))),
        "SELECT AVG(CAST(cost AS BIGINT)) AS a, COUNT(CAST(age AS TEXT)) AS b FROM visits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_same_question_as_in_sql(name):
    built, text = PAIRS[name]
    assert replace(built.question(), text="") == replace(parse(text, SCHEMA), text="")


def test_a_third_has_no_decimal_and_stays_a_third():
    found = VISITS.where(col("cost") > Fraction(1, 3)).agg(n=count()).question()
    assert "(1 / 3)" in str(found.text)


REFUSED = {
    "Q1": (VISITS.agg(x=mean("income")), "SELECT AVG(income) AS x FROM visits"),
    "Q7": (VISITS.agg(x=mean("cots")), "SELECT AVG(cots) AS x FROM visits"),
    "Q9": (
        VISITS.where(function("random") > 3).agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits WHERE RANDOM() > 3",
    ),
    "Q10": (
        VISITS.where(col("age") == "old").agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits WHERE age = 'old'",
    ),
    "Q12": (VISITS.agg(x=col("cost")), "SELECT cost AS x FROM visits"),
    "Q18": (
        VISITS.join(VISITS.named("w"), on="doctor").agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits JOIN visits AS w ON visits.doctor = w.doctor",
    ),
    "Q19": (
        VISITS.join(CITIES, on={"city": "name"}, how="full").agg(n=count()),
        "SELECT COUNT(*) AS n FROM visits FULL JOIN cities ON visits.city = cities.name",
    ),
    "Q22": (
        VISITS.per_unit("doctor", n=count()).agg(m=mean("n")),
        "SELECT AVG(n) AS m FROM (SELECT doctor, COUNT(*) AS n FROM visits GROUP BY doctor)"
        " AS visits",
    ),
    "Q23": (
        VISITS.group_by("patient_id").agg(n=count()),
        "SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id",
    ),
    "Q34": (VISITS.agg(**{"a.b": count()}), 'SELECT COUNT(*) AS "a.b" FROM visits'),
}


@pytest.mark.parametrize("code", REFUSED)
def test_same_refusal_as_in_sql(code):
    built, text = REFUSED[code]
    refusals = []
    for asked in (built.question, lambda: parse(text, SCHEMA)):
        with pytest.raises(QuestionRefusal) as caught:
            asked()
        refusals.append(caught.value)
    assert [r.code for r in refusals] == [code, code]
    assert refusals[0].what == refusals[1].what
    assert refusals[0].why == refusals[1].why


def test_names_and_texts_are_nodes_not_text():
    """Nothing that looks like SQL in a name or a constant becomes SQL."""
    evil = "'; DROP TABLE visits; --"
    question = VISITS.where(col("note") == evil).agg(n=count()).question()
    assert evil in re.sub("''", "'", question.text)
    assert parse(question.text, SCHEMA).source == question.source
    for build in (
        lambda: VISITS.agg(n=mean('cost") FROM visits --')).question(),
        lambda: table('visits" --', SCHEMA).agg(n=count()).question(),
        lambda: VISITS.agg(**{'n" --': count()}).question(),
    ):
        with pytest.raises(QuestionRefusal):
            build()


def test_misuse_is_refused_where_it_happens():
    for misuse in (
        lambda: bool(col("age") > 3),
        lambda: col("age") > object(),  # type: ignore[operator]
        lambda: function("year; DROP"),
        lambda: col("age").cast("json path"),
        lambda: 3 if col("age") == 3 else 4,
        lambda: lit(float("nan")),
    ):
        with pytest.raises(InvalidParameter):
            misuse()


def test_steps_leave_what_they_start_from_alone():
    before = VISITS.agg(n=count())
    before.having(col("n") > 3).limit(2)
    VISITS.where(col("paid")).group_by("city")
    assert before.sql == VISITS.agg(n=count()).sql


def test_rows_units_are_counted_as_rows():
    assert READINGS.group_by("station").agg(n=count(), level=mean("level")).question().keys
