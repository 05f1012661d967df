-- # Groups

-- Declared values are public groups: all are in the answer, also empty ones, and NULL.
SELECT city, COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- A column that is never NULL has no NULL group.
SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex;
--> accepted
--> groups: sex (3 public)
--> values: n = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0; Laplace

-- Values nobody declared are private groups: shown only if enough people share them.
SELECT doctor, COUNT(*) AS n FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

SELECT city, doctor, COUNT(*) AS n FROM visits GROUP BY city, doctor;
--> accepted
--> groups: city (3 public and NULL), doctor (private)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

-- Truths.
SELECT paid, AVG(cost) AS mean FROM visits GROUP BY paid;
--> accepted
--> groups: paid (2 public)
--> values: mean = AVG(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

-- Whole numbers within bounds.
SELECT age, COUNT(*) AS n FROM visits GROUP BY age;
--> accepted
--> groups: age (121 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Parts and truncations of dates within bounds.
SELECT YEAR(day) AS year, MONTH(day) AS month, COUNT(*) AS n FROM visits GROUP BY YEAR(day), MONTH(day);
--> accepted
--> groups: year (3 public and NULL), month (12 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT DATE_TRUNC('month', day) AS month, SUM(cost) AS total FROM visits GROUP BY 1;
--> accepted
--> groups: month (36 public and NULL)
--> values: total = SUM(visits.cost)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT EXTRACT(QUARTER FROM day) AS quarter, COUNT(*) AS n FROM visits GROUP BY quarter;
--> accepted
--> groups: quarter (4 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- Constants.
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END AS stage, COUNT(*) AS n FROM visits GROUP BY stage;
--> accepted
--> groups: stage (3 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT CASE city WHEN 'york' THEN 'here' ELSE 'elsewhere' END AS place, COUNT(*) AS n FROM visits GROUP BY place;
--> accepted
--> groups: place (2 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- A condition narrows the groups.
SELECT city, COUNT(*) AS n FROM visits WHERE city IN ('york', 'hull') GROUP BY city;
--> accepted
--> groups: city (2 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT doctor, COUNT(*) AS n FROM visits WHERE doctor IN ('Adams', 'Brown') GROUP BY doctor;
--> accepted
--> groups: doctor (2 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT age, COUNT(*) AS n FROM visits WHERE age BETWEEN 20 AND 29 GROUP BY age;
--> accepted
--> groups: age (10 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- NULL can be given a name.
SELECT COALESCE(city, 'unknown') AS place, COUNT(*) AS n FROM visits GROUP BY place;
--> accepted
--> groups: place (4 public)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT UPPER(city) AS place, COUNT(*) AS n FROM visits GROUP BY UPPER(city);
--> accepted
--> groups: place (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- A range without declared values that is too long to list has private groups.
SELECT day, COUNT(*) AS n FROM visits GROUP BY day;
--> accepted
--> groups: day (private)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

-- Groups need not be shown.
SELECT COUNT(*) AS n FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> values: n = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

-- One group per person is refused, and so is grouping by all of a unit's columns.
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id;
--> refused Q23

SELECT nurse, day, SUM(hours) FROM shifts GROUP BY nurse, day;
--> refused Q23

-- A part of the unit may be a key.
SELECT day, SUM(hours) AS hours FROM shifts GROUP BY day;
--> accepted
--> groups: day (365 public and NULL)
--> values: hours = SUM(shifts.hours)
--> rows: at most 3 of one unit
--> price: ε = 0.5, ρ = 0.106531, δ = 0; Laplace

SELECT city, age, COUNT(*) FROM visits GROUP BY city;
--> refused Q24

SELECT city, COUNT(*) FROM visits;
--> refused Q24

-- What is declared is told from the schema, free.
SELECT city FROM visits GROUP BY city;
--> accepted
--> groups: city (3 public and NULL)
--> rows: at most 20 of one unit

SELECT city, COUNT(*) FROM visits GROUP BY ROLLUP (city);
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS count FROM visits AS visits GROUP BY visits.city
--> question 2: SELECT COUNT(*) AS count FROM visits AS visits
--> computed: SELECT city AS city, count AS count FROM (SELECT city, count, 0 AS grouping.city FROM question.1 UNION ALL SELECT NULL AS city, count, 1 AS grouping.city FROM question.2) AS question.sets
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) FROM visits GROUP BY GROUPING SETS ((city), ());
--> accepted
--> question 1: SELECT visits.city AS city, COUNT(*) AS count FROM visits AS visits GROUP BY visits.city
--> question 2: SELECT COUNT(*) AS count FROM visits AS visits
--> computed: SELECT city AS city, count AS count FROM (SELECT city, count, 0 AS grouping.city FROM question.1 UNION ALL SELECT NULL AS city, count, 1 AS grouping.city FROM question.2) AS question.sets
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace / ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) FROM visits GROUP BY ALL;
--> accepted
--> groups: city (3 public and NULL)
--> values: count = COUNT(*)
--> rows: at most 20 of one unit
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT city, COUNT(*) FROM visits GROUP BY 3;
--> refused Q31

SELECT COUNT(*) AS n FROM visits GROUP BY COUNT(*);
--> refused Q25

SELECT age, DATE_TRUNC('month', day) AS m, city, MONTH(day) AS k, DAY(day) AS d, COUNT(*) AS n FROM visits GROUP BY age, m, city, k, d;
--> refused Q27

-- Keys alone: which doctors enough patients share; nothing is counted, and the whole price shows them.
SELECT doctor FROM visits GROUP BY doctor;
--> accepted
--> groups: doctor (private)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00438648, δ = 9.99756e-10; Gaussian

SELECT DISTINCT doctor FROM visits;
--> accepted
--> groups: doctor (private)
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00438648, δ = 9.99756e-10; Gaussian

SELECT DISTINCT UPPER(doctor) AS doctor, city FROM visits WHERE age >= 18 ORDER BY doctor LIMIT 10;
--> accepted
--> groups: doctor (private), city (3 public and NULL)
--> after: ORDER BY, LIMIT 10
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00438648, δ = 9.99756e-10; Gaussian

SELECT doctor, note FROM visits GROUP BY doctor, note HAVING doctor <> 'x';
--> accepted
--> groups: doctor (private), note (private)
--> after: HAVING
--> rows: at most 20 of one unit
--> price: ε = ∞, ρ = 0.00438648, δ = 9.99756e-10; Gaussian

-- One row for each patient: the noisy count that is printed also decides.
SELECT birth_year, CAST(patient_id AS TEXT) AS id, COUNT(*) AS n FROM patients GROUP BY 1, 2;
--> accepted
--> groups: birth_year (127 public and NULL), id (private)
--> values: n = COUNT(*)
--> rows: at most 1 of one unit
--> price: ε = 0.5, ρ = 0.12246, δ = 0.000000001; Laplace

SELECT DISTINCT COUNT(*) FROM visits;
--> accepted
--> question 1: SELECT COUNT(*) AS count FROM visits AS visits
--> computed: SELECT DISTINCT count AS count FROM question.1
--> price: ε = 0.5, ρ = 0.106572, δ = 0; Laplace

SELECT DISTINCT doctor, COUNT(*) FROM visits GROUP BY doctor;
--> accepted
--> question 1: SELECT visits.doctor AS doctor, COUNT(*) AS count FROM visits AS visits GROUP BY visits.doctor
--> computed: SELECT DISTINCT doctor AS doctor, count AS count FROM question.1
--> price: ε = ∞, ρ = 0.00379627, δ = 0.0000000005; Gaussian, Gaussian

SELECT DISTINCT * FROM visits;
--> refused Q13
